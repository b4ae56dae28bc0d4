// Attributes and users of the engine's tests.
#pragma once

#include <cstdint>

#include "base/sched_attr.h"

namespace swapd::daemon {

inline constexpr std::uint32_t alice = 1000, bob = 1001, root = 0;

inline SchedAttr nice_of(int nice) {
  SchedAttr attr;
  attr.nice = static_cast<std::int8_t>(nice);
  return attr;
}
inline SchedAttr fifo(int priority) {
  SchedAttr attr;
  attr.policy = SchedPolicy::fifo;
  attr.rt_priority = static_cast<std::uint8_t>(priority);
  return attr;
}

}  // namespace swapd::daemon
