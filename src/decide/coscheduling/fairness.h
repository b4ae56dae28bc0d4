// May a message for a process without a CPU have that process run at once? Two rules, both local to one CPU. Pure.
//
// - The *predicate* bounds how often a process may be called: the time since its last call, stretched by 2^E and
//   lengthened by C, must reach the length of the run queue in time, Tq times R [DCS97 §4.2.1, (4.1)].
// - *Run-time equalisation* bounds what calls may cost the others: a process is called only if it lags the running
//   one by more than h of CPU time [DCS97 §3.2].
//
// The predicate needs no record of CPU time but only approximates a fair share; E and C are for a controller to move
// (controller.h). Equalisation is exact within h, but the closer to 0 h is, the more calls it refuses.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "base/time.h"

namespace swapd::decide::coscheduling {

// E and C of the predicate. A larger value of either permits calls more often.
struct CallTerms {
  double exponent = 0;  // E, a power of two
  Duration constant{};  // C; below zero: calls are rarer
  template <typename Self, typename Archive>
  static void state(Self& self, Archive& archive) {
    archive(self.exponent, self.constant);
  }
};

// The length of a run queue in time, as if each of its processes used its whole slice.
struct RunQueue {
  Duration slice{};       // Tq: the mean slice on this CPU
  unsigned runnable = 0;  // R: runnable processes on this CPU, with the running one
  [[nodiscard]] Duration length() const { return slice * runnable; }
};

// True if a call is fair now: 2^E (Tc - Tp) + C >= Tq R. `since_call` is Tc - Tp, the time since the last call that was
// granted to this process on this CPU; Duration::max() if there was none, which is fair unless C is below zero by more
// than any time can be.
[[nodiscard]] inline bool fair_to_call(Duration since_call, const CallTerms& terms, const RunQueue& queue) {
  const double stretched = std::exp2(terms.exponent) * static_cast<double>(since_call.count());
  return stretched + static_cast<double>(terms.constant.count()) >= static_cast<double>(queue.length().count());
}

// True if a process lags the running one enough for a call: `called` + h < `running`, where both are CPU time used
// since the youngest of the CPU's processes began. h below zero lets a process be ahead by that much and still be
// called; the more it is below zero, the more volatile the schedule is.
[[nodiscard]] constexpr bool lags(Duration called, Duration running, Duration history) {
  return called + history < running;
}

// CPU time of the processes of one CPU since the youngest of them began to run. Places are small numbers that the
// caller gives to processes.
class RunTimes {
 public:
  RunTimes() = default;
  explicit RunTimes(std::size_t places) : used_(places, Duration::zero()) {}

  // A process has begun: all count from here.
  void join(std::size_t place) {
    used_.resize(std::max(used_.size(), place + 1));
    std::ranges::fill(used_, Duration::zero());
  }
  void ran(std::size_t place, Duration time) { used_[place] += time; }
  [[nodiscard]] Duration of(std::size_t place) const { return used_[place]; }
  [[nodiscard]] std::size_t places() const { return used_.size(); }
  [[nodiscard]] bool may_call(std::size_t called, std::size_t running, Duration history) const {
    return lags(used_[called], used_[running], history);
  }

  template <typename Self, typename Archive>
  static void state(Self& self, Archive& archive) {
    archive(self.used_);
  }

 private:
  std::vector<Duration> used_;
};

}  // namespace swapd::decide::coscheduling
