// seccomp user notification: the filter, its installation, its listener (seccomp(2), seccomp_unotify(2);
// docs/design.md, Safety).
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace swapd::sys {

// One call that the filter notifies of. With a condition: only where (args[arg] & mask) == value for one of `values`.
struct TrapRule {
  std::int32_t nr = -1;
  struct Condition {
    unsigned arg = 0;
    std::uint64_t mask = ~0ULL;
    std::vector<std::uint64_t> values;
  };
  std::optional<Condition> condition;
  int refuse_with = 0;  // an errno that the call gives at once, instead of a notification
};

// Builds the program with libseccomp (x86-64 native calls of the rules notify or are refused, all else, i386 and x32
// included, is allowed) and exports it as BPF.
[[nodiscard]] Result<std::vector<sock_filter>> build_filter(std::span<const TrapRule> rules);

// Name of an x86-64 call; "": it is not known.
[[nodiscard]] std::string call_name(std::int32_t nr);

// NEW_LISTENER and, each where the kernel has it, WAIT_KILLABLE_RECV and SPEC_ALLOW.
[[nodiscard]] unsigned long filter_flags();

struct InstallOptions {
  bool allow_no_new_privs = false;  // set it where the privilege to do without is missing
};
// Installs the filter on the calling thread with seccomp(2) and filter_flags(). Gives the listener. EBUSY: the chain
// has a listener. EACCES: neither CAP_SYS_ADMIN nor no_new_privs. After this the caller's own trapped calls wait for an
// answer.
[[nodiscard]] Result<Fd> install_filter(std::span<const sock_filter> program, const InstallOptions& options);
// True if this descriptor, which another process gave us, is a listener. (By the name that /proc gives it; an ioctl
// would reach any device.)
[[nodiscard]] bool is_listener(int fd);
// SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (6.6). ENOSYS-like errors: the kernel lacks it; go on without.
[[nodiscard]] Status set_sync_wake_up(int listener);
// Why it was refused to any listener of this process. 0: it was not.
[[nodiscard]] int sync_wake_up_refused();

struct Notification {
  std::uint64_t id = 0;
  pid_t tid = 0;  // in the reader's pid namespace; 0: not visible there
  std::int32_t nr = -1;
  std::array<std::uint64_t, 6> args{};
};
// One notification; blocks unless the descriptor polls readable. ENOENT: the target is gone meanwhile (normal), or
// every target is (where receive_ends_with_targets(); poll tells which). EINTR: a signal of ours.
[[nodiscard]] Result<Notification> receive(int listener);
// Since 6.11 a blocked receive() ends when the last target has; before, only poll(2) tells, and the receive() blocks
// for ever. Tried out once, with a process that ends; where that cannot be made, taken for no.
[[nodiscard]] bool receive_ends_with_targets();
// The last target has ended (POLLHUP) and nothing is left to receive.
[[nodiscard]] bool hung_up(int listener);
// Sleeps until hung_up() or something to receive. EINTR: a signal of ours.
[[nodiscard]] Status await_notification(int listener);
// Answers CONTINUE. ENOENT: gone (normal).
[[nodiscard]] Status answer_continue(int listener, std::uint64_t id);
[[nodiscard]] bool still_valid(int listener, std::uint64_t id);

}  // namespace swapd::sys
