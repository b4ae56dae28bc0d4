// Walks the wait graph from a requester down to the runnable threads [SWAP04 §3.1, §4].
#pragma once

#include <limits>
#include <span>
#include <utility>

#include "model/knot.h"
#include "model/reach.h"
#include "model/store.h"

namespace swapd::model {

// Depth first over awaited resources and their providers. A thread on the present path is left out, which excludes the
// requester itself and cuts cycles. What a blocked thread reaches does not depend on the path to it unless it lies on a
// cycle, so it is worked out once and remembered: a graph of diamonds costs what its edges cost.
//
// On cycles there is no such shortcut, and the paths double with each: at the first cycle the search asks whether this
// is a Knot, and begins again there, best first and bounded. So it does after `max_steps` (providers looked at plus
// reached threads taken over). `max_depth` bounds the recursion.
//
// The answer depends on the model alone, not on what was asked before. The last one is remembered until the model
// changes. The object keeps its memory between calls, so that a decision does not allocate once it has warmed up.
class Search {
 public:
  static constexpr std::size_t max_steps = 4096;
  static constexpr std::uint32_t max_depth = 512;
  static constexpr std::size_t max_tree = 16384;  // threads

  explicit Search(const Store& store) : store_(store) {}

  // The model has changed: nothing that was worked out holds any more.
  void forget();
  // Gives memory back.
  void clear();
  // Valid until forget() or the next call.
  const ReachNode& run(Index requester);
  [[nodiscard]] const ReachNode& node(Index at) const { return nodes_[at]; }
  // Providers that the last run() looked at, plus reached threads that it took over.
  [[nodiscard]] std::size_t steps() const { return steps_; }

  struct TreeThread {
    Index requester = none;  // the first of the requesters whose tree has the thread
    Index thread = none;
  };
  // Every thread in the trees of these requesters, each once; of a tree the nearest first. A requester is not in its
  // own tree, nor in that of another where the path to it goes through an earlier tree. `visit(thread, resource)` sees
  // each awaited resource with the thread that waits for it.
  template <typename Visit>
  Vector<TreeThread> trees(std::span<const Index> requesters, Visit visit);

 private:
  struct Mark {
    std::uint64_t seen = 0;      // as a leaf of the node being sorted, or in the trees
    std::uint64_t walked = 0;    // what it waits for has been visited for the trees
    std::uint64_t counted = 0;   // as a provider of the node being sorted
    std::uint64_t expanded = 0;  // run() in which `node` was worked out
    Index node = none;
    std::uint32_t way = 0;  // 1 + depth while on the present path
  };
  struct Expanded {
    Index node = none;
    std::uint32_t lowest_cut = std::numeric_limits<std::uint32_t>::max();
  };

  Expanded expand(Index thread, std::uint32_t depth);
  void expand_provider(Index provider, Index requester, std::uint32_t depth, Expanded& result);
  void order(ReachNode& node);
  [[nodiscard]] bool gives_up() const { return steps_ >= max_steps || is_knot_; }
  void begin();

  const Store& store_;
  std::vector<Mark> marks_;
  ReachNodes nodes_;
  Knot knot_{store_, nodes_};
  Index requester_ = none;  // of the last run() …
  Index answer_ = none;     // … and its node; none: the model has changed
  std::uint64_t run_ = 0;
  std::uint64_t stamp_ = 0;
  std::size_t steps_ = 0;
  bool has_cycle_ = false, is_knot_ = false;
};

template <typename Visit>
Vector<Search::TreeThread> Search::trees(std::span<const Index> requesters, Visit visit) {
  begin();
  const std::uint64_t stamp = ++stamp_;
  Vector<TreeThread> found;
  const auto walk = [&](Index requester, Index thread) {
    if (std::exchange(marks_[thread].walked, stamp) == stamp) return;
    for (Index at = store_.threads[thread].requests; at != none; at = store_.requests[at].next_of_thread) {
      const Index resource = store_.requests[at].resource;
      if (!store_.settings_of(resource).counts) continue;
      visit(thread, resource);
      store_.for_each_provider(resource, [&](Index provider) {
        const Index other = store_.providers[provider].thread;
        if (other != requester && marks_[other].seen != stamp && found.size() < max_tree) {
          marks_[other].seen = stamp;
          found.push_back({requester, other});
        }
        return true;
      });
    }
  };
  for (const Index requester : requesters) {
    std::size_t next = found.size();
    walk(requester, requester);
    for (; next < found.size(); ++next) walk(requester, found[next].thread);
  }
  return found;
}

}  // namespace swapd::model
