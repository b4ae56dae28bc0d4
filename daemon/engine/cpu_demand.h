// How much of the time threads have or want a CPU: what they have used and waited for it (proc(5), schedstat), against
// the clock. A thread that sleeps most of the time needs no CPU of its own when its job runs together. Pure.
#pragma once

#include <sys/types.h>

#include <map>

#include "base/time.h"

namespace swapd::daemon {

class CpuDemand {
 public:
  static constexpr double little = 0.1;  // of the time: it sleeps
  // so_far: CPU time that the thread has used and waited for, in all. The kernel counts a wait when it ends, so
  // `runnable` says that the thread has or wants a CPU now.
  void look(pid_t tid, Duration so_far, bool runnable, Time now);
  // 0…1, lately; 1: it was looked at once at most.
  [[nodiscard]] double of(pid_t tid) const;
  void forget_before(Time time);  // threads that were not looked at since

 private:
  static constexpr double newest = 0.5;  // part of the last time between two looks in what is remembered
  struct Last {
    Duration so_far{};
    Time at{};
    double part = 1;
    bool known = false;
  };
  std::map<pid_t, Last> threads_;
};

}  // namespace swapd::daemon
