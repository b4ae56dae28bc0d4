#include "sys/bpf/bpf_load.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "sys/bpf/kernel_offsets.h"
#include "sys/bpf/programs/layout.h"
#include "sys/bpf/skeleton.h"
#include "tracer.skel.h"

namespace swapd::sys {

namespace {

constexpr std::array<std::string_view, 1> softirqs{"on_softirq"};
constexpr std::array<std::string_view, 3> lives{"on_fork", "on_exec", "on_exit"};  // a child that is not taken in …
constexpr std::array<BpfPiece, 2> tracer_pieces{softirqs, lives};  // … nor let go: all of them or none

// The conditions of a load, besides the kernel.
struct Known {
  KernelPlaces places;
  ProbedKernel learnt;
  SoftirqCode code;
  bool can_cast = false;
};

MissingPiece without_softirqs(std::string why) {
  return {"who sends over loopback (on_softirq)", std::move(why),
          "a wait that such traffic ends names nobody by it; who sent is learnt from other calls and by scans"};
}
MissingPiece without_lives(std::string why) {
  return {"births and ends of threads (on_fork, on_exec, on_exit)", std::move(why),
          "the process connector tells of them, a moment later"};
}

Status attach_lives(tracer* programs) {
  auto& links = programs->links;
  for (auto [program, link] :
       {std::pair(programs->progs.on_fork, &links.on_fork), std::pair(programs->progs.on_exec, &links.on_exec),
        std::pair(programs->progs.on_exit, &links.on_exit)}) {
    *link = bpf_program__attach(program);
    if (*link != nullptr) continue;
    Error error = FirstWarning::error(errno, "attaching the BPF programs");
    for (bpf_link** one : {&links.on_fork, &links.on_exec, &links.on_exit})
      bpf_link__destroy(std::exchange(*one, nullptr));
    return error;
  }
  return Done{};
}

Result<Skeleton<tracer>> load_without(const BpfOptions& options, const Known& known,
                                      std::span<const Refusal> refusals) {
  const auto prepare = [&](tracer& programs) -> Status {
    auto& constants = *programs.rodata;
    constants.slot_mask = options.slots - 1;
    constants.wake_at_bytes = options.wake_at_bytes;
    tell_namespace(constants, known.learnt);
    constants.own_tgid = static_cast<std::uint32_t>(::getpid());
    constants.regs_offset = known.learnt.regs_offset;
    constants.can_cast = known.can_cast ? 1 : 0;
    constants.runqueues_at = known.places.runqueues;
    constants.pcpu_hot_at = known.places.pcpu_hot;
    constants.preempt_count_at = known.places.preempt_count;
    constants.hardirq_stack_ptr_at = known.places.hardirq_stack_ptr;
    constants.hardirq_stack_inuse_at = known.places.hardirq_stack_inuse;
    constants.softnet_data_at = known.can_cast ? known.places.softnet_data : 0;
    // on_softirq notes the senders that softnet_data cannot give, and needs the addresses of the kernel's own softirqs.
    const bool notes_softirqs = constants.softnet_data_at == 0 && known.code[0].end != 0;
    bpf_program__set_autoload(programs.progs.on_softirq, notes_softirqs);
    for (std::size_t i = 0; i < known.code.size(); ++i) {
      constants.own_softirq_first[i] = known.code.at(i).first;
      constants.own_softirq_end[i] = known.code.at(i).end;
    }
    if (bpf_map__set_max_entries(programs.maps.slots, options.slots) != 0 ||
        bpf_map__set_max_entries(programs.maps.ring, static_cast<std::uint32_t>(options.ring_bytes)) != 0)
      return FirstWarning::error(errno, "sizing the BPF maps");
    return Done{};
  };
  return load_skeleton<tracer>("the BPF programs", prepare, refusals);
}

Result<LoadedTracer> load_with(const BpfOptions& options, const Known& known) {
  std::vector<Refusal> refusals;
  auto programs = load_in_pieces(
      tracer_pieces, refusals, [&](std::span<const Refusal> without) { return load_without(options, known, without); });
  if (!programs) return std::move(programs).error();
  LoadedTracer loaded{.programs = std::move(programs).value()};
  for (const Refusal& refusal : refusals) {
    std::string why = refusal_of(refusal.error);
    loaded.missing.push_back(refusal.programs.front() == softirqs.front() ? without_softirqs(std::move(why))
                                                                          : without_lives(std::move(why)));
  }
  if (!left_out(refusals, lives.front())) {
    const FirstWarning warning;
    const Status attached = attach_lives(loaded.programs.get());
    loaded.tells_lives = attached.ok();
    if (!attached) loaded.missing.push_back(without_lives(refusal_of(attached.error())));
  }
  if (known.code[0].end == 0)
    loaded.missing.push_back(without_softirqs("kernel.kptr_restrict hides the kernel's addresses"));
  loaded.names_softirq_senders = known.code[0].end != 0 && !left_out(refusals, softirqs.front());
  return loaded;
}

// Why helpers have to read the kernel's memory. Empty: they need not.
std::string without_cast(const BpfOptions& options, const KernelPlaces& places, const ProbedKernel& learnt) {
  if (options.old_helpers || is_refused("tracer.bpf_rdonly_cast")) return "a test has it so";
  if (!places.rdonly_cast) return "the kernel has no bpf_rdonly_cast, which came with 6.2";
  return learnt.refused;
}

MissingPiece reads_by_helpers(std::string why) {
  return {"reading what is known of a thread without helpers (bpf_rdonly_cast)", std::move(why),
          "helpers read it: some 70 ns more a wake, 30 a wait"};
}

}  // namespace

void do_without_softirqs(LoadedTracer& loaded, const Error& refused) {
  if (!std::exchange(loaded.names_softirq_senders, false)) return;
  loaded.missing.push_back(without_softirqs(refusal_of(refused)));
}

Result<LoadedTracer> load_tracer(const BpfOptions& options) {
  if (::access(options.btf.c_str(), R_OK) != 0)
    return Error(ENOTSUP, "the kernel has no BTF (" + options.btf + ", CONFIG_DEBUG_INFO_BTF)");
  if (Status allowed = check_bpf_privilege(); !allowed) return std::move(allowed).error();
  const auto places = kernel_places(options.btf);
  if (!places) return places.error();
  const auto learnt = learn_kernel();
  if (!learnt) return learnt.error();
  std::ifstream kallsyms(options.kallsyms);
  std::string uncast = without_cast(options, *places, *learnt);
  Known known{.places = *places, .learnt = *learnt, .code = softirq_code(kallsyms), .can_cast = uncast.empty()};
  auto loaded = load_with(options, known);
  if (!loaded && std::exchange(known.can_cast, false)) {
    // A verifier that knows the cast, but does not take what is done with it.
    uncast = refusal_of(loaded.error());
    if (auto without = load_with(options, known)) loaded = std::move(without);
  }
  if (loaded && !known.can_cast) loaded->missing.push_back(reads_by_helpers(std::move(uncast)));
  return loaded;
}

}  // namespace swapd::sys
