// The calls that move bytes, and how each says how many (x86-64): what shaping holds back (DESIGN.md section 7).
//
// Trapped are calls that may move data of a file or a socket; what the descriptor is, is looked at when one comes. Not
// among them: those that never end with EINTR and move nothing that a limit should hold (DESIGN.md section 8.2), and
// mapped files, which are charged by what the kernel counts.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sys/seccomp.h"

namespace swapd::observe {

enum class IoAmount : std::uint8_t {
  none,      // moves nothing itself (fsync): an operation
  count,     // args[at] bytes
  vector,    // an iovec at args[at], of args[number_at]
  message,   // a msghdr at args[at]
  messages,  // mmsghdrs at args[at], args[number_at] of them
  ring,      // io_uring: requests, args[at] of them; what they move is told by accounting alone
};

struct IoCall {
  static constexpr std::uint8_t no_arg = 0xff;
  std::int32_t nr = -1;
  std::uint8_t in_arg = no_arg;   // the descriptor that is read
  std::uint8_t out_arg = no_arg;  // and that is written
  IoAmount amount = IoAmount::none;
  std::uint8_t at = 0, number_at = 0;
  std::uint8_t address_arg = no_arg;  // sendto: where to; its length follows
  bool counted = true;                // in rchar and wchar of /proc/PID/io
};

// Null: none of these.
[[nodiscard]] const IoCall* io_call(std::int32_t nr);
// rings: programs may have io_uring's; else io_uring_setup(2) gives ENOSYS.
[[nodiscard]] std::vector<sys::TrapRule> io_rules(bool rings = true);

// Reads target memory: address, where to, size.
using ReadTarget = std::function<Status(std::uint64_t, void*, std::size_t)>;
// How many bytes the call asks to move, at most; 1 where it does not say.
[[nodiscard]] Result<std::int64_t> asked(const IoCall& call, const std::array<std::uint64_t, 6>& args,
                                         const ReadTarget& read);

}  // namespace swapd::observe
