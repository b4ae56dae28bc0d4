#include "sys/bpf_learn.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <cerrno>
#include <memory>

#include "learn.skel.h"
#include "sys/bpf_errors.h"

namespace swapd::sys {

Result<Learnt> learn_kernel() {
  const FirstWarning warning;
  const std::unique_ptr<learn, decltype([](learn* opened) { learn__destroy(opened); })> program(learn__open());
  if (program == nullptr) return FirstWarning::error(errno, "opening the BPF program that learns our pid namespace");
  if (const int failed = learn__load(program.get()); failed != 0)
    return FirstWarning::error(-failed, "loading the BPF program that learns our pid namespace");
  bpf_test_run_opts run{};
  run.sz = sizeof run;
  if (const int failed = bpf_prog_test_run_opts(bpf_program__fd(program->progs.learn), &run); failed != 0)
    return Error(-failed, "running the BPF program that learns our pid namespace");
  const auto& found = *program->bss;
  return Learnt{found.own_namespace_at, found.own_namespace_level, found.own_regs_offset};
}

}  // namespace swapd::sys
