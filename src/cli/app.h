// swapctl's command line: options before the verb, the verb table, help, and the exit statuses of docs/design.md,
// Contracts.
#pragma once

#include <ostream>

namespace swapd::cli {

[[nodiscard]] int run_app(int argc, const char* const* argv, std::ostream& out, std::ostream& err);

}  // namespace swapd::cli
