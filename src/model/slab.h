// Records addressed by a 32-bit index that stays while the record lives, and an intrusive hash table over them.
//
// Indices instead of pointers halve the links, and chunks instead of one growing array keep the cost of a record at its
// size: that is how the model stays within the paper's 64 and 32 bytes an object [SWAP04 §5.1].
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace swapd::model {

using Index = std::uint32_t;
inline constexpr Index none = ~Index{0};

template <typename T>
class Slab {
 public:
  [[nodiscard]] Index add() {
    ++live_;
    if (!free_.empty()) {
      const Index at = free_.back();
      free_.pop_back();
      return at;
    }
    if (end_ == chunks_.size() * chunk_size) chunks_.push_back(std::make_unique<T[]>(chunk_size));
    return end_++;
  }
  void remove(Index at) {
    (*this)[at] = T{};
    free_.push_back(at);
    --live_;
  }
  [[nodiscard]] T& operator[](Index at) { return chunks_[at / chunk_size][at % chunk_size]; }
  [[nodiscard]] const T& operator[](Index at) const { return chunks_[at / chunk_size][at % chunk_size]; }

  // Gives back the memory of all; none may be live.
  void clear() {
    chunks_.clear();
    chunks_.shrink_to_fit();
    free_.clear();
    free_.shrink_to_fit();
    end_ = 0;
  }

  [[nodiscard]] std::size_t live() const { return live_; }
  // One past the highest index that was ever given out. A removed record is a default-constructed one.
  [[nodiscard]] Index end() const { return end_; }

 private:
  static constexpr Index chunk_size = 256;
  std::vector<std::unique_ptr<T[]>> chunks_;
  std::vector<Index> free_;
  Index end_ = 0;
  std::size_t live_ = 0;
};

// Separate chaining, as [SWAP04 §3.1] has it. The records carry the chain in `hash_next`.
template <typename T>
class ChainTable {
 public:
  explicit ChainTable(Slab<T>& slab) : slab_(slab), heads_(first_size, none) {}

  template <typename Match>
  [[nodiscard]] Index find(std::uint64_t hash, Match match) const {
    for (Index at = heads_[bucket(hash)]; at != none; at = slab_[at].hash_next) {
      if (match(slab_[at])) return at;
    }
    return none;
  }
  // `hash_of` gives the hash of a record already in the table: needed when the table grows.
  template <typename HashOf>
  void insert(Index at, HashOf hash_of) {
    if (slab_.live() > heads_.size()) grow(hash_of);
    link(at, hash_of(slab_[at]));
  }
  void clear() { heads_ = std::vector<Index>(first_size, none); }
  void erase(Index at, std::uint64_t hash) {
    Index* link = &heads_[bucket(hash)];
    while (*link != at) link = &slab_[*link].hash_next;
    *link = slab_[at].hash_next;
  }

 private:
  [[nodiscard]] std::size_t bucket(std::uint64_t hash) const {
    // The high bits of the product depend on all bits of the hash; std::hash of an integer is the integer.
    return static_cast<std::size_t>((hash * 0x9E3779B97F4A7C15ULL) >> (64 - std::countr_zero(heads_.size())));
  }
  void link(Index at, std::uint64_t hash) {
    Index& head = heads_[bucket(hash)];
    slab_[at].hash_next = head;
    head = at;
  }
  template <typename HashOf>
  void grow(HashOf hash_of) {
    const std::vector<Index> old = std::move(heads_);
    heads_.assign(old.size() * 2, none);
    for (Index at : old) {
      while (at != none) {
        const Index next = slab_[at].hash_next;
        link(at, hash_of(slab_[at]));
        at = next;
      }
    }
  }

  static constexpr std::size_t first_size = 64;  // a power of two
  Slab<T>& slab_;
  std::vector<Index> heads_;
};

}  // namespace swapd::model
