// The cost of kernel programs as the kernel has counted it while measuring was on (bpf(2), BPF_ENABLE_STATS).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/time.h"

namespace swapd::sys {

struct BpfProgramCost {
  std::string name;
  std::uint64_t runs = 0;
  Duration total{};  // with the measurement itself, see EmptyPrograms
};

// While the descriptor is open (any process's) the kernel measures all BPF programs, which slows them.
[[nodiscard]] Result<Fd> measure_bpf_costs();
// Costs since loading of the programs that the process holds, by descriptors of theirs or of their attachments. Other
// processes may have programs of the same name.
[[nodiscard]] std::vector<BpfProgramCost> bpf_costs(pid_t pid);

// Programs that do nothing, while this lives, wherever the tracer has one: empty_switch beside on_switch, and so on.
// Their measured cost is what it costs to measure a program at that place.
class EmptyPrograms {
 public:
  [[nodiscard]] static Result<EmptyPrograms> attach();

 private:
  std::shared_ptr<void> programs_;
};

}  // namespace swapd::sys
