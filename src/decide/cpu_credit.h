// CPU time that swapd may still use: a token bucket of it. It fills at a part of the budget's share of one CPU and
// holds what comes in five seconds; what swapd's threads use is taken out. While there is any, swapd does everything at
// once. Without any, each thing that it does waits until it is paid for, but no longer than `max_wait`: so a load that
// needs more than the budget is helped some milliseconds late, and what needs no help any more by then costs nothing.
// A load that goes on so until the debt is more than half of the greatest waits longer, up to `longest_wait`: as long
// as the budget needs, where a turn costs no more than a millisecond and a half. With 128 ms events are lost.
//
// A debt is at most what comes in one second: swapd does not pay for ever for two thousand threads that were enrolled.
// Pure: time and CPU time are parameters.
#pragma once

#include "base/time.h"

namespace swapd::decide {

class CpuCredit {
 public:
  static constexpr Duration saved = std::chrono::seconds(5);
  static constexpr Duration owed = std::chrono::seconds(1);
  static constexpr Duration max_wait = std::chrono::milliseconds(8);
  static constexpr Duration longest_wait = std::chrono::milliseconds(32);  // with all of `owed` in debt

  // part: of the budget, that comes in.
  explicit CpuCredit(double part) : part_(part) {}

  // share: the budget in force, of one CPU; cpu: that swapd has used in all, which may become less (what was found out
  // not to count). The first call finds the bucket full; while a clock goes back nothing comes in.
  void update(Time now, Duration cpu, double share);
  // As of the last update.
  [[nodiscard]] bool in_debt() const { return credit_ < Duration::zero(); }
  [[nodiscard]] Duration wait() const;

 private:
  double part_;
  Time last_ = never;  // update
  Duration cpu_{};     // used until then
  Duration credit_{};  // the time in which it comes in; negative: a debt
};

}  // namespace swapd::decide
