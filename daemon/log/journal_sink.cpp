#include "log/journal_sink.h"

#define SD_JOURNAL_SUPPRESS_LOCATION
#include <sys/uio.h>
#include <syslog.h>
#include <systemd/sd-journal.h>

namespace swapd::daemon {
namespace {

int syslog_priority(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::trace:
    case spdlog::level::debug:
      return LOG_DEBUG;
    case spdlog::level::warn:
      return LOG_WARNING;
    case spdlog::level::err:
      return LOG_ERR;
    case spdlog::level::critical:
      return LOG_CRIT;
    default:
      return LOG_INFO;
  }
}

}  // namespace

std::vector<std::string> journal_fields(std::string_view line, int priority) {
  std::vector<std::string> fields = {"SYSLOG_IDENTIFIER=swapd", "PRIORITY=" + std::to_string(priority)};
  std::string prefix = "MESSAGE=";
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find(field_separator, at), line.size());
    fields.push_back(prefix + std::string(line.substr(at, end - at)));
    prefix.clear();
    at = end + 1;
  }
  return fields;
}

void JournalSink::sink_it_(const spdlog::details::log_msg& message) {
  const std::vector<std::string> fields =
      journal_fields({message.payload.data(), message.payload.size()}, syslog_priority(message.level));
  std::vector<iovec> parts;
  parts.reserve(fields.size());
  for (const std::string& field : fields) parts.push_back({const_cast<char*>(field.data()), field.size()});
  (void)sd_journal_sendv(parts.data(), static_cast<int>(parts.size()));
}

}  // namespace swapd::daemon
