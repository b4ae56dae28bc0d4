#include "actuate/head_start.h"

#include <time.h>
#include <unistd.h>

namespace swapd::actuate {

SchedAttr head_start() {
  SchedAttr attr;
  attr.policy = SchedPolicy::fifo;
  attr.rt_priority = 1;
  attr.reset_on_fork = true;
  return attr;
}

bool takes_head_start(const SchedAttr& own, const SchedAttr& set) {
  return !own.realtime() && set.policy == SchedPolicy::other && set.nice < 0;
}

bool newborn(std::uint64_t start_time) {
  static const auto per_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  const std::uint64_t ticks = static_cast<std::uint64_t>(now.tv_sec) * per_second +
                              static_cast<std::uint64_t>(now.tv_nsec) * per_second / 1'000'000'000;
  return ticks <= start_time + 1;
}

}  // namespace swapd::actuate
