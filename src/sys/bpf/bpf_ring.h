// The reader's side of a BPF ring buffer (Documentation/bpf/ringbuf.rst of the kernel): one page with the reader's
// position, one with the writers', then the data, mapped twice in a row so that no record is split.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"

namespace swapd::sys {

class BpfRing {
 public:
  BpfRing() = default;
  // The descriptor stays the caller's. bytes: the map's max_entries.
  [[nodiscard]] static Result<BpfRing> map(int fd, std::size_t bytes);
  BpfRing(BpfRing&& other) noexcept;
  BpfRing& operator=(BpfRing&& other) noexcept;
  BpfRing(const BpfRing&) = delete;
  BpfRing& operator=(const BpfRing&) = delete;
  ~BpfRing();

  // Copies the oldest record, if it is of this size, and frees its place; false when there is none. One of another size
  // is skipped.
  [[nodiscard]] bool next(void* out, std::size_t size);

 private:
  std::uint64_t* reader_ = nullptr;  // its page
  std::byte* rest_ = nullptr;        // the writers' page, and the data
  std::size_t bytes_ = 0;
};

}  // namespace swapd::sys
