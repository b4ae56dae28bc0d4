#include "guard/guard_watch.h"

#include <spdlog/spdlog.h>

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

GuardWatch::GuardWatch(sd_event* event, Guard& guard)
    : guard_(guard), ends_(event, [this] { ended(); }), timer_(event, [this] { look_after(); }) {
  watch();
}

void GuardWatch::watch() {
  ends_.stop();
  auto process = guard_.watch();
  if (!process) return look_again(min_pause);
  process_ = std::move(process).value();
  if (!ends_.watch(process_.get())) look_again(min_pause);
}

void GuardWatch::look_again(Duration after) {
  if (const Status set = timer_.start(after); !set)
    spdlog::error("{}; swapd no longer notices if its guard ends", set.error().text());
}

void GuardWatch::ended() {
  ends_.stop();
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
