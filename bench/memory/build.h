// The options of `swapbench build`.
#pragma once

#include <CLI/CLI.hpp>

#include "options.h"

namespace swapd::bench {

void build_options(CLI::App& app, Options& options);
void build_defaults(const CLI::App& chosen, Options& options);

}  // namespace swapd::bench
