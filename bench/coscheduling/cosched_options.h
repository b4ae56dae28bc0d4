// What the command line of `swapbench cosched` says.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "options.h"

namespace swapd::bench {

// After the options that all workloads have: its --under takes other names.
void cosched_options(CLI::App& app, Options& options);
// What was not given; a line that says what does not go together, or nothing.
[[nodiscard]] std::optional<std::string> cosched_defaults(const CLI::App& chosen, Options& options);

}  // namespace swapd::bench
