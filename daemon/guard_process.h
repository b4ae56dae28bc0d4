// The guard's own side: what the forked process does until its end.
#pragma once

#include <span>

#include "base/fd.h"
#include "base/time.h"
#include "observe/receiver.h"

namespace swapd::daemon {

// swapd: its pidfd. slots: what swapd's receivers write. Never returns.
[[noreturn]] void run_guard(Fd socket, Fd swapd, std::span<observe::ListenerSlot> slots, Duration stale);

}  // namespace swapd::daemon
