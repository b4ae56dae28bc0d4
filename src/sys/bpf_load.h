// Loading the kernel programs of src/sys/bpf, with errors in one line.
#pragma once

#include <memory>

#include "base/result.h"
#include "sys/bpf_tracer.h"

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
// Sizes are powers of two already. Attached, but for the programs that follow switches and wakes.
[[nodiscard]] Result<LoadedTracer> load_tracer(const BpfOptions& options);

}  // namespace swapd::sys
