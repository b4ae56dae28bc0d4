// When a look that costs CPU time may be taken. All looks together take 1/times of a CPU, of which what was not used in
// the last five seconds is saved. Costs are CPU time: a look that is preempted costs no more. Pure.
#pragma once

#include <algorithm>

#include "base/time.h"

namespace swapd {

class LookCredit {
 public:
  static constexpr Duration saved = std::chrono::seconds(5);
  explicit LookCredit(int times) : times_(times) {}
  [[nodiscard]] Time next() const { return next_; }  // a look may be taken then
  void pay(Duration cost, Time now) { next_ = std::max(next_, now - saved) + times_ * cost; }

 private:
  int times_;
  Time next_{};
};

}  // namespace swapd
