// Feedback ([SWAP04 §3.1]; docs/design.md, Model): what a wait teaches about those who could have ended it.
//
// Feedback::wait keeps the cost of looking for the right provider apart from what is learnt. While the wait lasts, T
// used without providing is a debit, and debits only order this wait's candidates; when it ends, each provider moves by
// one at most. Charged at once, as the paper's text says, a provider that needs ten quanta to provide ends every wait
// ten lower and one higher, and sooner or later all candidates stand at 0 and are none: Feedback::paper keeps that for
// comparison.
#include <algorithm>

#include "model/impl.h"

namespace swapd::model {

void Model::Impl::on(const Woken& event) {
  const Index at = store.find(event.thread);
  if (at == none) return;
  ThreadRecord& thread = store.threads[at];
  if (thread.state == RunState::blocked && !event.unrelated) settle(at, event);
  if (thread.state != RunState::runnable) thread.since = event.time;
  thread.state = RunState::runnable;
  end_wait(at);
}

void Model::Impl::settle(Index at, const Woken& woken) {
  if (const Index winner = creditable(at, woken); winner != none) {
    store.providers[winner].evidence = Evidence::woke;
    store.provided.renew(winner);
    store.change_confidence(winner, +1);
  }
  const WaitScratch* notes = store.threads[at].notes.get();
  if (notes == nullptr) return;
  for (const Debit& debit : notes->debits) {
    // Whoever woke the thread is not charged, even where its call could not be matched to an awaited resource.
    const Index loser = woken.by == debit.thread ? none : store.find(debit.thread);
    if (loser == none) continue;
    const Index provider = store.provider(debit.resource, loser);
    if (provider != none) store.change_confidence(provider, -1);
  }
}

Index Model::Impl::creditable(Index at, const Woken& woken) {
  const Index by = woken.by ? store.find(*woken.by) : none;
  if (by == none || by == at) return none;
  if (woken.through) {
    const Index resource = store.find(*woken.through);
    if (resource == none || !store.requests_resource(at, resource)) return none;
    const Index known = store.provider(resource, by);
    if (known != none || !store.make_room(by)) return known;
    return store.add_provider(resource, by, Evidence::woke);
  }
  const Index resource = awaited_from(at, by);
  return resource == none ? none : store.provider(resource, by);
}

Index Model::Impl::awaited_from(Index requester, Index provider) const {
  const ThreadRecord& record = store.threads[requester];
  // A thread that provides several of the awaited resources: the one with the highest confidence, the first of equals.
  Index best = none;
  std::uint16_t confidence = 0;
  for (Index at = record.requests; at != none; at = store.requests[at].next_of_thread) {
    const Index known = store.provider(store.requests[at].resource, provider);
    if (known == none || (best != none && store.providers[known].confidence <= confidence)) continue;
    best = store.requests[at].resource;
    confidence = store.providers[known].confidence;
  }
  return best;
}

// The favoured leaf used T and the requester waits on. The direct provider answers for it [SWAP04 §3.1],
// where there was another to choose. Under Feedback::wait the levels below, which have waits of their own, take a debit
// too where they had a choice: else the first of a blocked provider's providers would be favoured for ever.
Vector<Model::Impl::Chargeable> Model::Impl::chargeable(Index requester, std::span<const ThreadId> path) const {
  Vector<Chargeable> found;
  if (path.empty() || store.threads[requester].state != RunState::blocked) return found;
  const ReachNode* node = &search.run(requester);
  const auto is_step = [&](const ReachableLeaf& reach, std::size_t step) {
    return store.threads[store.providers[reach.first].thread].id == path[step];
  };
  // The way to the favoured leaf as the graph has it now; where it has gone, the first step alone.
  const auto way = std::find_if(node->reached.begin(), node->reached.end(), [&](const ReachableLeaf& reach) {
    return is_step(reach, 0) && store.threads[reach.leaf].id == path.back();
  });
  if (way == node->reached.end()) {
    const Index direct = store.find(path.front());
    const Index resource = direct == none ? none : awaited_from(requester, direct);
    if (resource != none && node->direct > 1) found.push_back({requester, path.front(), resource});
    return found;
  }
  Index level = requester;
  const ReachableLeaf* reach = &*way;
  for (std::size_t step = 0; step < path.size() && is_step(*reach, step); ++step) {
    const Provider& provider = store.providers[reach->first];
    const bool literal = store.settings_of(level, provider.resource).feedback == Feedback::paper;
    if (node->direct > 1 && !(step > 0 && literal)) found.push_back({level, path[step], provider.resource});
    if (reach->node == none) break;
    level = provider.thread;
    node = &search.node(reach->node);
    reach = &node->reached[reach->place];
  }
  return found;
}

void Model::Impl::on(const QuantumUsed& event) {
  const Index requester = store.find(event.requester);
  if (requester == none) return;
  for (const Chargeable& one : chargeable(requester, event.path)) charge(one.requester, one.provider, one.resource);
}

void Model::Impl::charge(Index requester, ThreadId provider, Index resource) {
  if (store.settings_of(requester, resource).feedback == Feedback::paper) {
    const Index at = store.provider(resource, store.find(provider));
    if (at != none) store.change_confidence(at, -1);
    return;
  }
  ThreadRecord& record = store.threads[requester];
  if (!record.notes) record.notes = std::make_unique<WaitScratch>();
  Vector<Debit>& debits = record.notes->debits;
  auto it = std::lower_bound(debits.begin(), debits.end(), provider,
                             [](const Debit& debit, ThreadId id) { return debit.thread < id; });
  if (it == debits.end() || it->thread != provider) it = debits.insert(it, Debit{provider});
  it->resource = resource;
  ++it->count;
}

}  // namespace swapd::model
