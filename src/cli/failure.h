// How swapctl fails: an exit status and one line that says what, where, and what to do.
//
// An Error of the command-line tool carries the line in its context; its code only chooses the status: EINVAL and
// ENOENT are the user's mistake (2), the rest is not (1). `run` has two more, the shell's own: 127 and 126.
#pragma once

#include <ostream>
#include <string>

#include "base/error.h"

namespace swapd::cli {

inline constexpr int exit_done = 0;
inline constexpr int exit_failed = 1;
inline constexpr int exit_usage = 2;
inline constexpr int exit_not_executable = 126;
inline constexpr int exit_not_found = 127;

[[nodiscard]] inline Error user_mistake(std::string line) { return {EINVAL, std::move(line)}; }
[[nodiscard]] inline Error failure(std::string line) { return {EIO, std::move(line)}; }

// Prints "swapctl: LINE" and gives the exit status.
[[nodiscard]] int report(std::ostream& err, const Error& error);

// The text with control characters shown as '?', each multi-byte character kept: any program can choose its name's
// bytes, and they must not steer the terminal.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace swapd::cli
