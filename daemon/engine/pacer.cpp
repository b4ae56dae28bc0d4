#include "engine/pacer.h"

#include <algorithm>
#include <utility>

namespace swapd::daemon {

namespace {
constexpr int busy_part = 4;   // more than one part in so many of a CPU is much …
constexpr int idle_part = 10;  // … and less than that is little
constexpr int early_part = 5;  // so much of a tick before it is due, a turn is the tick
}  // namespace

bool Pacer::begin_tick(Time now) {
  if (now < next_tick_ - tick_ / early_part) return false;
  next_tick_ = now + tick_;
  return true;
}

Time Pacer::next_tick(bool any_members, bool idle) const {
  if (!any_members) return Time::max();
  return idle ? std::max(next_tick_, next_tick_ - tick_ + idle_tick_) : next_tick_;
}

Duration Pacer::before(std::optional<Time> due, Duration wanted, Time now) {
  return due ? std::min(wanted, std::max<Duration>(*due - now, Duration::zero())) : wanted;
}

void Pacer::measure(Duration cpu_used, Time now) {
  const Duration lately = cpu_used - std::exchange(cpu_used_, cpu_used);
  const Duration passed = std::max(now - std::exchange(measured_, now), tick_);
  if (lately > passed / busy_part) {
    delay_ = std::clamp(2 * delay_, min_delay, max_delay);
    return;
  }
  if (lately >= passed / idle_part) return;
  for (auto ticks = passed / tick_; ticks > 0 && delay_ > Duration::zero(); --ticks)
    delay_ = delay_ > min_delay ? delay_ / 2 : Duration::zero();
}

}  // namespace swapd::daemon
