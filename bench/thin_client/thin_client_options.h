// The options of `swapbench thin-client`.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "options.h"

namespace swapd::bench {

// After the options that all workloads have: its --sessions says something else.
void thin_client_options(CLI::App& app, Options& options);
// Sets what was not given; returns a line that says what does not go together or is missing, or nothing.
[[nodiscard]] std::optional<std::string> thin_client_defaults(const CLI::App& chosen, Options& options);

}  // namespace swapd::bench
