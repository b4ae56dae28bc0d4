// Log lines with fields of their own, for the systemd journal (systemd.journal-fields(7)).
//
// A line goes through spdlog's queue as text, so that no caller waits for the journal: the message, and then
// "NAME=value", with `field_separator` between.
#pragma once

#include <spdlog/sinks/base_sink.h>

#include <mutex>
#include <string>
#include <vector>

namespace swapd::daemon {

inline constexpr char field_separator = '\x1e';

class JournalSink final : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}
};

// The fields of an entry: "MESSAGE=…", "PRIORITY=…", "SYSLOG_IDENTIFIER=swapd", and those of the line.
[[nodiscard]] std::vector<std::string> journal_fields(std::string_view line, int priority);

}  // namespace swapd::daemon
