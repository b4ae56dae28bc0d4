#include "compat/realtime_rules.h"

#include <algorithm>
#include <charconv>
#include <sstream>

namespace swapd::compat {
namespace {

std::string out_of(const char* what, int value, int least, int most) {
  return std::string(what) + " " + std::to_string(value) + " is not in " + std::to_string(least) + "…" +
         std::to_string(most);
}

}  // namespace

std::optional<Duration> realtime_bound(std::string_view limits) {
  constexpr std::string_view key = "Max realtime timeout";
  const std::size_t at = limits.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  std::istringstream line(std::string(limits.substr(at + key.size(), limits.find('\n', at) - at - key.size())));
  std::string soft;
  std::string hard;
  line >> soft >> hard;
  std::int64_t us = 0;
  const auto [end, failure] = std::from_chars(hard.data(), hard.data() + hard.size(), us);
  if (failure != std::errc() || end != hard.data() + hard.size() || us < 0) return std::nullopt;
  return std::chrono::microseconds(std::min<std::int64_t>(us, INT64_MAX / 1000));
}

std::string refusal(const RealtimeWish& wish, const RealtimeLimits& limits) {
  if (wish.caller != wish.owner && wish.caller != 0) return "the process is another user's";
  if (!wish.thread_of_process) return "the thread is none of that process";
  if (wish.priority && (*wish.priority < 1 || *wish.priority > limits.max_priority))
    return out_of("real-time priority", *wish.priority, 1, limits.max_priority);
  if (!wish.priority && (wish.nice < limits.min_nice || wish.nice > 19))
    return out_of("nice value", wish.nice, limits.min_nice, 19);
  if (wish.priority && (!wish.longest || *wish.longest > limits.longest))
    return "the process's hard RLIMIT_RTTIME is above " +
           std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(limits.longest).count()) +
           " us (getrlimit(2))";
  if (wish.threads_of_user >= limits.threads_of_user)
    return "this user has " + std::to_string(limits.threads_of_user) + " such threads already";
  return "";
}

bool ActionQuota::take(uid_t user, Time now) {
  std::erase_if(users_, [&](const auto& one) { return now - one.second.since >= limits_.actions_within; });
  Burst& burst = users_.try_emplace(user, Burst{.since = now}).first->second;
  return ++burst.actions <= limits_.actions;
}

}  // namespace swapd::compat
