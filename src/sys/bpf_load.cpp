#include "sys/bpf_load.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <utility>

#include "sys/bpf/layout.h"
#include "sys/bpf_errors.h"
#include "sys/bpf_learn.h"
#include "sys/bpf_places.h"
#include "tracer.skel.h"

namespace swapd::sys {

namespace {

Result<LoadedTracer> load_with(const BpfOptions& options, const KernelPlaces& places, const Learnt& learnt,
                               const SoftirqCode& code, bool can_cast) {
  const FirstWarning warning;
  LoadedTracer loaded;
  loaded.programs.reset(tracer__open());
  tracer* programs = loaded.programs.get();
  if (programs == nullptr) return FirstWarning::error(errno, "opening the BPF programs");
  auto* constants = programs->rodata;
  constants->slot_mask = options.slots - 1;
  constants->wake_at_bytes = options.wake_at_bytes;
  tell_namespace(*constants, learnt);
  constants->regs_offset = learnt.regs_offset;
  constants->can_cast = can_cast ? 1 : 0;
  constants->runqueues_at = places.runqueues;
  constants->pcpu_hot_at = places.pcpu_hot;
  constants->preempt_count_at = places.preempt_count;
  constants->hardirq_stack_ptr_at = places.hardirq_stack_ptr;
  constants->hardirq_stack_inuse_at = places.hardirq_stack_inuse;
  constants->softnet_data_at = can_cast ? places.softnet_data : 0;
  // With neither, nobody has any use for it.
  const bool notes_softirqs = constants->softnet_data_at == 0 && code[0].end != 0;
  bpf_program__set_autoload(programs->progs.on_softirq, notes_softirqs);
  for (bpf_program* one : {programs->progs.on_switch, programs->progs.on_waking, programs->progs.on_softirq})
    bpf_program__set_autoattach(one, false);  // BpfTracer::follow()
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
  if (const int failed = tracer__attach(programs); failed != 0)
    return FirstWarning::error(-failed, "attaching the BPF programs");
  return loaded;
}

}  // namespace

void TracerDeleter::operator()(tracer* programs) const { tracer__destroy(programs); }

Result<LoadedTracer> load_tracer(const BpfOptions& options) {
  if (::access(options.btf.c_str(), R_OK) != 0)
    return Error(ENOTSUP, "the kernel has no BTF (" + options.btf + ", CONFIG_DEBUG_INFO_BTF)");
  if (Status allowed = check_bpf_privilege(); !allowed) return std::move(allowed).error();
  const auto places = kernel_places(options.btf);
  if (!places) return places.error();
  auto learnt = learn_kernel();
  if (!learnt) return std::move(learnt).error();
  std::ifstream kallsyms(options.kallsyms);
  const SoftirqCode code = softirq_code(kallsyms);

  auto loaded = load_with(options, *places, *learnt, code, places->rdonly_cast && !options.old_helpers);
  if (!loaded && places->rdonly_cast && !options.old_helpers) {
    // A verifier that knows the cast, but does not take what is done with it.
    if (auto without = load_with(options, *places, *learnt, code, false)) return without;
  }
  return loaded;
}

}  // namespace swapd::sys
