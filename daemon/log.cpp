#include "log.h"

#include <spdlog/async.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/sinks/systemd_sink.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <memory>

namespace swapd::daemon {

namespace {
constexpr std::size_t queued_lines = 4096;
}

void start_log(const std::string& level) {
  spdlog::init_thread_pool(queued_lines, 1);
  spdlog::sink_ptr sink;
  if (std::getenv("JOURNAL_STREAM") != nullptr) {  // NOLINT(concurrency-mt-unsafe): before any thread
    sink = std::make_shared<spdlog::sinks::systemd_sink_mt>("swapd");
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

void stop_log() { spdlog::shutdown(); }

}  // namespace swapd::daemon
