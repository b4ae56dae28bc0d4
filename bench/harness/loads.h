// Loads of nothing but waits and wakes: a pipe ping-pong, one in the way of hackbench, and programs that come and go.
#pragma once

#include "mechanisms/role.h"

namespace swapd::bench {

// Both note their samples and say "done"; pong answers until it is ended.
[[nodiscard]] Status ping_role(Role& role, int round_trips);  // a sample: the mean of so many round trips
[[nodiscard]] Status pong_role(Role& role);
// Starts /bin/true and waits for its end; a sample: the mean of so many.
[[nodiscard]] Status spawn_role(Role& role, int programs);
// Two groups of ten threads that each send `loops` messages of 100 bytes to each of ten others, over unix sockets. One
// sample: the process's CPU time.
[[nodiscard]] Status hack_role(Role& role, int loops);

}  // namespace swapd::bench
