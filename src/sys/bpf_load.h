// Loading the kernel programs of src/sys/bpf, with errors in one line.
#pragma once

#include <memory>

#include "base/result.h"
#include "sys/bpf_tracer.h"

struct bpf_program;
struct tracer;  // the generated skeleton

namespace swapd::sys {

struct TracerDeleter {
  void operator()(tracer* programs) const;
};
using TracerPrograms = std::unique_ptr<tracer, TracerDeleter>;

struct LoadedTracer {
  TracerPrograms programs;
  bool names_softirq_senders = false;
};
// The kernel's ids are not ours in a pid namespace of our own: runs the program of bpf/ids.h, which finds out which
// that is.
[[nodiscard]] Status learn_namespace(const bpf_program* program);
// Sizes are powers of two already.
[[nodiscard]] Result<LoadedTracer> load_tracer(const BpfOptions& options);

}  // namespace swapd::sys
