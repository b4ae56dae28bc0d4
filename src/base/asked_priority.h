// A priority as it is asked for: by `swapctl set` and `run`, by a policy's rule.
#pragma once

#include <cstdint>

#include "base/sched_attr.h"

namespace swapd {

// Above this the kernel would run a program before swapd, which serves its calls and takes back its boosts, at
// SCHED_FIFO 93.
inline constexpr int max_realtime = 92;

struct AskedPriority {
  AskedPriority() = default;
  AskedPriority(const SchedAttr& wanted) : attr(wanted) {}
  // A nice value alone: each thread stays in its class, and keeps its flags, as with renice(1).
  [[nodiscard]] static AskedPriority only_nice(int nice) {
    AskedPriority asked(SchedAttr{.nice = static_cast<std::int8_t>(nice)});
    asked.nice_alone = true;
    return asked;
  }
  // The attributes of a thread that has `own` once this is applied. A real-time thread keeps its own: the kernel stores
  // its nice value for later, out of sight.
  [[nodiscard]] SchedAttr over(const SchedAttr& own) const {
    if (!nice_alone) return attr;
    SchedAttr then = own;
    if (!own.realtime()) then.nice = attr.nice;
    return then;
  }

  SchedAttr attr;
  bool nice_alone = false;  // of `attr` the nice value alone is meant
  bool operator==(const AskedPriority&) const = default;
};

}  // namespace swapd
