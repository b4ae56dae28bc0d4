// A newborn thread with a boost by nice gets the CPU at once.
//
// EEVDF owes a newborn nothing yet, and leaves the thread that runs on its CPU its slice. A nice value that comes a
// moment after birth is worth nothing until that slice and those of the longest starved are over. With SCHED_FIFO 1 for
// that moment the newborn is where a birth with the nice value would have put it, and what it then uses it is charged
// for. Source: kernel/sched/fair.c, place_entity() and protect_slice().
#pragma once

#include "base/sched_attr.h"
#include "base/time.h"

namespace swapd::actuate {

// Its attributes meanwhile: FIFO 1 with reset-on-fork.
[[nodiscard]] SchedAttr head_start();
// Whether it may have one: the boost is a nice value below 0, and the thread is ordinary.
[[nodiscard]] bool takes_head_start(const SchedAttr& own, const SchedAttr& set);
// Long enough for another CPU to take the thread up.
inline constexpr Duration head_start_time = std::chrono::microseconds(50);
// start_time: as in /proc/TID/stat. True for the first 10 to 20 ms of its life.
[[nodiscard]] bool newborn(std::uint64_t start_time);

}  // namespace swapd::actuate
