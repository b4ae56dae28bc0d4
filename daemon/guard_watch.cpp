#include "guard_watch.h"

#include <spdlog/spdlog.h>
#include <sys/epoll.h>

#include <chrono>
#include <utility>

namespace swapd::daemon {
namespace {

// Between one guard and the next, where that cannot be started or ends at once.
constexpr std::chrono::milliseconds pause{100};

}  // namespace

GuardWatch::GuardWatch(sd_event* event, Guard& guard) : event_(event), guard_(guard) { watch(); }

GuardWatch::~GuardWatch() {
  sd_event_source_disable_unref(ends_);
  sd_event_source_disable_unref(timer_);
}

void GuardWatch::watch() {
  ends_ = sd_event_source_disable_unref(ends_);
  auto process = guard_.watch();
  if (!process) return look_again(pause);
  process_ = std::move(process).value();
  const auto ended = [](sd_event_source*, int, std::uint32_t, void* self) {
    static_cast<GuardWatch*>(self)->replace();
    return 0;
  };
  if (sd_event_add_io(event_, &ends_, process_.get(), EPOLLIN, ended, this) < 0) look_again(pause);
}

void GuardWatch::look_again(Duration after) {
  const auto later = [](sd_event_source*, std::uint64_t, void* self) {
    static_cast<GuardWatch*>(self)->watch();
    return 0;
  };
  timer_ = sd_event_source_disable_unref(timer_);
  const auto wait = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(after).count());
  sd_event_add_time_relative(event_, &timer_, CLOCK_MONOTONIC, wait, 0, later, this);
}

void GuardWatch::replace() {
  ends_ = sd_event_source_disable_unref(ends_);
  const Status started = guard_.start_again();
  if (started)
    spdlog::warn("the guard had ended; another has taken its place");
  else if (!failed_)
    spdlog::error("{}; programs under seccomp do not survive swapd until there is a guard again",
                  started.error().text());
  failed_ = !started;
  look_again(pause);
}

}  // namespace swapd::daemon
