// The guard's own side: what the forked process does until its end.
#pragma once

#include <span>
#include <string>

#include "base/fd.h"
#include "base/time.h"
#include "observe/receiver.h"

namespace swapd::daemon {

struct GuardTask {
  std::span<observe::ListenerSlot> slots;  // what swapd's receivers write
  Duration stale;
  std::string state_dir;  // empty: it is not to be found there
};
// swapd: its pidfd. Never returns.
[[noreturn]] void run_guard(Fd socket, Fd swapd, GuardTask task);

}  // namespace swapd::daemon
