// The options of `swapbench thrash`.
#pragma once

#include <CLI/CLI.hpp>

#include "options.h"

namespace swapd::bench {

void thrash_options(CLI::App& app, Options& options);
void thrash_defaults(const CLI::App& chosen, Options& options);

}  // namespace swapd::bench
