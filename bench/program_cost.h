// What the kernel programs of a swapd have cost, as the kernel has counted (bpf(2), BPF_ENABLE_STATS).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace swapd::bench {

struct ProgramCost {
  std::string name;
  std::uint64_t runs = 0;
  double total_ns = 0;  // with the measurement itself, some 50 ns a run
};

// Of the programs that this process holds, since they were loaded and while somebody measured
// (sys::BpfTracer::measure_costs). Others may have programs of the same name.
[[nodiscard]] std::vector<ProgramCost> program_costs(pid_t swapd);

}  // namespace swapd::bench
