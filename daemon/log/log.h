// swapd's log: asynchronous and bounded; when it cannot keep up, lines are dropped and counted. No caller waits.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace swapd::daemon {

// Whether the descriptor is the journal's stream: `stream` is the value of $JOURNAL_STREAM, DEV:INO [systemd.exec(5)].
// A service's children inherit the variable also where their output goes elsewhere. Null: there is none.
[[nodiscard]] bool is_journal(const char* stream, int fd);

// To the journal where stderr is its stream, else to stderr.
void start_log(const std::string& level);
[[nodiscard]] std::uint64_t log_drops();
void stop_log();

// Entries of their own kind, each with its message in systemd/swapd.catalog.
namespace message_id {
inline constexpr std::string_view donation = "e5d1acba7f204a77a7f69ab13c8cba33";
inline constexpr std::string_view ineffective = "c87e661c75004fada05d618aa41cff09";
inline constexpr std::string_view refused = "f62b8060883940a3b3831545b066ee19";
}  // namespace message_id

struct LogField {
  std::string_view name;  // "SWAPD_PID"
  std::string value;
};
// With its fields where there is a journal; else only the message, and that only with --log-level debug.
void log_entry(std::string_view id, const std::string& message, std::initializer_list<LogField> fields);
// Whether entries are kept or shown at all.
[[nodiscard]] bool logs_entries();

}  // namespace swapd::daemon
