#include "decide/cpu_credit.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace swapd::decide {

void CpuCredit::update(Time now, Duration cpu, double share) {
  const bool first = last_ == never;
  const Duration passed = std::clamp<Duration>(now - std::exchange(last_, now), Duration::zero(), saved + owed);
  const Duration used = cpu - std::exchange(cpu_, cpu);
  credit_ = std::min<Duration>(credit_ + passed, saved);
  if (first) return;
  const double comes_in = static_cast<double>(used.count()) / (part_ * share);
  credit_ = std::clamp<Duration>(credit_ - Duration(std::llround(comes_in)), -owed, saved);
}

Duration CpuCredit::wait() const { return std::clamp(-credit_, Duration::zero(), max_wait); }

}  // namespace swapd::decide
