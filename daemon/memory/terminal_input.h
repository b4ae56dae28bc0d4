// Input at the terminals of processes that stand still. Their descriptors of it are duplicated
// (pidfd_getfd(2)), so that what comes is seen and stays there.
#pragma once

#include <sys/types.h>

#include <map>
#include <vector>

#include "base/fd.h"
#include "sys/procfs/procfs.h"

namespace swapd::daemon {

class TerminalInput {
 public:
  explicit TerminalInput(const sys::Procfs& procfs);
  // A process that is in the background of its terminal, or has none, is not watched: what is typed is for another.
  void watch(pid_t tgid);
  void forget(pid_t tgid) { watched_.erase(tgid); }
  [[nodiscard]] int fd() const { return epoll_.get(); }  // polls readable
  // The processes at whose terminals there is input; each until forget().
  [[nodiscard]] std::vector<pid_t> ready() const;

 private:
  const sys::Procfs& procfs_;
  Fd epoll_;
  std::map<pid_t, std::vector<Fd>> watched_;
};

}  // namespace swapd::daemon
