#include "actuate/head_start.h"

#include "sys/procfs/ticks.h"

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

bool newborn(std::uint64_t start_time) { return sys::ticks_since_boot() <= start_time + 1; }

}  // namespace swapd::actuate
