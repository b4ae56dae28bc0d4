// The process connector: fork, exec and exit of every thread on the machine, and where asked for what processes become
// (connector/netlink, cn_proc.h), through libnl. Needs CAP_NET_ADMIN in the initial namespaces; where it cannot be had,
// membership is learnt from notifications and scans.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"

struct nl_sock;

namespace swapd::sys {

struct ProcEvent {
  enum class What : std::uint8_t { fork, exec, exit, renamed, other_user } what = What::fork;
  pid_t tid = 0;  // the child, the one that execs, exits, changes
  pid_t tgid = 0;
  // fork only. Of a new process: the thread that forked (or with CLONE_PARENT that thread's parent). Of a new thread,
  // where tid is not tgid: its own process and main thread, because the kernel does not tell which thread made it.
  pid_t parent_tid = 0;
  pid_t parent_tgid = 0;
  // 0 if the source does not tell it. fork: as in ThreadId. exec: the tid before, of a thread that was not the first.
  std::uint64_t start_time = 0;
  pid_t former_tid = 0;
};

class ProcEvents {
 public:
  struct Wanted {
    bool fork = false, exec = false, exit = false;
    bool renamed = false, other_user = false;  // of main threads only; any of a thread's user ids
  };
  [[nodiscard]] static Result<std::unique_ptr<ProcEvents>> open(const Wanted& wanted);
  [[nodiscard]] static Result<std::unique_ptr<ProcEvents>> open() {
    return open({.fork = true, .exec = true, .exit = true});
  }
  ProcEvents(const ProcEvents&) = delete;
  ProcEvents& operator=(const ProcEvents&) = delete;
  ~ProcEvents();
  [[nodiscard]] int fd() const;  // non-blocking; polls readable
  // Up to `most` events. ENOBUFS: some were lost; the caller must rescan.
  [[nodiscard]] Result<std::size_t> read(ProcEvent* out, std::size_t most);

 private:
  explicit ProcEvents(nl_sock* socket);
  nl_sock* socket_;
};

}  // namespace swapd::sys
