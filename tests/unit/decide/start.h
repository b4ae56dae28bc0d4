#pragma once

#include <chrono>

#include "base/time.h"

namespace swapd::test {

inline const Time start = Time{} + std::chrono::hours(1);  // of what is tested: any time that is not the clock's zero

}  // namespace swapd::test
