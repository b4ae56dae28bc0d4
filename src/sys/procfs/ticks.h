// The clock of process start times (/proc/TID/stat): ticks since boot, time suspended included. Source: proc(5).
#pragma once

#include <time.h>

#include <cstdint>

namespace swapd::sys {

inline constexpr std::uint64_t ticks_per_second = 100;  // USER_HZ

[[nodiscard]] inline std::uint64_t ticks_since_boot() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * ticks_per_second +
         static_cast<std::uint64_t>(now.tv_nsec) / (1'000'000'000 / ticks_per_second);
}

}  // namespace swapd::sys
