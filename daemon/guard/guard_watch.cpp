#include "guard/guard_watch.h"

#include <spdlog/spdlog.h>
#include <sys/epoll.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace swapd::daemon {
namespace {

// Between one guard and the next, where they end at once or cannot be started.
constexpr std::chrono::milliseconds min_pause{100};
constexpr std::chrono::seconds max_watch_pause{10};
constexpr std::chrono::seconds long_enough{1};  // so long has one lived that did not end at once

}  // namespace

GuardWatch::GuardWatch(sd_event* event, Guard& guard) : event_(event), guard_(guard) { watch(); }

GuardWatch::~GuardWatch() {
  sd_event_source_disable_unref(ends_);
  sd_event_source_disable_unref(timer_);
}

void GuardWatch::watch() {
  ends_ = sd_event_source_disable_unref(ends_);
  auto process = guard_.watch();
  if (!process) return look_again(min_pause);
  process_ = std::move(process).value();
  const auto has_ended = [](sd_event_source*, int, std::uint32_t, void* self) {
    static_cast<GuardWatch*>(self)->ended();
    return 0;
  };
  if (sd_event_add_io(event_, &ends_, process_.get(), EPOLLIN, has_ended, this) < 0) look_again(min_pause);
}

void GuardWatch::look_again(Duration after) {
  const auto later = [](sd_event_source*, std::uint64_t, void* self) {
    static_cast<GuardWatch*>(self)->look_after();
    return 0;
  };
  timer_ = sd_event_source_disable_unref(timer_);
  const auto wait = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(after).count());
  if (sd_event_add_time_relative(event_, &timer_, CLOCK_MONOTONIC, wait, 0, later, this) < 0)
    spdlog::error("nobody watches the guard any more");
}

void GuardWatch::ended() {
  ends_ = sd_event_source_disable_unref(ends_);
  const Time now = std::chrono::steady_clock::now();
  if (now - replaced_ >= long_enough) {
    pause_ = {};
    spdlog::warn("the guard has ended; another takes its place");
  }
  if (pause_ == Duration::zero()) return look_after();
  look_again(pause_);
}

void GuardWatch::look_after() {
  replaced_ = std::chrono::steady_clock::now();
  pause_ = std::clamp<Duration>(2 * pause_, min_pause, max_watch_pause);
  const Status done = guard_.look_after();
  if (!done && !std::exchange(failed_, true))
    spdlog::error("{}; programs under seccomp may not survive swapd until there is a guard again", done.error().text());
  if (!done) return look_again(pause_);
  failed_ = false;
  watch();
}

}  // namespace swapd::daemon
