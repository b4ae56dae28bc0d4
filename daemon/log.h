// swapd's log: asynchronous and bounded; when it cannot keep up, lines are dropped and counted, and nobody waits.
#pragma once

#include <cstdint>
#include <string>

namespace swapd::daemon {

// To the journal where stderr is one ($JOURNAL_STREAM), else to stderr.
void start_log(const std::string& level);
[[nodiscard]] std::uint64_t log_drops();
void stop_log();

}  // namespace swapd::daemon
