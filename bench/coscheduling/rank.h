// A rank of our own parallel job: a process that exchanges a token or meets the others at a barrier through shared
// memory, and receives in one of the four ways of [DCS97 §4.1.1, §5.4.1]: it spins, gives up its CPU between looks,
// spins for a while and then sleeps, or sleeps at once.
#pragma once

#include <cstdint>

#include "coscheduling/job_area.h"

namespace swapd::bench {

// Waits until the word is another than `seen`.
void await_change(JobCell& cell, std::uint32_t seen, JobReceive receive, std::int64_t spin_ns);

// A barrier of `ranks`: the last one to arrive lets all go on.
void pass_barrier(JobArea& area);

// `swapbench --cosched-rank AREA INDEX`, and a competitor that is a program: `swapbench --cosched-competitor CPU
// SECONDS`.
[[nodiscard]] int run_cosched_rank(int argc, char** argv);
[[nodiscard]] int run_cosched_competitor(int argc, char** argv);

}  // namespace swapd::bench
