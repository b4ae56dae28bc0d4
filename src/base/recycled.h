// Containers that take no memory from the heap once they have been as full as they get: what they give back is kept,
// and serves the next of that size.
//
// The engine runs at a real-time priority, and fills and empties such containers at each wait. The heap may wait for a
// lock that another thread holds, or for the kernel to map pages. Each thread keeps its own memory, by sizes that are
// powers of two; the bounds are those of RecycledMemory, and beyond them it is the heap's.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace swapd {

struct RecycledMemory {
  static const bool keeps;  // false under sanitizers, which find use after free only in memory of the heap
  static constexpr std::size_t max_size = std::size_t{16} << 10;         // bytes; larger blocks are the heap's
  static constexpr std::size_t max_kept_bytes = std::size_t{256} << 10;  // of each size, by each thread
  // Throws std::bad_alloc.
  [[nodiscard]] static void* take(std::size_t size);
  // size: as asked for.
  static void give_back(void* memory, std::size_t size) noexcept;
  // Gives what this thread keeps to the heap.
  static void clear() noexcept;
};

template <typename T>
struct Recycled {
  static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
  using value_type = T;
  Recycled() = default;
  template <typename U>
  Recycled(const Recycled<U>& /*other*/) noexcept {}  // NOLINT(google-explicit-constructor): an allocator's conversion
  // NOLINTBEGIN(bugprone-sizeof-expression): a map's table holds pointers
  [[nodiscard]] T* allocate(std::size_t count) { return static_cast<T*>(RecycledMemory::take(count * sizeof(T))); }
  void deallocate(T* memory, std::size_t count) noexcept { RecycledMemory::give_back(memory, count * sizeof(T)); }
  // NOLINTEND(bugprone-sizeof-expression)
  bool operator==(const Recycled& /*other*/) const { return true; }
};

template <typename T>
using Vector = std::vector<T, Recycled<T>>;
template <typename Key>
using Set = std::set<Key, std::less<Key>, Recycled<Key>>;
template <typename Key, typename Value>
using Map = std::map<Key, Value, std::less<Key>, Recycled<std::pair<const Key, Value>>>;
template <typename Key>
using HashSet = std::unordered_set<Key, std::hash<Key>, std::equal_to<Key>, Recycled<Key>>;
template <typename Key, typename Value>
using HashMap =
    std::unordered_map<Key, Value, std::hash<Key>, std::equal_to<Key>, Recycled<std::pair<const Key, Value>>>;

}  // namespace swapd
