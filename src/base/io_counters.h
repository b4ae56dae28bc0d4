// The bytes that a thread or process has moved, as the kernel counts them.
#pragma once

#include <cstdint>

namespace swapd {

// /proc/PID/task/TID/io (Documentation/filesystems/proc.rst, section 3.3).
struct IoCounters {
  std::uint64_t read_chars = 0, written_chars = 0;  // by read(2), write(2) and their kin, also where no disk was needed
  std::uint64_t calls = 0;                          // that are over, of those
  std::uint64_t read_bytes = 0, written_bytes = 0;  // from and to a block device; written: as the page got dirty
};

// Over IPv4 and IPv6, bytes.
struct TrafficCounters {
  std::uint64_t received = 0, sent = 0;
};

}  // namespace swapd
