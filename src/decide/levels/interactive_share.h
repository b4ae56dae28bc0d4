// A bound on the CPU time that all threads above their base levels have together, so that programs which look
// interactive cannot take the machine. Pure.
#pragma once

#include <algorithm>

#include "base/time.h"

namespace swapd::decide {

class InteractiveShare {
 public:
  // share: of one CPU. burst: what may be saved.
  explicit InteractiveShare(double share, Duration burst = std::chrono::seconds(1))
      : share_(share), burst_(burst), credit_(burst) {}
  // A thread above its base level has used so much.
  void use(Duration cpu, Time now) {
    come_in(now);
    credit_ = std::max(credit_ - cpu, -burst_);
  }
  // Whether threads may be above their base levels.
  [[nodiscard]] bool lasts(Time now) {
    come_in(now);
    return credit_ > Duration::zero();
  }
  // When it lasts again.
  [[nodiscard]] Time lasts_at(Time now) const {
    if (credit_ > Duration::zero() || share_ <= 0) return now;
    return now + std::chrono::duration_cast<Duration>((-credit_ + std::chrono::milliseconds(10)) / share_);
  }

  template <typename Self, typename Archive>
  static void state(Self& self, Archive& archive) {
    archive(self.credit_, self.as_of_);
  }

 private:
  void come_in(Time now) {
    if (as_of_ != never && now > as_of_)
      credit_ = std::min(credit_ + std::chrono::duration_cast<Duration>((now - as_of_) * share_), burst_);
    if (as_of_ == never || now > as_of_) as_of_ = now;
  }
  double share_;
  Duration burst_, credit_;
  Time as_of_ = never;
};

}  // namespace swapd::decide
