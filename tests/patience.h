// How many times as long tests wait for what they expect: SWAPD_TEST_PATIENCE, on a machine that is emulated.
#pragma once

#include <algorithm>
#include <cstdlib>

namespace swapd::test {

inline int patience() {
  const char* times = std::getenv("SWAPD_TEST_PATIENCE");
  return times == nullptr ? 1 : std::max(1, std::atoi(times));
}

}  // namespace swapd::test
