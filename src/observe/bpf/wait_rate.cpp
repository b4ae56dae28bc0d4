#include "observe/bpf/wait_rate.h"

#include <algorithm>
#include <utility>

namespace swapd::observe {

bool WaitRate::set_patience(Duration patience) {
  patience_ = patience;
  if (patience != Duration::zero() || !patient()) return false;
  often_.clear();
  return true;
}

// While swapd is over its budget, a rate has to be known sooner.
std::uint32_t WaitRate::waits_for_a_rate() const {
  constexpr Duration shortest = std::chrono::milliseconds(1);
  const auto share = static_cast<std::uint32_t>(std::max<Duration>(patience_, shortest) / shortest);
  return std::max(min_waits / share, fewest_waits);
}

bool WaitRate::told(const Kind& kind, Time now) {
  // One of them that was told because it lasted is no news.
  if (patience_ == Duration::zero() || std::ranges::find(often_, kind) != often_.end()) return false;
  auto count = std::ranges::find(counts_, kind, &Count::kind);
  if (count == counts_.end()) {
    if (counts_.size() < max_counted) {
      count = counts_.insert(counts_.end(), {kind});
    } else {
      count = std::ranges::min_element(counts_, {}, &Count::begun);
      *count = {kind};
    }
  }
  if (count->waits == 0 || now - count->begun > max_window) {
    count->begun = now;
    count->waits = 0;
  }
  if (++count->waits <= waits_for_a_rate()) return false;
  const bool is_often = count->waits * patience_ > now - count->begun;
  count->waits = 0;
  if (!is_often) return false;
  often_.push_back(kind);
  counts_.erase(count);
  counting_ = false;
  return true;
}

bool WaitRate::counted(std::uint32_t waits, Time now) {
  if (!patient()) return false;
  if (!std::exchange(counting_, true)) {
    begun_ = now;
    waits_ = waits;
    return false;
  }
  const Duration passed = now - begun_;
  if (passed < min_window) return false;
  const std::uint32_t begun = waits - std::exchange(waits_, waits);  // goes round
  begun_ = now;
  if (2 * begun * patience_ >= passed) return false;
  often_.clear();
  return true;
}

}  // namespace swapd::observe
