#include "decide/cpu_credit.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace swapd::decide {

namespace {
Duration in(Duration time, double rate) { return Duration(std::llround(static_cast<double>(time.count()) * rate)); }
}  // namespace

Duration CpuCredit::wait(Time now, Duration cpu, double share) {
  const double rate = part * share;
  const bool first = last_ == never;
  const Duration passed = std::clamp<Duration>(now - std::exchange(last_, now), Duration::zero(), saved + owed);
  const Duration used = cpu - std::exchange(cpu_, cpu);
  credit_ = std::min(credit_ + in(passed, rate), in(saved, rate));
  if (!first) credit_ = std::clamp(credit_ - used, -in(owed, rate), in(saved, rate));
  return credit_ < Duration::zero() ? std::min(in(-credit_, 1 / rate), max_wait) : Duration::zero();
}

}  // namespace swapd::decide
