// The guard's own side: what its process does until its end.
#pragma once

#include <span>
#include <string>

#include "base/fd.h"
#include "base/time.h"
#include "observe/seccomp/receiver.h"

namespace swapd::daemon {

// Where the program finds what swapd gives it.
namespace guard_fd {
inline constexpr int socket = 3;
inline constexpr int swapd = 4;   // its pidfd
inline constexpr int memory = 5;  // of the slots
inline constexpr int free = 16;   // the first number that is none of these, nor one of the guard's own
}  // namespace guard_fd

struct GuardTask {
  std::span<ListenerSlot> slots;     // what swapd's receivers write
  std::span<DelayedCall> delayed{};  // the calls that swapd holds
  std::span<FrozenGroup> frozen{};   // and the processes
  Duration stale;
  std::string state_dir;  // empty: it is not to be found there
  // Where swapd ends and has not said that it will: a directory, the program to be started there, and its argv, with a
  // null at the end. Null, or a null at once: none.
  char** respawn = nullptr;
  unsigned restart_count = 0;  // of swapds before, one soon after the other: it is waited longer each time
  // A listener that it holds already, in the first slot, and for whom.
  Fd first;
  pid_t launch = 0;
};
// In the environment of the swapd that is started: one more.
inline constexpr const char* deaths_name = "SWAPD_DEATHS";

// swapd: its pidfd. Never returns.
[[noreturn]] void run_guard(Fd socket, Fd swapd, GuardTask task);

}  // namespace swapd::daemon
