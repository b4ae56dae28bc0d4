// Addresses and offsets in the running kernel that a BPF program cannot ask for by name.
#pragma once

#include <array>
#include <cstdint>
#include <istream>
#include <string>

#include "base/result.h"

namespace swapd::sys {

// From BTF: offsets in the section of per-CPU variables.
struct KernelPlaces {
  std::uint64_t runqueues = 0;
  std::uint64_t pcpu_hot = 0;  // 6.2 to 6.14, with what follows inside
  std::uint64_t preempt_count = 0, hardirq_stack_ptr = 0, hardirq_stack_inuse = 0;
  bool rdonly_cast = false;        // the kernel has bpf_rdonly_cast (6.2)
  std::uint64_t softnet_data = 0;  // 0: does not tell that received packets are being handled (before 6.4)
};
// ENOTSUP, with the name of the variable, where the kernel is built in another way.
[[nodiscard]] Result<KernelPlaces> kernel_places(const std::string& btf);

// The parts of the kernel's code that call soft interrupts for a thread that enables them. Compilers split functions,
// so there may be several; none where the kernel hides its addresses (kernel.kptr_restrict, without CAP_SYSLOG).
struct CodePart {
  std::uint64_t first = 0, end = 0;
};
using SoftirqCode = std::array<CodePart, 4>;
// In the form of /proc/kallsyms.
[[nodiscard]] SoftirqCode softirq_code(std::istream& kallsyms);

}  // namespace swapd::sys
