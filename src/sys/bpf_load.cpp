#include "sys/bpf_load.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <utility>

#include "sys/bpf/layout.h"
#include "sys/bpf_errors.h"
#include "sys/bpf_places.h"
#include "tracer.skel.h"

namespace swapd::sys {

namespace {

Status run_once(const bpf_program* program, const char* what) {
  bpf_test_run_opts run{};
  run.sz = sizeof run;
  const int failed = bpf_prog_test_run_opts(bpf_program__fd(program), &run);
  if (failed != 0) return Error(-failed, what);
  return Done{};
}

Result<LoadedTracer> load_with(const BpfOptions& options, const KernelPlaces& places, const SoftirqCode& code,
                               bool can_cast) {
  const FirstWarning warning;
  LoadedTracer loaded;
  loaded.programs.reset(tracer__open());
  tracer* programs = loaded.programs.get();
  if (programs == nullptr) return FirstWarning::error(errno, "opening the BPF programs");
  auto* constants = programs->rodata;
  constants->slot_mask = options.slots - 1;
  constants->wake_at_bytes = options.wake_at_bytes;
  constants->can_cast = can_cast ? 1 : 0;
  constants->runqueues_at = places.runqueues;
  constants->pcpu_hot_at = places.pcpu_hot;
  constants->preempt_count_at = places.preempt_count;
  constants->hardirq_stack_ptr_at = places.hardirq_stack_ptr;
  constants->hardirq_stack_inuse_at = places.hardirq_stack_inuse;
  for (std::size_t i = 0; i < code.size(); ++i) {
    constants->own_softirq_first[i] = code.at(i).first;
    constants->own_softirq_end[i] = code.at(i).end;
  }
  loaded.names_softirq_senders = code[0].end != 0;
  if (bpf_map__set_max_entries(programs->maps.slots, options.slots) != 0 ||
      bpf_map__set_max_entries(programs->maps.ring, static_cast<std::uint32_t>(options.ring_bytes)) != 0)
    return FirstWarning::error(errno, "sizing the BPF maps");
  if (const int failed = tracer__load(programs); failed != 0)
    return FirstWarning::error(-failed, "loading the BPF programs");
  if (Status learnt = learn_namespace(programs->progs.learn_namespace); !learnt) return std::move(learnt).error();
  if (Status learnt = run_once(programs->progs.learn_stack, "running the BPF program that learns where registers are");
      !learnt)
    return std::move(learnt).error();
  if (const int failed = tracer__attach(programs); failed != 0)
    return FirstWarning::error(-failed, "attaching the BPF programs");
  return loaded;
}

}  // namespace

Status learn_namespace(const bpf_program* program) {
  return run_once(program, "running the BPF program that learns our pid namespace");
}

void TracerDeleter::operator()(tracer* programs) const { tracer__destroy(programs); }

Result<LoadedTracer> load_tracer(const BpfOptions& options) {
  if (::access(options.btf.c_str(), R_OK) != 0)
    return Error(ENOTSUP, "the kernel has no BTF (" + options.btf + ", CONFIG_DEBUG_INFO_BTF)");
  if (Status allowed = check_bpf_privilege(); !allowed) return std::move(allowed).error();
  const auto places = kernel_places(options.btf);
  if (!places) return places.error();
  std::ifstream kallsyms(options.kallsyms);
  const SoftirqCode code = softirq_code(kallsyms);

  auto loaded = load_with(options, *places, code, places->rdonly_cast && !options.old_helpers);
  if (!loaded && places->rdonly_cast && !options.old_helpers) {
    // A verifier that knows the cast, but does not take what is done with it.
    if (auto without = load_with(options, *places, code, false)) return without;
  }
  return loaded;
}

}  // namespace swapd::sys
