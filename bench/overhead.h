// What the parts of `overhead` share.
#pragma once

#include "harness/workload.h"

namespace swapd::bench {

// A call that does nothing, and the history under which the seccomp observer traps it.
struct Probe {
  const char* call;
  const char* history;  // null: whatever it is
  int nr;
  int batch;   // calls a batch for each of --iterations
  int rounds;  // batches of each for each of --repeat
};

// One batch after the other of a plain process, of one under a bare supervisor where `bare`, and of one under swapd.
[[nodiscard]] Result<std::vector<Row>> price_per_call(const Context& context, const Probe& probe, bool bare);
// client-server without work, of each mechanism, at most `repeat` times.
[[nodiscard]] Result<std::vector<Row>> price_per_iteration(const Context& context, int repeat);

// --observe bpf, where nothing is trapped.
[[nodiscard]] Result<std::vector<Row>> overhead_of_bpf(const Context& context);
// Of the loads: ping, pong, hack, spawn.
[[nodiscard]] Status load_role(Role& role);

}  // namespace swapd::bench
