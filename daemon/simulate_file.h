// `swapd --simulate FILE`: no engine, no kernel surface, no root.
#pragma once

#include <string>

namespace swapd::daemon {

// Runs the scenario and prints one JSON object a line. The exit status: 0 done; 1 the answer cannot be written; 2 the
// file cannot be read or is no good scenario, which is said in one line.
[[nodiscard]] int simulate_file(const std::string& file);

}  // namespace swapd::daemon
