// Loading the kernel programs of src/sys/bpf, with errors in one line.
#pragma once

#include <vector>

#include "base/missing_piece.h"
#include "base/result.h"
#include "sys/bpf/bpf_tracer.h"
#include "sys/bpf/skeleton.h"

struct tracer;  // the generated skeleton

namespace swapd::sys {

struct LoadedTracer {
  Skeleton<tracer> programs;
  bool names_softirq_senders = false;
  bool tells_lives = false;  // forks, execs and exits
  std::vector<MissingPiece> missing;
};
// Sizes are powers of two already. Attached, but for the programs that follow switches and wakes. A kernel that refuses
// a program of those that can be done without gets the others.
[[nodiscard]] Result<LoadedTracer> load_tracer(const BpfOptions& options);
// It could be loaded, but not attached.
void do_without_softirqs(LoadedTracer& loaded, const Error& refused);

}  // namespace swapd::sys
