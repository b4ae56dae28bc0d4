#include "log/log.h"

#include <spdlog/async.h>
#include <spdlog/fmt/fmt.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/sinks/systemd_sink.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "log/journal_sink.h"

namespace swapd::daemon {

namespace {
constexpr std::size_t queued_lines = 4096;
std::shared_ptr<spdlog::logger> entries;  // none: there is no journal

// Programs choose the bytes of their threads' names.
void append(std::string& line, std::string_view text) {
  std::ranges::transform(text, std::back_inserter(line),
                         [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c; });
}
}  // namespace

bool is_journal(const char* stream, int fd) {
  struct stat seen {};
  return stream != nullptr && ::fstat(fd, &seen) == 0 && fmt::format("{}:{}", seen.st_dev, seen.st_ino) == stream;
}

void start_log(const std::string& level) {
  spdlog::init_thread_pool(queued_lines, 1);
  spdlog::sink_ptr sink;
  if (is_journal(std::getenv("JOURNAL_STREAM"), STDERR_FILENO)) {  // NOLINT(concurrency-mt-unsafe): before any thread
    sink = std::make_shared<spdlog::sinks::systemd_sink_mt>("swapd");
    entries = std::make_shared<spdlog::async_logger>("entries", std::make_shared<JournalSink>(), spdlog::thread_pool(),
                                                     spdlog::async_overflow_policy::overrun_oldest);
    entries->set_level(spdlog::level::from_str(level));
  } else {
    sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
    sink->set_pattern("swapd: %^%l%$: %v");
  }
  auto logger = std::make_shared<spdlog::async_logger>("swapd", sink, spdlog::thread_pool(),
                                                       spdlog::async_overflow_policy::overrun_oldest);
  logger->set_level(spdlog::level::from_str(level));
  logger->flush_on(spdlog::level::warn);
  spdlog::set_default_logger(std::move(logger));
}

std::uint64_t log_drops() {
  const auto pool = spdlog::thread_pool();
  return pool ? pool->overrun_counter() : 0;
}

void stop_log() {
  entries.reset();
  spdlog::shutdown();
}

bool logs_entries() {
  return (entries != nullptr && entries->should_log(spdlog::level::info)) || spdlog::should_log(spdlog::level::debug);
}

void log_entry(std::string_view id, const std::string& message, std::initializer_list<LogField> fields) {
  if (entries == nullptr) return spdlog::debug("{}", message);
  std::string line;
  append(line, message);
  const auto add = [&](std::string_view name, std::string_view value) {
    line += field_separator;
    line += name;
    line += '=';
    append(line, value);
  };
  add("MESSAGE_ID", id);
  for (const LogField& field : fields) add(field.name, field.value);
  entries->info("{}", line);
}

}  // namespace swapd::daemon
