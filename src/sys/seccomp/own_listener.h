// Programs that install a seccomp listener of their own (container runtimes, sandboxes). A chain of filters has room
// for one listener (seccomp(2), EBUSY), and a filter stays for good: where swapd's listener is in, theirs is refused
// inside the program. So it must be known before.
//
// The behaviour of a program is guessed from the constants in its file. Not seen: calls that only a library, or a
// child, makes.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "sys/seccomp/seccomp.h"

namespace swapd::sys {

// An x86-64 ELF file whose code has the number of seccomp(2) beside SECCOMP_FILTER_FLAG_NEW_LISTENER, or that number
// and a listener's ioctl. Pure.
[[nodiscard]] bool asks_for_listener(std::span<const std::byte> image);
// The same of a file. false: it cannot be read, or is no such file.
[[nodiscard]] bool file_asks_for_listener(const std::string& path);

// The call that asks for one.
[[nodiscard]] TrapRule own_listener_rule();

}  // namespace swapd::sys
