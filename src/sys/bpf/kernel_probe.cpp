#include "sys/bpf/kernel_probe.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <unistd.h>

#include <array>
#include <string_view>

#include "learn.skel.h"
#include "sys/bpf/skeleton.h"

namespace swapd::sys {

namespace {

bool is_initial_pid_namespace() {
  constexpr std::string_view initial = "pid:[4026531836]";  // PROC_PID_INIT_INO
  std::array<char, 32> own{};
  const ssize_t size = ::readlink("/proc/self/ns/pid", own.data(), own.size());
  return size > 0 && std::string_view(own.data(), static_cast<std::size_t>(size)) == initial;
}

Result<ProbedKernel> run_learn() {
  const auto program = load_skeleton<learn>("the BPF program that learns our pid namespace",
                                            [](learn& /*opened*/) { return Status(Done{}); });
  if (!program) return program.error();
  bpf_test_run_opts run{};
  run.sz = sizeof run;
  if (const int failed = bpf_prog_test_run_opts(bpf_program__fd((*program)->progs.learn), &run); failed != 0)
    return Error(-failed, "running the BPF program that learns our pid namespace");
  const auto& found = *(*program)->bss;
  return ProbedKernel{.namespace_at = found.own_namespace_at,
                      .namespace_level = found.own_namespace_level,
                      .regs_offset = found.own_regs_offset,
                      .refused = {}};
}

}  // namespace

Result<ProbedKernel> learn_kernel() {
  auto learnt = run_learn();
  if (learnt || !is_initial_pid_namespace()) return learnt;
  ProbedKernel nothing;
  nothing.refused = refusal_of(learnt.error());
  return nothing;
}

}  // namespace swapd::sys
