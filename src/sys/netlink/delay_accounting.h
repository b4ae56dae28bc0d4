// How long threads have waited for the disk, as delay accounting has it (taskstats, by generic netlink;
// Documentation/accounting/delay-accounting.rst). It is off by default (sysctl kernel.task_delayacct), and of threads
// that are older than its being switched on it knows nothing.
#pragma once

#include <sys/types.h>

#include <memory>

#include "base/result.h"
#include "base/time.h"

struct nl_sock;

namespace swapd::sys {

class TaskDelays {
 public:
  // ENOTSUP: it is switched off, or not in this kernel. EPERM: CAP_NET_ADMIN is missing.
  [[nodiscard]] static Result<TaskDelays> open();

  // In all, of this thread. ESRCH: it has ended.
  [[nodiscard]] Result<Duration> block_io(pid_t tid);

 private:
  struct Free {
    void operator()(nl_sock* socket) const;
  };
  TaskDelays(std::unique_ptr<nl_sock, Free> socket, int family) : socket_(std::move(socket)), family_(family) {}

  std::unique_ptr<nl_sock, Free> socket_;
  int family_;
};

}  // namespace swapd::sys
