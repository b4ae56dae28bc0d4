// Arithmetic on scheduling attributes that actuation needs. Pure.
#pragma once

#include <cstdint>

#include "base/sched_attr.h"

namespace swapd::actuate {

// Attributes that the kernel gives a child of a thread with these (sched(7), "The reset-on-fork flag"): a real-time
// parent's becomes an ordinary nice 0, a nice below 0 becomes 0, the slice becomes the default one, and the flag is not
// inherited.
[[nodiscard]] SchedAttr inherited(const SchedAttr& parent);

// Attributes to set for a thread with these of its own that is boosted with `lent`: lent's class and priority, and, if
// both classes are fair, the slice that is lent, or half the default one (0: the kernel has none), or its own if that
// is shorter. A shorter slice does not buy more of the CPU; it lets a thread that is owed CPU time have it when it
// wakes or is boosted (EEVDF, PREEMPT_SHORT), instead of when another thread's slice ends.
[[nodiscard]] SchedAttr merged(const SchedAttr& own, const SchedAttr& lent, std::uint64_t default_slice_ns);

// The own attributes of a thread that had `base`, was set to `set`, and has `seen` because another program has changed
// it. sched_setscheduler(2) keeps the slice, and setpriority(2) the reset-on-fork flag and the class too, so what of
// them is ours is not theirs: a thread that was lowered to SCHED_IDLE and then reniced is not idle by itself.
[[nodiscard]] SchedAttr without_ours(const SchedAttr& seen, const SchedAttr& base, const SchedAttr& set);
// Whether a thread that has `set` may give itself `seen` without any privilege (sched(7)): a lower real-time priority,
// a higher nice value, an ordinary class.
[[nodiscard]] bool within(const SchedAttr& seen, const SchedAttr& set);

// The weight that the kernel's fair class gives a nice value, 1024 at nice 0: a factor of 1.25 a step
// (sched_prio_to_weight in kernel/sched/core.c, whose rounding is part of the interface).
[[nodiscard]] std::uint64_t weight_of_nice(int nice);

}  // namespace swapd::actuate
