// From the kernel's records to latencies. Pure.
#pragma once

#include <vector>

#include "harness/kernel_events.h"
#include "harness/shared.h"

namespace swapd::bench {

struct Seen {
  std::vector<KernelEvent> blocks;   // the requester left its CPU to sleep
  std::vector<KernelEvent> entered;  // somebody entered sched_setattr for the provider
  std::vector<KernelEvent> left;     // somebody left sched_setattr; the value is what it returned
  std::vector<KernelEvent> took;     // the provider had a CPU from here …
  std::vector<KernelEvent> lost;     // … to here
};

struct Latencies {
  std::vector<double> ms;
  std::vector<double> without_cpu_ms;  // of each, the time that the provider had no CPU: the inversion's
  int missed = 0;                      // waits without a block, or without new attributes before their end
};

// Per wait: from the first block in it to the first return of a sched_setattr for the provider that was entered after
// the block, succeeded, and came back before the wait's end.
[[nodiscard]] Latencies latencies(const std::vector<WaitWindow>& waits, Seen seen);

}  // namespace swapd::bench
