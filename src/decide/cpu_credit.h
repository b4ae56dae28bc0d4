// CPU time that swapd may still use: a token bucket of it. It fills at nine tenths of the budget's share of one CPU and
// holds what comes in two seconds; what swapd's threads use is taken out. While there is any, swapd does everything at
// once. Without any, each thing that it does waits until it is paid for, but no longer than `max_wait`: so a load that
// needs more than the budget is helped some milliseconds late, and what needs no help any more by then costs nothing.
//
// So swapd uses 1.26 times the budget at most in any five seconds, and no more than it in any twenty; patience
// (decide/observation_budget.h) is for the loads that need more even so. A debt is at most what comes in one second:
// swapd does not pay for ever for two thousand threads that were enrolled. Pure: time and CPU time are parameters.
#pragma once

#include "base/time.h"

namespace swapd::decide {

class CpuCredit {
 public:
  static constexpr double part = 0.9;  // of the budget
  static constexpr Duration saved = std::chrono::seconds(2);
  static constexpr Duration owed = std::chrono::seconds(1);
  static constexpr Duration max_wait = std::chrono::milliseconds(8);

  // share: the budget in force, of one CPU; cpu: that swapd has used in all, which may become less (what was found out
  // not to count). How long to wait. The first call finds the bucket full; while a clock goes back nothing comes in.
  Duration wait(Time now, Duration cpu, double share);

 private:
  Time last_ = never;
  Duration cpu_{};     // used until then
  Duration credit_{};  // negative: a debt
};

}  // namespace swapd::decide
