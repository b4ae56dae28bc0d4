#include "decide/lasting_demands.h"

#include <algorithm>
#include <utility>

namespace swapd::decide {

namespace {

// (The ranges' own equal_range is beyond clang 14 with libstdc++ 12.)
template <typename Demands>
auto of_thread(Demands& demands, ThreadId thread) {
  const auto begin = std::ranges::lower_bound(demands, thread, {}, &RunAs::thread);
  return std::pair(begin, std::ranges::upper_bound(begin, demands.end(), thread, {}, &RunAs::thread));
}

}  // namespace

std::span<const RunAs> LastingDemands::of(ThreadId thread) const {
  const auto [begin, end] = of_thread(demands_, thread);
  return {begin, end};
}

void LastingDemands::set(ThreadId thread, std::span<const RunAs> demands) {
  const auto [begin, end] = of_thread(demands_, thread);
  if (std::equal(begin, end, demands.begin(), demands.end())) return;
  changed_.push_back(thread);
  const auto at = demands_.erase(begin, end);
  demands_.insert(at, demands.begin(), demands.end());
}

void LastingDemands::set_all(std::span<const RunAs> demands) {
  before_.assign(demands.begin(), demands.end());
  std::swap(before_, demands_);
  std::ranges::stable_sort(demands_, {}, &RunAs::thread);
  auto old = before_.cbegin();
  for (auto now = demands_.cbegin(); now != demands_.cend() || old != before_.cend();) {
    const bool has_old = old != before_.cend();
    const ThreadId thread =
        now == demands_.cend() || (has_old && old->thread < now->thread) ? old->thread : now->thread;
    const auto is_of = [&](const RunAs& run) { return run.thread == thread; };
    const auto now_end = std::find_if_not(now, demands_.cend(), is_of);
    const auto old_end = std::find_if_not(old, before_.cend(), is_of);
    if (!std::equal(now, now_end, old, old_end)) changed_.push_back(thread);
    now = now_end;
    old = old_end;
  }
}

}  // namespace swapd::decide
