// Arithmetic on scheduling attributes that actuation needs. Pure.
#pragma once

#include <cstdint>

#include "base/sched_attr.h"

namespace swapd::actuate {

// What the kernel gives a child of a thread with these attributes (sched(7), "The reset-on-fork flag"): a real-time
// parent's becomes an ordinary nice 0, a nice below 0 becomes 0, the slice becomes the default one, and the flag is not
// inherited.
[[nodiscard]] SchedAttr inherited(const SchedAttr& parent);

// What to set for a thread with these attributes of its own that is lent `lent`: lent's class and priority, and of
// its own what the two classes have in common (the slice).
[[nodiscard]] SchedAttr merged(const SchedAttr& own, const SchedAttr& lent);

// The weight that the kernel's fair class gives a nice value, 1024 at nice 0: a factor of 1.25 a step
// (sched_prio_to_weight in kernel/sched/core.c, whose rounding is part of the interface).
[[nodiscard]] std::uint64_t weight_of_nice(int nice);

}  // namespace swapd::actuate
