// Starts a program that is not the caller's child: the caller, which may soon execve(2) another program, never has to
// reap it, gets no SIGCHLD for it, and finds no child that it does not know (docs/design.md, Launch).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace swapd::sys {

struct DetachedProgram {
  std::string path;
  std::vector<std::string> arguments;    // argv[0] included
  std::vector<std::string> environment;  // "NAME=value"
  int keep_fd = -1;                      // becomes descriptor 3 of the program
  int log_fd = -1;                       // becomes its standard output and error
};

// The program gets a session of its own, default signal dispositions, an empty signal mask, "/" as its directory,
// and no other descriptor of the caller. Where it cannot be executed, a line goes to log_fd and keep_fd is closed.
[[nodiscard]] Status start_detached(const DetachedProgram& program);

}  // namespace swapd::sys
