// What the guard does for the processes that swapd has frozen (freezer_groups.h).
#pragma once

#include <span>

#include "base/guard_memory.h"
#include "base/time.h"

namespace swapd::daemon {

class GuardFrozen {
 public:
  explicit GuardFrozen(std::span<FrozenGroup> groups) : groups_(groups) {}

  // Those at whom swapd has not looked when it said that it would.
  void thaw_overdue(Time before);
  // swapd has ended: all, also one that it was about to freeze.
  void thaw_all();
  // Some could not be; thaw_all() tries again.
  [[nodiscard]] bool are_left() const { return left_; }

 private:
  std::span<FrozenGroup> groups_;
  bool left_ = false;
};

}  // namespace swapd::daemon
