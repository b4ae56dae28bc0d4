// The calls that move bytes, and how each says how many (x86-64): what shaping holds back (docs/design.md, Shaping).
//
// Trapped are calls that may move data of a file or a socket; what the descriptor is, is looked at when one comes. Not
// among them: those that never end with EINTR and move nothing that a limit should hold (docs/design.md, Trapped
// calls), and mapped files, which are charged by what the kernel counts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sys/seccomp/seccomp.h"

namespace swapd::observe {

enum class IoAmount : std::uint8_t {
  none,      // moves nothing itself (fsync): an operation
  entry,     // reads or changes a directory or an inode: an operation; its path is at args[at], if it has one
  count,     // args[at] bytes
  vector,    // an iovec at args[at], of args[number_at]
  message,   // a msghdr at args[at]
  messages,  // mmsghdrs at args[at], args[number_at] of them
  submits,   // Linux AIO: args[number_at] pointers to iocbs at args[at] (requests())
  ring,      // io_uring: requests, args[at] of them; what they move is told by accounting alone
};

// Source of what a call has moved, read afterwards, if that was on a disk.
enum class IoMoved : std::uint8_t {
  chars,  // rchar and wchar of /proc/PID/io
  asked,  // none: it is what it asked for
  disk,   // the disk alone: nothing of it went through the caller's memory
};

struct IoCall {
  static constexpr std::uint8_t no_arg = 0xff;
  static constexpr std::uint8_t working_directory = 0xfe;  // instead of a descriptor
  std::int32_t nr = -1;
  std::uint8_t in_arg = no_arg;   // the descriptor that is read
  std::uint8_t out_arg = no_arg;  // and that is written
  IoAmount amount = IoAmount::none;
  std::uint8_t at = 0, number_at = 0;
  std::uint8_t address_arg = no_arg;  // sendto: where to; its length follows
  IoMoved moved = IoMoved::chars;
  // From where in the file it is read: args[position_arg], or what that points to; no_arg, or where it points to
  // nothing: from the descriptor's position.
  std::uint8_t position_arg = no_arg;
  bool position_is_pointed_to = false;
};

// Null: none of these.
[[nodiscard]] const IoCall* io_call(std::int32_t nr);
struct IoTraps {
  bool rings = true;     // programs may have io_uring's; else io_uring_setup(2) gives ENOSYS
  bool entries = false;  // calls about directories and inodes as well
};
[[nodiscard]] std::vector<sys::TrapRule> io_rules(const IoTraps& traps = {});

// Reads target memory: address, where to, size.
using ReadTarget = std::function<Status(std::uint64_t, void*, std::size_t)>;
// A call about an entry: does it change one, and is it about a file system on a disk, as far as its path tells? (Not
// what is below /proc, /sys and /dev; nor a descriptor's own inode, which is in memory.)
[[nodiscard]] bool changes_entry(const IoCall& call, const std::array<std::uint64_t, 6>& args);
[[nodiscard]] bool is_of_disk(const IoCall& call, const std::array<std::uint64_t, 6>& args, const ReadTarget& read);
// How many bytes the call asks to move, at most; 1 where it does not say.
[[nodiscard]] Result<std::int64_t> asked(const IoCall& call, const std::array<std::uint64_t, 6>& args,
                                         const ReadTarget& read);
// From where in its file the call reads; nothing: from the descriptor's position.
[[nodiscard]] std::optional<std::int64_t> position(const IoCall& call, const std::array<std::uint64_t, 6>& args,
                                                   const ReadTarget& read);
// Requests of an io_submit(2): the first 64; an error: its memory cannot be read.
struct IoRequest {
  int fd = -1;
  bool writes = false;
  std::int64_t bytes = 1;
};
[[nodiscard]] Result<std::vector<IoRequest>> requests(const IoCall& call, const std::array<std::uint64_t, 6>& args,
                                                      const ReadTarget& read);
// The address that a call on a socket that is not connected sends to: that many bytes of a sockaddr, at most as many as
// there is room for; 0: it does not say. For several messages, the first one's.
[[nodiscard]] std::size_t sent_to(const IoCall& call, const std::array<std::uint64_t, 6>& args, const ReadTarget& read,
                                  std::span<std::byte> to);

// A send or splice that the program wants to return at once, with what there is room for.
[[nodiscard]] bool does_not_wait(const sys::Notification& notification);

}  // namespace swapd::observe
