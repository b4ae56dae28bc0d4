// Options on the command line of `swapbench cosched`.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <utility>

#include "options.h"

namespace swapd::bench {

// "own" is two of it, "own+openmp" one of each; none: no such program.
[[nodiscard]] std::optional<std::pair<std::string, std::string>> job_pair(const std::string& text);

// After the options that all workloads have: its --under takes other names.
void cosched_options(CLI::App& app, Options& options);
// Sets what was not given; returns a line that says what does not go together, or nothing.
[[nodiscard]] std::optional<std::string> cosched_defaults(const CLI::App& chosen, Options& options);

}  // namespace swapd::bench
