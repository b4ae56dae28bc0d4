// Tells the control thread that the managed set has changed since it looked last: once, however often it changes.
#pragma once

#include <sys/eventfd.h>

#include <atomic>

#include "base/fd.h"
#include "sys/process/eventfd.h"

namespace swapd::daemon {

class MembershipSignal {
 public:
  void set() {  // engine thread
    if (!told_.exchange(true)) sys::signal_eventfd(fd_.get());
  }
  void clear() {  // control thread, before it looks
    sys::clear_eventfd(fd_.get());
    told_.store(false);
  }
  [[nodiscard]] int fd() const { return fd_.get(); }  // readable while it is set

 private:
  Fd fd_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::atomic<bool> told_{false};
};

}  // namespace swapd::daemon
