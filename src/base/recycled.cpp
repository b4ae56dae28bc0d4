#include "base/recycled.h"

#include <array>
#include <bit>
#include <new>
#include <utility>

namespace swapd {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool recycles = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool recycles = false;
#else
constexpr bool recycles = true;
#endif
#else
constexpr bool recycles = true;
#endif

constexpr std::size_t smallest = 4;  // 16 bytes
constexpr std::size_t sizes = static_cast<std::size_t>(std::bit_width(RecycledMemory::max_size)) - smallest;

constexpr std::size_t size_class(std::size_t size) {
  const auto bits = static_cast<std::size_t>(std::bit_width(size <= 1 ? std::size_t{0} : size - 1));
  return bits <= smallest ? 0 : bits - smallest;
}
constexpr std::size_t bytes_of(std::size_t size_class) { return std::size_t{1} << (size_class + smallest); }

struct Block {
  Block* next = nullptr;
};

// Memory that containers give back after the thread's own has ended goes to the heap.
thread_local bool ended = false;

struct Kept {
  std::array<Block*, sizes> first{};
  std::array<std::size_t, sizes> count{};
  ~Kept() {
    ended = true;
    clear();
  }
  void clear() {
    for (Block* at : first)
      while (at != nullptr) ::operator delete(std::exchange(at, at->next));
    first = {};
    count = {};
  }
};
thread_local Kept kept;

}  // namespace

const bool RecycledMemory::keeps = recycles;

void* RecycledMemory::take(std::size_t size) {
  if (!recycles || size > max_size) return ::operator new(size);
  const std::size_t at = size_class(size);
  Block* const block = ended ? nullptr : kept.first[at];
  if (block == nullptr) return ::operator new(bytes_of(at));
  kept.first[at] = block->next;
  --kept.count[at];
  return block;
}

void RecycledMemory::give_back(void* memory, std::size_t size) noexcept {
  const std::size_t at = size_class(size);
  if (!recycles || size > max_size || ended || kept.count[at] >= max_kept_bytes / bytes_of(at))
    return ::operator delete(memory);
  kept.first[at] = new (memory) Block{kept.first[at]};
  ++kept.count[at];
}

void RecycledMemory::clear() noexcept {
  if (!ended) kept.clear();
}

}  // namespace swapd
