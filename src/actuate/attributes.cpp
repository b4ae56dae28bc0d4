#include "actuate/attributes.h"

#include <algorithm>
#include <array>

namespace swapd::actuate {
namespace {

// The kernel takes none below (sched_setattr(2), 0.1 to 100 ms).
constexpr std::uint64_t shortest_slice_ns = 100'000;

bool fair(const SchedAttr& attr) { return !attr.realtime(); }

}  // namespace

SchedAttr inherited(const SchedAttr& parent) {
  SchedAttr child = parent;
  child.reset_on_fork = false;
  if (!parent.reset_on_fork) return child;
  if (parent.realtime()) return {};
  child.nice = std::max<std::int8_t>(parent.nice, 0);
  child.runtime_ns = 0;
  return child;
}

SchedAttr merged(const SchedAttr& own, const SchedAttr& lent, std::uint64_t default_slice_ns) {
  SchedAttr set = lent;
  set.reset_on_fork = true;
  if (!fair(own) || !fair(lent)) return set;
  std::uint64_t shorter = lent.runtime_ns != 0 && default_slice_ns != 0 ? lent.runtime_ns : default_slice_ns / 2;
  if (shorter < shortest_slice_ns) shorter = 0;
  // Going back to SCHED_IDLE does not take a slice away again.
  const bool shorten =
      shorter != 0 && own.policy != SchedPolicy::idle && (own.runtime_ns == 0 || own.runtime_ns > shorter);
  set.runtime_ns = shorten ? shorter : own.runtime_ns;
  return set;
}

SchedAttr without_ours(const SchedAttr& seen, const SchedAttr& base, const SchedAttr& set) {
  SchedAttr own = seen;
  if (fair(seen) && fair(set) && seen.runtime_ns == set.runtime_ns) own.runtime_ns = base.runtime_ns;
  if (seen.policy == set.policy && seen.reset_on_fork == set.reset_on_fork) {
    own.reset_on_fork = base.reset_on_fork;
    if (set.policy == SchedPolicy::idle) own.policy = base.policy;
  }
  return own;
}

bool within(const SchedAttr& seen, const SchedAttr& set) {
  if (seen.policy == SchedPolicy::deadline || set.policy == SchedPolicy::deadline) return false;
  if (seen.realtime()) return set.realtime() && seen.rt_priority <= set.rt_priority;
  return seen.nice >= set.nice;
}

std::uint64_t weight_of_nice(int nice) {
  static constexpr std::array<std::uint64_t, 40> weights = {
      88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916,  // -20…-11
      9548,  7620,  6100,  4904,  3906,  3121,  2501,  1991,  1586,  1277,   // -10…-1
      1024,  820,   655,   526,   423,   335,   272,   215,   172,   137,    // 0…9
      110,   87,    70,    56,    45,    36,    29,    23,    18,    15,     // 10…19
  };
  const int index = std::clamp(nice, -20, 19) + 20;
  return weights[static_cast<std::size_t>(index)];
}

}  // namespace swapd::actuate
