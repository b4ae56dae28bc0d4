// Time: CLOCK_MONOTONIC in nanoseconds, which is what std::chrono::steady_clock is on Linux and what
// perf records stamp when asked for that clock. A Clock is handed in wherever time is read, so that
// tests and replay own it.
#pragma once

#include <chrono>
#include <cstdint>

namespace swapd {

using Duration = std::chrono::nanoseconds;
using Time = std::chrono::time_point<std::chrono::steady_clock, Duration>;

// Before anything that happens: what has not happened yet. Differences to it do not overflow.
inline constexpr Time never{-std::chrono::hours(24 * 365 * 100)};

class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;
  [[nodiscard]] virtual Time now() const = 0;
};

class SteadyClock final : public Clock {
 public:
  [[nodiscard]] Time now() const override { return std::chrono::steady_clock::now(); }
};

class ManualClock final : public Clock {
 public:
  [[nodiscard]] Time now() const override { return now_; }
  void advance(Duration by) { now_ += by; }
  void set(Time to) { now_ = to; }

 private:
  Time now_{};
};

}  // namespace swapd
