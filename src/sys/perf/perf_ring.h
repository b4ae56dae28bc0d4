// The memory that a perf event shares with its reader (perf_event_open(2), "MMAP layout"): one page of control, then
// the records.
#pragma once

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/fd.h"
#include "base/result.h"

namespace swapd::sys {

// Opens an event (close-on-exec) with CLOCK_MONOTONIC stamps. tid -1 with a cpu: everything there; cpu -1 with a tid:
// that thread anywhere.
[[nodiscard]] Result<Fd> open_perf_event(perf_event_attr attr, pid_t tid, int cpu);

// The reader's side. One reader.
class PerfRing {
 public:
  static constexpr std::size_t largest_record = 512;  // longer ones are skipped

  PerfRing() = default;
  // data_pages: a power of two.
  [[nodiscard]] static Result<PerfRing> map(int fd, std::size_t data_pages);
  PerfRing(PerfRing&& other) noexcept;
  PerfRing& operator=(PerfRing&& other) noexcept;
  PerfRing(const PerfRing&) = delete;
  PerfRing& operator=(const PerfRing&) = delete;
  ~PerfRing();

  // Hands out the oldest record, header included, and frees its place; false when there is none. `out` holds
  // largest_record bytes.
  bool next(std::byte* out);
  bool discard();  // all that is there; was there anything?

 private:
  PerfRing(void* base, std::size_t length) : base_(base), length_(length) {}
  void* base_ = nullptr;
  std::size_t length_ = 0;
};

// Reads an integer of a record without caring for alignment.
template <typename T>
[[nodiscard]] T load_as(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace swapd::sys
