#include "observe/bpf/wait_rate.h"

#include <algorithm>
#include <utility>

namespace swapd::observe {

bool WaitRate::set_patience(Duration patience) {
  patience_ = patience;
  const std::size_t before = often_.size();
  for (std::size_t i = before; i-- > 0;) {
    if (apart_[i] < 2 * patience) continue;
    often_.erase(often_.begin() + static_cast<std::ptrdiff_t>(i));
    apart_.erase(apart_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (often_.size() == before) return false;
  counting_ = false;
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
  if (patience_ == Duration::zero() || often(kind)) return false;
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
  const Duration passed = now - count->begun;
  const std::uint32_t waits = std::exchange(count->waits, 0);
  if (waits * patience_ <= passed) return false;
  often_.push_back(kind);
  apart_.push_back(passed / (waits - 1));
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
  apart_.clear();
  return true;
}

}  // namespace swapd::observe
