// Threads that a blocked thread reaches in the wait graph, as the searches write them down, and one step of a path.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "model/store.h"

namespace swapd::model {

// One runnable thread that was reached, and the first step of the path to it.
struct ReachableLeaf {
  Index leaf = none;
  Index first = none;  // the provider record by which the path begins
  Index node = none;   // where the path goes on: nodes[node].reached[place]; none: `first` is the leaf
  Index place = 0;
  double value = 0;         // confidence from the requester on; within a node, divided by K
  float excess_debits = 0;  // debits beyond the confidences on the path: whose turn it is among those that stand at 0
};

// The leaves that one blocked thread reaches.
struct ReachNode {
  std::vector<ReachableLeaf> reached;  // the best first
  std::size_t direct = 0;              // how many of its own providers are runnable or virtual runnable
};

// They keep their memory when they are given back.
class ReachNodes {
 public:
  [[nodiscard]] Index add() {
    if (used_ == all_.size()) all_.emplace_back();
    all_[used_].reached.clear();
    all_[used_].direct = 0;
    return used_++;
  }
  [[nodiscard]] ReachNode& operator[](Index at) { return all_[at]; }
  [[nodiscard]] const ReachNode& operator[](Index at) const { return all_[at]; }
  void give_back() { used_ = 0; }
  void clear() {
    all_.clear();
    all_.shrink_to_fit();
    used_ = 0;
  }

 private:
  std::deque<ReachNode> all_;
  Index used_ = 0;
};

// Debits of the thread in that wait.
[[nodiscard]] inline std::uint32_t debits(const WaitScratch* notes, ThreadId thread) {
  if (notes == nullptr) return 0;
  const auto it = std::lower_bound(notes->debits.begin(), notes->debits.end(), thread,
                                   [](const Debit& debit, ThreadId id) { return debit.thread < id; });
  return it != notes->debits.end() && it->thread == thread ? it->count : 0;
}

// A step from a blocked thread to one of its providers.
struct ReachStep {
  double factor = 0;        // the confidence less this wait's debits, 0 at least; after the first step divided by K
  float excess_debits = 0;  // the debits beyond it
};

// None: under Feedback::paper a provider at 0 is none.
[[nodiscard]] inline std::optional<ReachStep> step_to(const Store& store, Index requester, Index provider, bool first) {
  const Provider& candidate = store.providers[provider];
  if (candidate.confidence == 0 && store.settings_of(requester, candidate.resource).feedback == Feedback::paper)
    return std::nullopt;
  // C(P,P1,R) * C(P1,P2,R1) / K.
  const double left = static_cast<double>(candidate.confidence) -
                      debits(store.threads[requester].notes.get(), store.threads[candidate.thread].id);
  return ReachStep{std::max(left, 0.0) / (first ? 1.0 : store.settings_of(candidate.resource).base_confidence),
                   static_cast<float>(std::max(-left, 0.0))};
}

// Whether a path of this value is better than one of another: as floats, so that the same factors multiplied in another
// order compare equal. None: they are equal.
[[nodiscard]] inline std::optional<bool> better(double value, float excess, double other, float other_excess) {
  if (const auto x = static_cast<float>(value), y = static_cast<float>(other); x != y) return x > y;
  if (excess != other_excess) return excess < other_excess;
  return std::nullopt;
}

// Between two paths of one value: evidence and age of their first steps decide.
[[nodiscard]] inline bool comes_first(const Provider& a, const Provider& b) {
  if (a.evidence != b.evidence) return a.evidence < b.evidence;
  return static_cast<std::int32_t>(a.age - b.age) < 0;  // the counter may wrap
}

}  // namespace swapd::model
