// Two queues of a discrete-event simulation. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "base/time.h"

namespace swapd::simulate {

inline constexpr Duration not_at_all = Duration::max();

// The next event of each node: a heap of four children a parent in which a node's event can be moved. One event a node
// bounds the memory, whatever happens, and a node that has lost its process needs no cancelled event.
class NextEvents {
 public:
  explicit NextEvents(std::uint32_t nodes) : heap_(nodes), place_(nodes) {
    for (std::uint32_t node = 0; node < nodes; ++node) {
      heap_[node] = {not_at_all, node};
      place_[node] = node;
    }
  }
  [[nodiscard]] Duration time() const { return heap_.front().at; }
  [[nodiscard]] std::uint32_t node() const { return heap_.front().node; }
  void set(std::uint32_t node, Duration at) {
    const std::size_t place = place_[node];
    const bool earlier = at < heap_[place].at;
    heap_[place].at = at;
    earlier ? up(place) : down(place);
  }

 private:
  struct Entry {
    Duration at;
    std::uint32_t node;
  };
  void put(std::size_t place, Entry entry) {
    heap_[place] = entry;
    place_[entry.node] = static_cast<std::uint32_t>(place);
  }
  void up(std::size_t place) {
    const Entry entry = heap_[place];
    for (; place > 0 && entry.at < heap_[(place - 1) / 4].at; place = (place - 1) / 4)
      put(place, heap_[(place - 1) / 4]);
    put(place, entry);
  }
  void down(std::size_t place) {
    const Entry entry = heap_[place];
    for (;;) {
      const std::size_t first = 4 * place + 1;
      if (first >= heap_.size()) break;
      std::size_t least = first;
      for (std::size_t child = first + 1; child < first + 4 && child < heap_.size(); ++child)
        if (heap_[child].at < heap_[least].at) least = child;
      if (heap_[least].at >= entry.at) break;
      put(place, heap_[least]);
      place = least;
    }
    put(place, entry);
  }

  std::vector<Entry> heap_;
  std::vector<std::uint32_t> place_;
};

// Things that will happen at a time and cannot be moved. Those that come in the order of their times (messages over
// links of one latency) take a queue, the others a heap; at one time, the first that was pushed is the first out.
template <typename Thing>
class Pending {
 public:
  void push(Duration at, Thing thing) {
    Entry entry{at, pushed_++, std::move(thing)};
    if (queue_.empty() || at >= queue_.back().at)
      queue_.push_back(std::move(entry));
    else
      heap_.push(std::move(entry));
  }
  [[nodiscard]] Duration time() const {
    const Duration queued = queue_.empty() ? not_at_all : queue_.front().at;
    return heap_.empty() || queued < heap_.top().at ? queued : heap_.top().at;
  }
  // Only if time() is not not_at_all.
  [[nodiscard]] Thing pop() {
    if (heap_.empty() || (!queue_.empty() && heap_.top() > queue_.front())) {
      Thing thing = std::move(queue_.front().thing);
      queue_.pop_front();
      return thing;
    }
    Thing thing = heap_.top().thing;
    heap_.pop();
    return thing;
  }

 private:
  struct Entry {
    Duration at;
    std::uint64_t order;
    Thing thing;
    bool operator>(const Entry& other) const { return at != other.at ? at > other.at : order > other.order; }
  };

  std::deque<Entry> queue_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> heap_;
  std::uint64_t pushed_ = 0;
};

}  // namespace swapd::simulate
