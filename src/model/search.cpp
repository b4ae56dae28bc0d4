#include "model/search.h"

#include <algorithm>

namespace swapd::model {

std::uint32_t debits(const WaitScratch* notes, ThreadId thread) {
  if (notes == nullptr) return 0;
  const auto it = std::lower_bound(notes->debits.begin(), notes->debits.end(), thread,
                                   [](const Debit& debit, ThreadId id) { return debit.thread < id; });
  return it != notes->debits.end() && it->thread == thread ? it->count : 0;
}

void Search::begin() {
  ++run_;
  steps_ = 0;
  nodes_used_ = 0;
  if (marks_.size() < store_.threads.end()) marks_.resize(store_.threads.end());
}

Index Search::fresh_node() {
  if (nodes_used_ == nodes_.size()) nodes_.emplace_back();
  nodes_[nodes_used_].reached.clear();
  return nodes_used_++;
}

const Search::Node& Search::run(Index requester) {
  begin();
  return nodes_[expand(requester, 0).node];
}

Search::Expanded Search::expand(Index thread, std::uint32_t depth) {
  Expanded result;
  result.node = fresh_node();
  marks_[thread].way = depth + 1;
  const ThreadRecord& requester = store_.threads[thread];
  for (Index at = requester.requests; at != none && steps_ < max_steps; at = store_.requests[at].next_of_thread) {
    const Index resource = store_.requests[at].resource;
    if (!store_.settings_of(thread, resource).counts) continue;
    store_.for_each_provider(resource, [&](Index provider) {
      expand_provider(provider, thread, depth, result);
      return ++steps_ < max_steps;
    });
  }
  marks_[thread].way = 0;
  order(nodes_[result.node]);
  // A cut at this thread or above it means that it lies on a cycle: then the result holds for this way only.
  if (result.lowest_cut > depth) {
    marks_[thread].expanded = run_;
    marks_[thread].node = result.node;
  }
  return result;
}

void Search::expand_provider(Index provider, Index requester, std::uint32_t depth, Expanded& result) {
  const Provider& candidate = store_.providers[provider];
  const ThreadRecord& thread = store_.threads[candidate.thread];
  if (const std::uint32_t way = marks_[candidate.thread].way; way != 0) {
    result.lowest_cut = std::min(result.lowest_cut, way - 1);
    return;
  }
  const bool literal = store_.settings_of(requester, candidate.resource).feedback == Feedback::paper;
  if (literal && candidate.confidence == 0) return;

  // The confidence less this wait's debits; C(P,P1,R) * C(P1,P2,R1) / K for the steps after the first.
  const double left =
      static_cast<double>(candidate.confidence) - debits(store_.threads[requester].notes.get(), thread.id);
  const double value =
      std::max(left, 0.0) / (depth == 0 ? 1.0 : store_.settings_of(candidate.resource).base_confidence);
  const double excess_debits = std::max(-left, 0.0);
  std::vector<ReachableLeaf>& reached = nodes_[result.node].reached;
  if (thread.state != RunState::blocked) {
    reached.push_back({candidate.thread, provider, none, 0, value, static_cast<float>(excess_debits)});
  } else if (thread.requests != none && depth + 1 < max_depth) {
    Index node = marks_[candidate.thread].node;
    if (marks_[candidate.thread].expanded != run_) {
      const Expanded below = expand(candidate.thread, depth + 1);
      result.lowest_cut = std::min(result.lowest_cut, below.lowest_cut);
      node = below.node;
    }
    const std::vector<ReachableLeaf>& onward = nodes_[node].reached;
    for (Index place = 0; place < onward.size(); ++place, ++steps_) {
      const ReachableLeaf& rest = onward[place];
      reached.push_back({rest.leaf, provider, node, place, value * rest.value,
                         static_cast<float>(excess_debits) + rest.excess_debits});
    }
  }
}

// Best first; then one way for each leaf, its best. The order is total: evidence and age decide between equals, and
// below the same provider the order of its own node stands.
void Search::order(Node& node) {
  std::vector<ReachableLeaf>& reached = node.reached;
  std::sort(reached.begin(), reached.end(), [this](const ReachableLeaf& a, const ReachableLeaf& b) {
    // As floats, so that the same factors multiplied in another order compare equal.
    if (const auto x = static_cast<float>(a.value), y = static_cast<float>(b.value); x != y) return x > y;
    if (a.excess_debits != b.excess_debits) return a.excess_debits < b.excess_debits;
    if (a.first == b.first) return a.place < b.place;
    const Provider& first = store_.providers[a.first];
    const Provider& second = store_.providers[b.first];
    if (first.evidence != second.evidence) return first.evidence < second.evidence;
    return static_cast<std::int32_t>(first.age - second.age) < 0;  // the counter may wrap
  });
  const std::uint64_t stamp = ++stamp_;
  node.direct = 0;
  for (const ReachableLeaf& reach : reached) {
    std::uint64_t& counted = marks_[store_.providers[reach.first].thread].counted;
    if (counted != stamp) ++node.direct;
    counted = stamp;
  }
  std::erase_if(reached, [&](const ReachableLeaf& reach) {
    if (marks_[reach.leaf].seen == stamp) return true;
    marks_[reach.leaf].seen = stamp;
    return false;
  });
}

}  // namespace swapd::model
