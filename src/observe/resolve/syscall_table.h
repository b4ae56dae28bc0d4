// The system calls swapd knows (x86-64): their names, what a thread blocked in one waits on, and which of them are
// trapped.
//
// Source of what is trapped: docs/design.md, Trapped calls. A call is trapped only in the forms that can end with EINTR
// by themselves, because a signal may make any trapped call end so.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sys/seccomp/seccomp.h"

namespace swapd::observe {

enum class CallKind : std::uint8_t {
  unknown,   // not in the table, or one that cannot be seen into
  transfer,  // reads or writes the descriptor args[fd_arg]
  copy,      // reads args[in_arg], writes args[fd_arg]
  accept,
  connect,
  poll,    // an array of pollfd
  select,  // three bit sets
  epoll,
  ring,      // io_uring
  sysv_msg,  // args[0] is the queue
  sysv_sem,  // args[0] is the set
  posix_mq,
  flock,
  fcntl,
  signal_wait,
  kill,  // sends a signal
  child_wait,
  futex,
  timer,  // time alone ends it
  disk,   // a device ends it
};

enum class Direction : std::uint8_t { none, in, out };

struct CallEntry {
  std::int32_t nr = -1;
  std::string_view name;
  CallKind kind = CallKind::unknown;
  Direction direction = Direction::none;
  std::uint8_t fd_arg = 0;    // transfer, copy, accept, connect, epoll, posix_mq, flock, fcntl
  std::uint8_t in_arg = 0;    // copy
  std::uint8_t addr_arg = 0;  // sendto: the address; 0: none
};

// The call's row; kind unknown and an empty name if it is not in the table.
[[nodiscard]] const CallEntry& call_entry(std::int32_t nr);
// "read", "semop" …; "none" for -1 (outside any call); "syscall-N" is up to the caller: an unknown call gives "".
[[nodiscard]] std::string_view call_name(std::int32_t nr);

enum class History : std::uint8_t {
  holders,  // transfers are not trapped: providers are the holders of the other end
  calls,    // the paper's way: every call that tells of IPC
};

[[nodiscard]] std::vector<sys::TrapRule> observe_rules(History history, bool trap_kill);
[[nodiscard]] bool is_trapped(std::int32_t nr, History history, bool trap_kill);

}  // namespace swapd::observe
