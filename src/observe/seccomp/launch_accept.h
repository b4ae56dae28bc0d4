// swapd's side of a launch (sys/seccomp/launch.h has the protocol; docs/design.md, Launch).
#pragma once

#include <chrono>
#include <stop_token>

#include "base/fd.h"
#include "base/result.h"
#include "sys/seccomp/launch.h"

namespace swapd::observe {

// Waits for the launcher's listener and takes it. Blocks; not for the control thread. The launcher's word is not
// trusted: what it gives must be a seccomp listener. ESRCH: the launcher is dead. ECANCELED: it could not install its
// filter, or `stop` was asked for. ETIMEDOUT.
[[nodiscard]] Result<Fd> accept_launch(int launcher_pidfd, sys::launch::Shared* shared,
                                       std::chrono::milliseconds timeout, const std::stop_token& stop);

// Lets the launcher go on (a receiver answers by now), or refuses. False: it had given up already, and runs nothing.
bool complete_launch(sys::launch::Shared* shared, bool go_on);

}  // namespace swapd::observe
