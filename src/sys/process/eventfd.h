// eventfd(2) as a flag between threads.
#pragma once

#include <unistd.h>

#include <cstdint>

namespace swapd::sys {

// The descriptor is readable from now on. Never blocks, as far as it was made with EFD_NONBLOCK.
inline void signal_eventfd(int fd) {
  const std::uint64_t one = 1;
  (void)!::write(fd, &one, sizeof one);
}
// It is readable no more, until it is signalled again.
inline void clear_eventfd(int fd) {
  std::uint64_t count = 0;
  (void)!::read(fd, &count, sizeof count);
}

}  // namespace swapd::sys
