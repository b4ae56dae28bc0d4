// flock(2) with a time limit, because any process that may open a file may hold its lock for ever.
#pragma once

#include <sys/file.h>

#include <chrono>
#include <thread>

#include "base/result.h"
#include "base/time.h"

namespace swapd {

// Takes the lock exclusively. EBUSY: another process has held it all that time.
[[nodiscard]] inline Status lock_file(int fd, Duration within) {
  constexpr std::chrono::milliseconds pause{5};
  const auto deadline = std::chrono::steady_clock::now() + within;
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return errno_error("");
    if (std::chrono::steady_clock::now() > deadline) return Error(EBUSY, "");
    std::this_thread::sleep_for(pause);
  }
  return Done{};
}

}  // namespace swapd
