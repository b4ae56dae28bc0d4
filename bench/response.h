// The options of `swapbench response`.
#pragma once

#include <CLI/CLI.hpp>

#include "options.h"

namespace swapd::bench {

void response_options(CLI::App& app, Options& options);
void response_defaults(const CLI::App& chosen, Options& options);

}  // namespace swapd::bench
