// The options of `swapbench thrash`, and one that others share.
#pragma once

#include <CLI/CLI.hpp>

#include "options.h"

namespace swapd::bench {

// --swap, of all workloads with memory that is too small.
void swap_option(CLI::App& app, Options& options);
void thrash_options(CLI::App& app, Options& options);
void thrash_defaults(const CLI::App& chosen, Options& options);

}  // namespace swapd::bench
