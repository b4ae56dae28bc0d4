// Programs with a seccomp listener of their own, which cannot have swapd's too: those that run without its filter, and
// those whose call for one failed under it. For the log and for status. Any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "sys/procfs/procfs.h"

namespace swapd::daemon {

class OwnListeners {
 public:
  explicit OwnListeners(const sys::Procfs& procfs) : procfs_(procfs) {}
  // It starts without a filter. name: as its launcher has it. What that leaves out: its class's limits; or, with the
  // seccomp observer, all that swapd does.
  void runs_without(pid_t pid, const std::string& name, const std::string& class_name, bool managed);
  // Its call of seccomp(2) for a listener has just been let through, and fails.
  void fails(pid_t tid);
  // One line for each of the last few, the newest last.
  [[nodiscard]] std::vector<std::string> lines() const;

 private:
  void tell(std::string line);

  const sys::Procfs& procfs_;
  mutable std::mutex mutex_;
  std::deque<std::string> last_;
  std::uint64_t total_ = 0;
};

// A program's name as a launcher gave it: without what could spoil a line.
[[nodiscard]] std::string name_for_line(std::string name);

}  // namespace swapd::daemon
