// Processes that hold a file lock which a waiter's request conflicts with: by the fdinfo of their descriptors, or as
// the kernel names the owners of POSIX locks in /proc/locks. One caller at a time.
#pragma once

#include <sys/types.h>

#include <vector>

#include "base/resource.h"
#include "base/time.h"
#include "observe/resolve/fd_cache.h"
#include "sys/procfs/procfs.h"

namespace swapd::observe {

class LockHolders {
 public:
  LockHolders(const sys::Procfs& procfs, const Clock& clock, FdCache& fds)
      : procfs_(procfs), clock_(clock), fds_(fds) {}

  // Reads what the thread asks for; the others answer for this request. Which record locks conflict depends on it, and
  // the resource does not tell: a reader waits for writers only.
  void read_request(pid_t tid, pid_t tgid, const Resource& record_lock);
  // flock(2) or fcntl(2) locks.
  [[nodiscard]] bool holds(const Resource& lock, pid_t pid, Duration max_age);
  // For owners whose descriptors cannot be read. Each look waits for an RCU grace period and makes the lock calls of
  // the whole machine slower meanwhile, so there is one a second at most.
  [[nodiscard]] std::vector<pid_t> named_owners(const Resource& record_lock);

 private:
  struct Request {
    pid_t tgid = 0;
    bool write = true;
    bool posix = true;  // F_SETLKW, not F_OFD_SETLKW
  };
  const sys::Procfs& procfs_;
  const Clock& clock_;
  FdCache& fds_;
  Request request_;
  std::vector<sys::LockLine> locks_;
  Time locks_read_{};
};

}  // namespace swapd::observe
