#include "decide/shaping/need_judge.h"

#include <algorithm>

namespace swapd::decide {

Need NeedJudge::judge(const Seen& seen, Duration period) {
  constexpr Tuning tuning;
  last_.push_back({seen, period});
  Duration length{};
  for (const Period& one : last_) length += one.length;
  while (last_.size() > 1 && length - last_.front().length >= tuning.window) {
    length -= last_.front().length;
    last_.pop_front();
  }
  if (seen.by_calls == 0 && seen.by_disk == 0 && seen.waited < tuning.idle_below) return Need::idle;
  const double seconds = std::chrono::duration<double>(length).count();
  if (seconds <= 0) return Need::met;
  double by_calls = 0, by_disk = 0, wait = 0;
  for (const Period& one : last_) {
    by_calls += static_cast<double>(one.seen.by_calls);
    by_disk += static_cast<double>(one.seen.by_disk);
    wait += one.seen.waited * std::chrono::duration<double>(one.length).count() / seconds;
  }
  if (rules_.wait && wait > *rules_.wait) return Need::missed;
  const bool too_little =
      rules_.rate && std::max(by_calls, by_disk) / seconds < tuning.rate_tolerance * static_cast<double>(*rules_.rate);
  return too_little && wait > tuning.needs_more_from ? Need::missed : Need::met;
}

}  // namespace swapd::decide
