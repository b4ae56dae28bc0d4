#include "model/search.h"

#include <algorithm>
#include <utility>

namespace swapd::model {

void Search::begin() {
  ++run_;
  if (marks_.size() < store_.threads.end()) marks_.resize(store_.threads.end());
}

void Search::forget() {
  answer_ = none;
  knot_.forget();
}

void Search::clear() {
  marks_.clear();
  marks_.shrink_to_fit();
  knot_.clear();
  nodes_.clear();
  answer_ = none;
}

const ReachNode& Search::run(Index requester) {
  if (answer_ != none && requester == requester_) return nodes_[answer_];
  begin();
  nodes_.give_back();
  steps_ = 0;
  has_cycle_ = is_knot_ = false;
  requester_ = requester;
  answer_ = expand(requester, 0).node;
  if (gives_up()) {
    nodes_.give_back();
    answer_ = knot_.run(requester);
    steps_ += knot_.looked();
  }
  return nodes_[answer_];
}

Search::Expanded Search::expand(Index thread, std::uint32_t depth) {
  Expanded result;
  result.node = nodes_.add();
  marks_[thread].way = depth + 1;
  const ThreadRecord& requester = store_.threads[thread];
  for (Index at = requester.requests; at != none && !gives_up(); at = store_.requests[at].next_of_thread) {
    const Index resource = store_.requests[at].resource;
    if (!store_.settings_of(thread, resource).counts) continue;
    store_.for_each_provider(resource, [&](Index provider) {
      expand_provider(provider, thread, depth, result);
      ++steps_;
      return !gives_up();
    });
  }
  marks_[thread].way = 0;
  if (gives_up()) return result;
  order(nodes_[result.node]);
  // A cut at this thread or above it means that it lies on a cycle: then the result holds for this way only.
  if (result.lowest_cut > depth) {
    marks_[thread].expanded = run_;
    marks_[thread].node = result.node;
  }
  return result;
}

void Search::expand_provider(Index provider, Index requester, std::uint32_t depth, Expanded& result) {
  const Index next = store_.providers[provider].thread;
  const ThreadRecord& thread = store_.threads[next];
  if (next == requester) return;  // whatever the path
  if (const std::uint32_t way = marks_[next].way; way != 0) {
    result.lowest_cut = std::min(result.lowest_cut, way - 1);
    if (!std::exchange(has_cycle_, true)) is_knot_ = knot_.begins_at(requester_);
    return;
  }
  const std::optional<ReachStep> step = step_to(store_, requester, provider, depth == 0);
  if (!step) return;
  std::vector<ReachableLeaf>& reached = nodes_[result.node].reached;
  if (thread.state != RunState::blocked) {
    reached.push_back({next, provider, none, 0, step->factor, step->excess_debits});
  } else if (thread.requests != none && depth + 1 < max_depth) {
    Index node = marks_[next].node;
    if (marks_[next].expanded != run_) {
      const Expanded below = expand(next, depth + 1);
      result.lowest_cut = std::min(result.lowest_cut, below.lowest_cut);
      node = below.node;
      if (gives_up()) return;
    }
    const std::vector<ReachableLeaf>& onward = nodes_[node].reached;
    for (Index place = 0; place < onward.size(); ++place, ++steps_) {
      const ReachableLeaf& rest = onward[place];
      reached.push_back(
          {rest.leaf, provider, node, place, step->factor * rest.value, step->excess_debits + rest.excess_debits});
    }
  }
}

// Best first; then one way for each leaf, its best. The order is total: evidence and age decide between equals, and
// below the same provider the order of its own node stands.
void Search::order(ReachNode& node) {
  std::vector<ReachableLeaf>& reached = node.reached;
  std::sort(reached.begin(), reached.end(), [this](const ReachableLeaf& a, const ReachableLeaf& b) {
    if (const auto first = better(a.value, a.excess_debits, b.value, b.excess_debits)) return *first;
    if (a.first == b.first) return a.place < b.place;
    return comes_first(store_.providers[a.first], store_.providers[b.first]);
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
