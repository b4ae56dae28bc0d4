#include "base/sched_attr.h"

#include <algorithm>

#include "base/words.h"

namespace swapd {

int rank(const SchedAttr& attr) {
  switch (attr.policy) {
    case SchedPolicy::deadline:
      return 200;
    case SchedPolicy::fifo:
    case SchedPolicy::rr:
      return 100 + attr.rt_priority;
    case SchedPolicy::other:
    case SchedPolicy::batch:
      return 20 - attr.nice;
    case SchedPolicy::idle:
      return 0;
  }
  return 0;
}

SchedAttr lent_by(const SchedAttr& donor, const LendingRules& rules) {
  SchedAttr lent;
  lent.reset_on_fork = true;
  const auto realtime = [&](int priority) {
    if (rules.realtime_allowed) {
      lent.policy = SchedPolicy::fifo;
      lent.rt_priority = static_cast<std::uint8_t>(std::clamp<int>(priority, 1, rules.rt_ceiling));
    } else {
      lent.nice = -20;
    }
  };
  switch (donor.policy) {
    case SchedPolicy::deadline:
      realtime(rules.rt_ceiling);
      break;
    case SchedPolicy::fifo:
    case SchedPolicy::rr:
      realtime(donor.rt_priority - 1);
      break;
    case SchedPolicy::other:
    case SchedPolicy::batch:
      if (rules.strict && rules.realtime_allowed && donor.nice < 0)
        realtime(1);
      else
        lent.nice = donor.nice;
      break;
    case SchedPolicy::idle:
      lent.policy = SchedPolicy::idle;
      break;
  }
  return lent;
}

std::string_view name(SchedPolicy policy) {
  static constexpr auto policy_words = words<SchedPolicy>({{"other", SchedPolicy::other},
                                                           {"batch", SchedPolicy::batch},
                                                           {"idle", SchedPolicy::idle},
                                                           {"fifo", SchedPolicy::fifo},
                                                           {"rr", SchedPolicy::rr},
                                                           {"deadline", SchedPolicy::deadline}});
  return policy_words.of(policy);
}

}  // namespace swapd
