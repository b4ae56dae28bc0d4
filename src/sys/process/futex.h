// Waiting on a word of shared memory (futex(2)); not private to a process. Header only: the launcher calls it where no
// other system call is safe.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <ctime>

#include "base/time.h"

namespace swapd::sys {

// Sleeps while the word holds `expected`, until `deadline`. Comes back early for a signal or for nothing: look at the
// word.
inline void futex_wait(std::atomic<std::int32_t>& word, std::int32_t expected, Time deadline) {
  const auto at = deadline.time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(at);
  const timespec until{seconds.count(), (at - seconds).count()};
  // WAIT_BITSET takes an absolute time, of CLOCK_MONOTONIC.
  ::syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, expected, &until, nullptr, FUTEX_BITSET_MATCH_ANY);
}

inline void futex_wake(std::atomic<std::int32_t>& word) { ::syscall(SYS_futex, &word, FUTEX_WAKE, INT32_MAX); }

}  // namespace swapd::sys
