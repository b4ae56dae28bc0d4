// Calls a function again and again on the control thread, a period after the last call has returned (and up to a tenth
// of it later, so that timers share wake-ups).
#pragma once

#include <spdlog/spdlog.h>
#include <systemd/sd-event.h>

#include <chrono>
#include <functional>
#include <string>
#include <system_error>
#include <utility>

namespace swapd::daemon {

class Periodic {
 public:
  // what: for the log, where it cannot be set up.
  Periodic(sd_event* loop, const std::string& what, std::chrono::microseconds period, std::function<void()> call)
      : period_(static_cast<std::uint64_t>(period.count())), call_(std::move(call)) {
    const int r = sd_event_add_time_relative(loop, &timer_, CLOCK_MONOTONIC, period_, period_ / 10, on_due, this);
    if (r < 0) spdlog::error("{}: {}", what, std::generic_category().message(-r));
  }
  Periodic(const Periodic&) = delete;
  Periodic& operator=(const Periodic&) = delete;
  ~Periodic() { sd_event_source_disable_unref(timer_); }

 private:
  static int on_due(sd_event_source* timer, std::uint64_t /*now*/, void* data) {
    auto* self = static_cast<Periodic*>(data);
    self->call_();
    sd_event_source_set_time_relative(timer, self->period_);
    return sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
  }

  std::uint64_t period_;
  std::function<void()> call_;
  sd_event_source* timer_ = nullptr;
};

}  // namespace swapd::daemon
