// Asks `swapctl why` while the client waits, and counts whom it names.
#pragma once

#include <nlohmann/json.hpp>
#include <set>

#include "harness/team.h"

namespace swapd::bench {

struct Why {
  nlohmann::json json;
  int named = 0;       // of the wanted pids, those that stand somewhere in the tree of providers
  int candidates = 0;  // direct providers of what the client waits for
};

// Pure: reads the contract's shape (docs/design.md, Contracts).
[[nodiscard]] Why read_why(nlohmann::json json, const std::set<pid_t>& wanted);

// An answer may fall between two waits, when there is nothing to tell: asks up to `tries` times and gives the fullest.
[[nodiscard]] Result<Why> ask_why(const Daemon& daemon, pid_t pid, const std::set<pid_t>& wanted, int tries = 20);

}  // namespace swapd::bench
