// Walks the wait graph from a requester down to the runnable threads [SWAP04 §3.1, §4].
#pragma once

#include <deque>
#include <limits>

#include "model/store.h"

namespace swapd::model {

// One runnable thread that was reached, and the first step of the way to it.
struct ReachableLeaf {
  Index leaf = none;
  Index first = none;  // the provider record by which the way begins
  Index node = none;   // where the way goes on: Search::node(node).reached[place]; none: `first` is the leaf
  Index place = 0;
  double value = 0;         // confidence from the requester on; within a node, divided by K
  float excess_debits = 0;  // debits beyond the confidences on the way: whose turn it is among those that stand at 0
};

// Depth first over awaited resources and their providers. A thread on the present way is left out, which excludes the
// requester itself and cuts cycles. What a blocked thread reaches does not depend on the way to it unless it lies on a
// cycle, so it is worked out once and remembered: a graph of diamonds costs what its edges cost.
// On cycles there is no such shortcut; there, and for graphs beyond reason, `max_steps` (providers looked at plus
// reached threads taken over) and `max_depth` bound the work; what was found until then stands.
//
// The object keeps its memory between calls, so that a decision does not allocate once it has warmed up.
class Search {
 public:
  static constexpr std::size_t max_steps = 16384;
  static constexpr std::uint32_t max_depth = 512;

  explicit Search(const Store& store) : store_(store) {}

  // The leaves that one blocked thread reaches.
  struct Node {
    std::vector<ReachableLeaf> reached;  // the best first
    std::size_t direct = 0;              // how many of its own providers are runnable or virtual runnable
  };
  // Nothing is kept between two calls but memory: gives it back.
  void clear() {
    marks_.clear();
    marks_.shrink_to_fit();
    nodes_.clear();
    nodes_.shrink_to_fit();
    nodes_used_ = 0;
  }
  // Valid until the next call.
  const Node& run(Index requester);
  [[nodiscard]] const Node& node(Index at) const { return nodes_[at]; }

  // Every thread in the tree but the requester, nearest first. `visit(thread, resource)` sees each awaited resource
  // with the thread that waits for it.
  template <typename Visit>
  Vector<Index> tree(Index requester, Visit visit);

 private:
  struct Mark {
    std::uint64_t seen = 0;      // as a leaf of the node being sorted, or in the tree
    std::uint64_t counted = 0;   // as a provider of the node being sorted
    std::uint64_t expanded = 0;  // run() in which `node` was worked out
    Index node = none;
    std::uint32_t way = 0;  // 1 + depth while on the present way
  };
  struct Expanded {
    Index node = none;
    std::uint32_t lowest_cut = std::numeric_limits<std::uint32_t>::max();
  };

  Expanded expand(Index thread, std::uint32_t depth);
  void expand_provider(Index provider, Index requester, std::uint32_t depth, Expanded& result);
  void order(Node& node);
  Index fresh_node();
  void begin();

  const Store& store_;
  std::vector<Mark> marks_;
  std::deque<Node> nodes_;
  Index nodes_used_ = 0;
  std::uint64_t run_ = 0;
  std::uint64_t stamp_ = 0;
  std::size_t steps_ = 0;
};

// Debits of the thread in that wait.
[[nodiscard]] std::uint32_t debits(const WaitScratch* notes, ThreadId thread);

template <typename Visit>
Vector<Index> Search::tree(Index requester, Visit visit) {
  begin();
  const std::uint64_t stamp = ++stamp_;
  marks_[requester].seen = stamp;
  Vector<Index> found{requester};
  for (std::size_t next = 0; next < found.size(); ++next) {
    const Index thread = found[next];
    for (Index at = store_.threads[thread].requests; at != none; at = store_.requests[at].next_of_thread) {
      const Index resource = store_.requests[at].resource;
      if (!store_.settings_of(resource).counts) continue;
      visit(thread, resource);
      store_.for_each_provider(resource, [&](Index provider) {
        const Index other = store_.providers[provider].thread;
        if (marks_[other].seen != stamp && found.size() < max_steps) {
          marks_[other].seen = stamp;
          found.push_back(other);
        }
        return true;
      });
    }
  }
  found.erase(found.begin());
  return found;
}

}  // namespace swapd::model
