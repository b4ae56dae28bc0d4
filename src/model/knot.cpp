#include "model/knot.h"

#include <utility>

namespace swapd::model {

namespace {
constexpr std::size_t max_depth = 512;  // of the walk that counts: it recurses
}  // namespace

void Knot::begin() {
  ++run_;
  if (marks_.size() < store_.threads.end()) marks_.resize(store_.threads.end());
}

void Knot::forget() {
  for (const Index thread : linked_) marks_[thread].links = none;
  linked_.clear();
}

void Knot::clear() {
  marks_ = {};
  links_.clear();
  links_.shrink_to_fit();
  linked_ = {};
  own_links_ = {};
  seen_ = {};
  open_ = {};
  leaves_ = {};
}

bool Knot::begins_at(Index requester) {
  begin();
  Walk walked;
  walk(requester, 0, walked);
  return walked.too_long();
}

void Knot::walk(Index thread, std::size_t depth, Walk& walked) {
  marks_[thread].opened = run_;
  marks_[thread].on_path = true;
  for (const Link& link : links_of(thread)) {
    if (++walked.looked; link.runnable) continue;
    if (marks_[link.thread].on_path)
      ++walked.back;
    else if (marks_[link.thread].opened != run_ && depth < max_depth)
      walk(link.thread, depth + 1, walked);
    if (walked.too_long()) break;
  }
  marks_[thread].on_path = false;
}

Index Knot::run(Index requester) {
  begin();
  looked_ = 0;
  seen_.assign(1, Seen{.thread = requester, .node = nodes_.add()});
  open_.clear();
  leaves_.clear();
  open(0);
  const std::size_t end = looked_ + max_looked;
  while (looked_ < end && !open_.empty()) {
    std::pop_heap(open_.begin(), open_.end(), [this](Index a, Index b) { return opens_later(a, b); });
    const Index next = open_.back();
    open_.pop_back();
    if (marks_[seen_[next].thread].opened != run_) open(next);  // else by a better path
  }
  return write();
}

bool Knot::opens_later(Index a, Index b) const {
  const Seen &x = seen_[a], &y = seen_[b];
  if (const auto first = better(x.value, x.excess_debits, y.value, y.excess_debits)) return !*first;
  return a > b;  // the nearer one was seen first
}

void Knot::open(Index at) {
  const Index thread = seen_[at].thread;
  marks_[thread].opened = run_;
  ++stamp_;
  if (at == 0) look_up(thread, true, own_links_);
  for (const Link& link : at == 0 ? own_links_ : links_of(thread)) follow(at, link);
}

void Knot::follow(Index at, const Link& link) {
  ++looked_;
  if (link.runnable) return found(at, link);
  if (marks_[link.thread].opened == run_) return;
  const double value = seen_[at].value * link.step.factor;
  const float excess = seen_[at].excess_debits + link.step.excess_debits;
  open_.push_back(static_cast<Index>(seen_.size()));
  seen_.push_back({link.thread, at, link.provider, at == 0 ? link.provider : seen_[at].first, value, excess});
  std::push_heap(open_.begin(), open_.end(), [this](Index a, Index b) { return opens_later(a, b); });
}

void Knot::found(Index at, const Link& link) {
  Mark& mark = marks_[link.thread];
  if (std::exchange(mark.counted, stamp_) != stamp_) ++seen_[at].direct;  // it may provide several resources
  for (Index on_path = at; on_path != 0 && !std::exchange(seen_[on_path].leads, true); on_path = seen_[on_path].before)
    ++seen_[seen_[on_path].before].direct;
  const Seen& last = seen_[at];
  Leaf leaf{link.thread,
            at,
            link.provider,
            at == 0 ? link.provider : last.first,
            static_cast<Index>(leaves_.size()),
            last.value * link.step.factor,
            last.excess_debits + link.step.excess_debits};
  if (std::exchange(mark.found, run_) != run_) {
    mark.leaf = leaf.place;
    leaves_.push_back(leaf);
    return;
  }
  Leaf& known = leaves_[mark.leaf];
  leaf.place = known.place;
  const auto is_better = better(leaf.value, leaf.excess_debits, known.value, known.excess_debits);
  if (is_better.value_or(leaf.first != known.first &&
                         comes_first(store_.providers[leaf.first], store_.providers[known.first])))
    known = leaf;
}

Index Knot::write() {
  std::sort(leaves_.begin(), leaves_.end(), [this](const Leaf& a, const Leaf& b) {
    if (const auto first = better(a.value, a.excess_debits, b.value, b.excess_debits)) return *first;
    if (a.first != b.first) return comes_first(store_.providers[a.first], store_.providers[b.first]);
    return a.place < b.place;
  });
  const Index node = seen_[0].node;
  nodes_[node].direct = seen_[0].direct;
  for (const Leaf& leaf : leaves_) nodes_[node].reached.push_back(path_to(leaf));
  return node;
}

ReachableLeaf Knot::path_to(const Leaf& leaf) {
  ReachableLeaf step{leaf.thread, leaf.provider, none, 0, leaf.value, leaf.excess_debits};
  for (Index at = leaf.before; at != 0; at = seen_[at].before) {
    Seen& on_path = seen_[at];
    if (on_path.node == none) {
      on_path.node = nodes_.add();
      nodes_[on_path.node].direct = on_path.direct;
    }
    std::vector<ReachableLeaf>& reached = nodes_[on_path.node].reached;
    reached.push_back(step);
    step.first = on_path.provider;
    step.node = on_path.node;
    step.place = static_cast<Index>(reached.size() - 1);
  }
  return step;
}

const std::vector<Knot::Link>& Knot::links_of(Index thread) {
  Mark& mark = marks_[thread];
  if (mark.links == none) {
    mark.links = static_cast<Index>(linked_.size());
    linked_.push_back(thread);
    if (links_.size() < linked_.size()) links_.emplace_back();
    look_up(thread, false, links_[mark.links]);
  }
  return links_[mark.links];
}

void Knot::look_up(Index thread, bool first, std::vector<Link>& links) const {
  links.clear();
  for (Index at = store_.threads[thread].requests; at != none; at = store_.requests[at].next_of_thread) {
    const Index resource = store_.requests[at].resource;
    if (!store_.settings_of(thread, resource).counts) continue;
    store_.for_each_provider(resource, [&](Index provider) {
      const Index other = store_.providers[provider].thread;
      const ThreadRecord& record = store_.threads[other];
      const bool runnable = record.state != RunState::blocked;
      if (other == thread || (!runnable && record.requests == none)) return true;
      if (const auto step = step_to(store_, thread, provider, first))
        links.push_back({provider, other, runnable, *step});
      return true;
    });
  }
}

}  // namespace swapd::model
