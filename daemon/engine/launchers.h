// Programs that start the processes of parallel jobs: mpirun and its like.
#pragma once

#include <sys/types.h>

#include <string_view>

#include "base/thread_id.h"
#include "sys/procfs/procfs.h"

namespace swapd::daemon {

// By its name in /proc/PID/comm, which has 15 bytes at most.
[[nodiscard]] bool is_launcher(std::string_view comm);

// The launcher among the parents of a process, the nearest one; four are looked at, because a rank may be started by a
// shell script or another wrapper. Not valid: none of them is one, or it cannot be looked at.
[[nodiscard]] ThreadId launcher_of(const sys::Procfs& procfs, pid_t pid);

}  // namespace swapd::daemon
