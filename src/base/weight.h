// Weights of CPU groups as cpu.weight has them (1 to 10000, Documentation/admin-guide/cgroup-v2.rst), and the nice
// values that are worth as much.
#pragma once

#include <cstdint>

#include "base/sched_attr.h"

namespace swapd {

using Weight = std::uint32_t;
inline constexpr Weight usual_weight = 100;  // of a group of which nothing is said, and of nice 0

// The nice value of that worth, -20…19: as in the kernel's table (kernel/sched/core.c, sched_prio_to_weight) each step
// is a factor of 1.25. 100 is nice 0, 1000 is nice -10. weight: above 0.
[[nodiscard]] int nice_of_weight(double weight);

// A thread with the attributes `own`, whose group has `weight`, counts as this towards threads of a group of weight
// `other`: as many nice steps better as its group weighs more, and never worse. Real-time, deadline and SCHED_IDLE
// threads are what they are, whatever their group weighs.
[[nodiscard]] SchedAttr raised_by(const SchedAttr& own, Weight weight, Weight other = usual_weight);

}  // namespace swapd
