// A bare supervisor: the least that any seccomp supervisor must do, for the overhead workload to compare swapd with.
#pragma once

#include "base/fd.h"
#include "base/result.h"

namespace swapd::bench {

// Forks a supervisor that answers CONTINUE to every notification and does nothing else, then installs on the calling
// thread a filter that notifies of system call `nr`. The supervisor is what swapd's receivers are (docs/design.md,
// Threads): ordinary class, nice -20, an autogroup of its own at -20, unpinned, woken with SYNC. It dies with the
// caller.
[[nodiscard]] Status put_under_bare_supervisor(int nr);

}  // namespace swapd::bench
