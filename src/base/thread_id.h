// A thread's identity: tid and start time, so that a recycled tid is another thread.
// start_time is field 22 of /proc/TID/stat, in clock ticks since boot (proc_pid_stat(5)).
#pragma once

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <functional>

namespace swapd {

struct ThreadId {
  pid_t tid = 0;
  std::uint64_t start_time = 0;

  auto operator<=>(const ThreadId&) const = default;  // NOLINT(modernize-use-nullptr): of a comparison that it makes
  [[nodiscard]] bool valid() const { return tid > 0; }
};

}  // namespace swapd

template <>
struct std::hash<swapd::ThreadId> {
  std::size_t operator()(const swapd::ThreadId& id) const noexcept {
    return std::hash<std::uint64_t>{}(static_cast<std::uint64_t>(id.tid) * 0x9E3779B97F4A7C15ULL ^ id.start_time);
  }
};
