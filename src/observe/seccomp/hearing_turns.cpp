#include "observe/seccomp/hearing_turns.h"

#include <algorithm>
#include <utility>

namespace swapd::observe {

void HearingTurns::set_part(double part) {
  if (std::exchange(part_, part) != part) next_ = {};
}

std::size_t HearingTurns::room(std::size_t threads) const {
  if (part_ >= 1 || threads <= always_heard) return threads;
  return std::max(least_heard, static_cast<std::size_t>(part_ * static_cast<double>(threads)));
}

void HearingTurns::give(std::vector<ThreadId>& threads, Time now) {
  next_ = now + turn;
  std::ranges::sort(threads);
  std::rotate(threads.begin(), std::upper_bound(threads.begin(), threads.end(), last_), threads.end());
  const std::size_t most = room(threads.size());
  if (most > 0 && most < threads.size()) last_ = threads[std::min(most, most_at_a_time) - 1];
}

}  // namespace swapd::observe
