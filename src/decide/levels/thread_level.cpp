#include "decide/levels/thread_level.h"

#include <algorithm>

namespace swapd::decide {

namespace {
constexpr int nice_a_level = 4;
constexpr Duration shortest = std::chrono::milliseconds(5);  // at the highest level
constexpr int levels_a_doubling = 3;
}  // namespace

int ThreadLevel::rise_of(Awaited awaited) {
  switch (awaited) {
    case Awaited::terminal_input:
      return 6;
    case Awaited::terminal_output:
      return 4;
    case Awaited::disk:
      return 2;
    case Awaited::other:
      break;
  }
  return 0;
}

int ThreadLevel::base_of(int nice) {
  const int lower = nice >= 0 ? nice / nice_a_level : -((-nice) / nice_a_level);
  return std::clamp(of_nice_0 - lower, 0, highest);
}

Duration ThreadLevel::quantum(int level) {
  return shortest * (1 << ((highest - std::clamp(level, 0, highest)) / levels_a_doubling));
}

void ThreadLevel::set_nice(int nice) {
  const int up = above();
  base_ = base_of(nice);
  level_ = std::min(base_ + up, highest);
}

bool ThreadLevel::blocks(Awaited awaited, Time now) {
  const int rise = rise_of(awaited);
  const int level = std::min(base_ + rise, highest);
  if (rise == 0 || level < level_) return false;
  level_ = level;
  why_ = awaited;
  since_ = now;
  return true;
}

void ThreadLevel::uses_quantum() { level_ = std::max(level_ - 1, base_); }

}  // namespace swapd::decide
