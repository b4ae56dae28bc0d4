// The calls that a swapd has received and not answered, for whoever holds the listener after it: its guard, or the next
// swapd where the guard has ended too. System calls only.
#pragma once

#include <cstdint>

#include "observe/seccomp/receiver.h"

namespace swapd::daemon {

// Ids that swapd may have received and not written down: one, and those before it whose calls had been withdrawn.
inline constexpr std::uint64_t max_unknown = 1024;

// And not answered (seccomp_notify_poll() in kernel/seccomp.c).
[[nodiscard]] bool something_received(int listener);
// Answers CONTINUE to those of these ids that are received and unanswered. To one that still waits to be received that
// is an error (EINPROGRESS).
void answer_between(int listener, std::uint64_t from, std::uint64_t to);
// A call in the hand of one who does not answer it: its id was written down, or is one of the next few after `last`,
// the last that anybody is known to have received (0: none is).
void answer_left(int listener, const ListenerSlot& slot, std::uint64_t last);

}  // namespace swapd::daemon
