// Values that kernel programs are given as they are loaded (programs/learn.bpf.c finds them).
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace swapd::sys {

struct ProbedKernel {
  // Our pid namespace and its depth: where that is not 0, the kernel's ids are not ours (programs/ids.bpf.h).
  std::uint64_t namespace_at = 0;
  std::uint32_t namespace_level = 0;
  std::uint64_t regs_offset = 0;  // of a thread's saved registers in its stack
  std::string refused;  // why the kernel refused the program, in the initial pid namespace; then regs_offset is unknown
};
// In another pid namespace nothing can be done without it.
[[nodiscard]] Result<ProbedKernel> learn_kernel();

// constants: the .rodata of a program that includes programs/ids.bpf.h, before it is loaded.
template <typename Constants>
void tell_namespace(Constants& constants, const ProbedKernel& learnt) {
  constants.namespace_at = learnt.namespace_at;
  constants.namespace_level = learnt.namespace_level;
}

}  // namespace swapd::sys
