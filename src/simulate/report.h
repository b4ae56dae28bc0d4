// The output of `swapd --simulate`: one JSON object a line, the same for the same file. docs/simulation.md has the
// fields. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "simulate/markov.h"
#include "simulate/scenario.h"
#include "simulate/simulator.h"

namespace swapd::simulate {

// The chain that describes the scenario, if there is one: two jobs of random programs on all nodes, messages without
// latency, all of which call.
[[nodiscard]] std::optional<TwoJobChain> chain_of(const Scenario& scenario);

// Runs each point of the scenario in `text` and gives its lines to `print`. EINVAL with one line "FILE:LINE: what is
// wrong" before anything is printed.
[[nodiscard]] Status simulate(std::string_view text, std::string_view file,
                              const std::function<void(const std::string&)>& print);

}  // namespace swapd::simulate
