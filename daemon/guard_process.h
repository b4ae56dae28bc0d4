// The guard's own side: what the forked process does until its end.
#pragma once

#include "base/fd.h"

namespace swapd::daemon {

// swapd: its pidfd. Never returns.
[[noreturn]] void run_guard(Fd socket, Fd swapd);

}  // namespace swapd::daemon
