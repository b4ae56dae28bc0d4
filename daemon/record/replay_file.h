// `swapd --replay FILE`: no engine, no kernel surface, no root.
#pragma once

#include <string>

namespace swapd::daemon {

// Prints the decisions and a summary. The exit status: 0 all as in the live run; 1 not, or the answer cannot be
// written; 2 the file cannot be read or is no good recording.
[[nodiscard]] int replay_file(const std::string& file, bool json);

}  // namespace swapd::daemon
