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

Duration CpuCredit::wait() const { return std::clamp(-credit_, Duration::zero(), max_wait); }

}  // namespace swapd::decide
