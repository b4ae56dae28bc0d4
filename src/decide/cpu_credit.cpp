#include "decide/cpu_credit.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace swapd::decide {

void CpuCredit::update(Time now, Duration cpu, double share) {
  const bool first = last_ == never;
  const Time before = std::exchange(last_, now);
  const Duration used = cpu - std::exchange(cpu_, cpu);
  if (first) {
    credit_ = saved;
    return;
  }
  const Duration passed = std::max<Duration>(now - before, Duration::zero());
  const double comes_in = static_cast<double>(used.count()) / (part_ * share);
  credit_ = std::clamp<Duration>(credit_ + passed - Duration(std::llround(comes_in)), -owed, saved);
}

Duration CpuCredit::wait() const {
  const Duration debt = std::max(-credit_, Duration::zero());
  const Duration deep = std::max(debt - owed / 2, Duration::zero());
  return std::min(debt, max_wait + (longest_wait - max_wait) * deep.count() / (owed / 2).count());
}

}  // namespace swapd::decide
