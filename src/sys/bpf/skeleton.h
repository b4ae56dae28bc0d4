// One way to load a skeleton that bpftool generates (bpftool-gen(8)), with one error line for each step.
#pragma once

#include <bpf/libbpf.h>

#include <cerrno>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/result.h"
#include "sys/bpf/bpf_errors.h"
#include "sys/bpf/bpf_pieces.h"
#include "sys/bpf/kernel_probe.h"

namespace swapd::sys {

template <typename Programs>
struct SkeletonDeleter {
  void operator()(Programs* programs) const { Programs::destroy(programs); }
};
// Programs: the generated struct. Its end detaches and unloads the programs.
template <typename Programs>
using Skeleton = std::unique_ptr<Programs, SkeletonDeleter<Programs>>;

struct BpfLinkDeleter {
  void operator()(bpf_link* link) const { bpf_link__destroy(link); }
};
// Its end detaches the program.
using BpfLink = std::unique_ptr<bpf_link, BpfLinkDeleter>;

// Opens the programs, calls prepare(programs), which sets constants and sizes and returns a Status, and loads them
// without those that the refusals name. what: "the BPF programs that count traffic", for errors, which are
// FirstWarning's.
template <typename Programs, typename Prepare>
[[nodiscard]] Result<Skeleton<Programs>> load_skeleton(const std::string& what, const Prepare& prepare,
                                                       std::span<const Refusal> refusals = {}) {
  const FirstWarning warning;
  Skeleton<Programs> programs(Programs::open());
  if (!programs) return FirstWarning::error(errno, "opening " + what);
  if (Status prepared = prepare(*programs); !prepared) return std::move(prepared).error();
  prepare_load(programs->obj, refusals);
  if (const int failed = Programs::load(programs.get()); failed != 0)
    return FirstWarning::error(-failed, "loading " + what);
  return programs;
}

// Attaches every program that is loaded.
template <typename Programs>
[[nodiscard]] Status attach_skeleton(Programs& programs, const std::string& what) {
  const FirstWarning warning;
  if (const int failed = Programs::attach(&programs); failed != 0)
    return FirstWarning::error(-failed, "attaching " + what);
  return Done{};
}

// Loads and attaches programs that include ids.bpf.h and need no other constants. EPERM: CAP_BPF or CAP_PERFMON is
// missing.
template <typename Programs>
[[nodiscard]] Result<Skeleton<Programs>> start_skeleton(const std::string& what) {
  if (Status allowed = check_bpf_privilege(); !allowed) return std::move(allowed).error();
  const auto learnt = learn_kernel();
  if (!learnt) return learnt.error();
  auto programs = load_skeleton<Programs>(what, [&](Programs& opened) -> Status {
    tell_namespace(*opened.rodata, *learnt);
    return Done{};
  });
  if (!programs) return programs;
  if (Status attached = attach_skeleton(**programs, what); !attached) return std::move(attached).error();
  return programs;
}

}  // namespace swapd::sys
