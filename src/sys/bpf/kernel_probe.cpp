#include "sys/bpf/kernel_probe.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <string_view>

#include "learn.skel.h"
#include "sys/bpf/bpf_errors.h"
#include "sys/bpf/bpf_pieces.h"

namespace swapd::sys {

namespace {

bool is_initial_pid_namespace() {
  constexpr std::string_view initial = "pid:[4026531836]";  // PROC_PID_INIT_INO
  std::array<char, 32> own{};
  const ssize_t size = ::readlink("/proc/self/ns/pid", own.data(), own.size());
  return size > 0 && std::string_view(own.data(), static_cast<std::size_t>(size)) == initial;
}

Result<KernelProbe> run_learn() {
  const FirstWarning warning;
  const std::unique_ptr<learn, decltype([](learn* opened) { learn__destroy(opened); })> program(learn__open());
  if (program == nullptr) return FirstWarning::error(errno, "opening the BPF program that learns our pid namespace");
  prepare_load(program->obj, {});
  if (const int failed = learn__load(program.get()); failed != 0)
    return FirstWarning::error(-failed, "loading the BPF program that learns our pid namespace");
  bpf_test_run_opts run{};
  run.sz = sizeof run;
  if (const int failed = bpf_prog_test_run_opts(bpf_program__fd(program->progs.learn), &run); failed != 0)
    return Error(-failed, "running the BPF program that learns our pid namespace");
  const auto& found = *program->bss;
  return KernelProbe{.namespace_at = found.own_namespace_at,
                     .namespace_level = found.own_namespace_level,
                     .regs_offset = found.own_regs_offset,
                     .refused = {}};
}

}  // namespace

Result<KernelProbe> learn_kernel() {
  auto learnt = run_learn();
  if (learnt || !is_initial_pid_namespace()) return learnt;
  KernelProbe nothing;
  nothing.refused = refusal_of(learnt.error());
  return nothing;
}

}  // namespace swapd::sys
