// The ring between a receiver and the engine: one writer, one reader, no lock; what finds it full is counted and
// dropped, because the writer may not wait.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "observe/seccomp/receiver.h"

namespace swapd::observe {

class CallRing {
 public:
  static constexpr std::size_t capacity = 4096;  // a power of two

  // Writer. False: full.
  bool push(const RawCall& call) {
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    if (head - tail_seen_ == capacity) {
      tail_seen_ = tail_.load(std::memory_order_acquire);
      if (head - tail_seen_ == capacity) return false;
    }
    records_[head % capacity] = call;
    // Sequentially consistent, as pop()'s store and load are: of a writer that pushes and a reader that is just done,
    // one sees the other. Either the reader finds this record, or was_empty() finds that the reader had taken all
    // before it.
    head_.store(head + 1);
    return true;
  }
  // Writer, after a push that went well: had the reader taken everything before it?
  [[nodiscard]] bool was_empty() const { return tail_.load() + 1 >= head_.load(std::memory_order_relaxed); }

  // Reader.
  std::size_t pop(RawCall* out, std::size_t most) {
    std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    std::size_t count = 0;
    for (std::uint64_t head = head_.load(); tail != head && count < most; head = head_.load()) {
      while (tail != head && count < most) out[count++] = records_[tail++ % capacity];
      tail_.store(tail);
    }
    return count;
  }

 private:
  alignas(64) std::atomic<std::uint64_t> head_{0};
  std::uint64_t tail_seen_ = 0;  // writer's
  alignas(64) std::atomic<std::uint64_t> tail_{0};
  alignas(64) std::array<RawCall, capacity> records_{};
};

}  // namespace swapd::observe
