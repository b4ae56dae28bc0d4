// swapd again: in its own place with the program as it is on disk now (swapctl restart), or started by its guard after
// it was killed (guard_process.h).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace swapd::daemon {

// How this swapd was started.
struct CommandLine {
  std::string program;  // absolute; what stands there now may be another version
  std::vector<std::string> arguments;
  std::string directory;  // that relative paths are relative to
};
[[nodiscard]] CommandLine own_command_line(int argc, char** argv);

// Would it start: the program runs, and finds nothing wrong with the policy file (empty: none). EINVAL: with a line
// that says why not.
[[nodiscard]] Status can_reexec(const CommandLine& command, const std::string& config);
// The same process, another program; returns where that fails.
[[nodiscard]] Status reexec(const CommandLine& command);
// Whether this swapd was made by reexec(); true once. It has its process, session and signals already.
[[nodiscard]] bool is_reexec();

// How often, one soon after the other, a guard has started it: given to the next guard.
[[nodiscard]] unsigned restart_count();

}  // namespace swapd::daemon
