// The rules by which rtkit's interface gives a thread a priority: a real-time one only where the kernel ends a thread
// that never sleeps (RLIMIT_RTTIME, getrlimit(2)), so many for a user, and not all the time. Pure.
//
// Source: rtkit's README, and its options' defaults (rtkit-daemon(8)).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"

namespace swapd::compat {

struct RealtimeLimits {
  int max_priority = 20;
  int min_nice = -15;
  Duration longest = std::chrono::milliseconds(200);  // that a real-time thread may run without a pause
  std::size_t threads_of_user = 25;
  int actions = 25;  // of a user, in `actions_within`
  Duration actions_within = std::chrono::seconds(20);
};

struct RealtimeWish {
  uid_t caller = 0;
  uid_t owner = 0;                  // the process's effective user
  bool thread_of_process = true;    // the thread is one of the process's
  std::optional<Duration> longest;  // of the process: its hard RLIMIT_RTTIME; nothing: unlimited
  std::optional<int> priority;      // SCHED_RR; else
  int nice = 0;                     // … this nice value
  std::size_t threads_of_user = 0;  // that have something of ours, without this one
};

// The hard RLIMIT_RTTIME of a /proc/PID/limits (proc(5)); nothing: there is none.
[[nodiscard]] std::optional<Duration> realtime_bound(std::string_view limits);

// Empty: it may have it. Else why not, for the caller.
[[nodiscard]] std::string refusal(const RealtimeWish& wish, const RealtimeLimits& limits);

// How often a user has asked lately.
class ActionQuota {
 public:
  explicit ActionQuota(const RealtimeLimits& limits) : limits_(limits) {}
  // False: too often.
  [[nodiscard]] bool take(uid_t user, Time now);

 private:
  struct Burst {
    Time since{};
    int actions = 0;
  };
  RealtimeLimits limits_;
  std::map<uid_t, Burst> users_;
};

}  // namespace swapd::compat
