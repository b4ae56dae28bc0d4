#include "event/sources.h"

#include <sys/epoll.h>
#include <time.h>

#include <chrono>
#include <utility>

namespace swapd::daemon {

Timer::Timer(sd_event* loop, std::function<void()> due) : loop_(loop), due_(std::move(due)) {}

Status Timer::start(Duration after) {
  every_ = {};
  return arm(after);
}

Status Timer::repeat(Duration every) {
  every_ = every;
  return arm(every);
}

void Timer::stop() {
  every_ = {};
  if (source_) (void)sd_event_source_set_enabled(source_.get(), SD_EVENT_OFF);
}

bool Timer::running() const {
  int enabled = SD_EVENT_OFF;
  return source_ && sd_event_source_get_enabled(source_.get(), &enabled) >= 0 && enabled != SD_EVENT_OFF;
}

Status Timer::arm(Duration after) {
  const auto us = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(after).count());
  const std::uint64_t late_us = us / 10 + 1;  // 0 would stand for a quarter of a second
  int done = 0;
  if (!source_) {
    sd_event_source* made = nullptr;
    done = sd_event_add_time_relative(loop_, &made, CLOCK_MONOTONIC, us, late_us, on_due, this);
    source_.reset(made);
  } else {
    done = sd_event_source_set_time_relative(source_.get(), us);
    if (done >= 0) done = sd_event_source_set_time_accuracy(source_.get(), late_us);
    if (done >= 0) done = sd_event_source_set_enabled(source_.get(), SD_EVENT_ONESHOT);
  }
  if (done >= 0) return Done{};
  stop();
  return Error(-done, "setting a timer");
}

// The loop disables a source that it calls once. A failed timer is stopped, and cannot be told of from here.
int Timer::on_due(sd_event_source* /*source*/, std::uint64_t /*now_us*/, void* self) {
  auto* timer = static_cast<Timer*>(self);
  if (timer->every_ > Duration::zero()) (void)timer->arm(timer->every_);
  timer->due_();
  return 0;
}

ReadableSource::ReadableSource(sd_event* loop, std::function<void()> readable)
    : loop_(loop), readable_(std::move(readable)) {}

Status ReadableSource::watch(int fd) {
  sd_event_source* made = nullptr;
  const int done = sd_event_add_io(loop_, &made, fd, EPOLLIN, on_readable, this);
  source_.reset(made);
  return done < 0 ? Status(Error(-done, "watching a descriptor")) : Status(Done{});
}

void ReadableSource::pause() {
  if (source_) (void)sd_event_source_set_enabled(source_.get(), SD_EVENT_OFF);
}

void ReadableSource::go_on() {
  if (source_) (void)sd_event_source_set_enabled(source_.get(), SD_EVENT_ON);
}

int ReadableSource::on_readable(sd_event_source* /*source*/, int /*fd*/, std::uint32_t /*events*/, void* self) {
  static_cast<ReadableSource*>(self)->readable_();
  return 0;
}

}  // namespace swapd::daemon
