// Calls of seccomp(2) (sys::own_listener_rule()) that ask for a listener under swapd's own: the kernel refuses them
// (EBUSY), and nothing in the program says why. They are trapped so that swapd can. (A signal may end such a call with
// EINTR; it would have failed anyway.)
#pragma once

#include <sys/types.h>

#include <functional>

namespace swapd::observe {

// Told of each such call's thread, on a receiver's thread, after the answer. Set before the first receiver starts.
void on_own_listener(std::function<void(pid_t tid)> told);

}  // namespace swapd::observe
