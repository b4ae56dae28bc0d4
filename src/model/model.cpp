// The questions that the decider, the engine and the bus ask.
#include "model/model.h"

#include <algorithm>
#include <utility>

#include "model/impl.h"

namespace swapd::model {

Model::Model(const Settings& settings) : impl_(std::make_unique<Impl>(settings)) {}
Model::~Model() = default;

void Model::set_settings(const Settings& settings) {
  impl_->store.set_settings(settings);
  impl_->search.forget();
}
const Settings& Model::settings() const { return impl_->store.settings(); }

ThreadView Model::Impl::view(const ThreadRecord& record) const {
  if (record.shown.empty()) {
    for (Index at = record.requests; at != none; at = store.requests[at].next_of_thread)
      record.shown.push_back(store.resources[store.requests[at].resource].key());
  }
  return {record.id,
          record.tgid,
          record.uid,
          record.base,
          record.state,
          record.since,
          record.call,
          record.shown,
          record.class_id,
          record.weight,
          record.counts_as.value_or(record.base)};
}

std::optional<ThreadView> Model::thread(ThreadId id) const {
  const Index at = impl_->store.find(id);
  if (at == none) return std::nullopt;
  return impl_->view(impl_->store.threads[at]);
}

void Model::for_each_resource(const std::function<void(const Resource&)>& visit) const {
  const Store& store = impl_->store;
  for (Index at = 0; at < store.resources.end(); ++at) {
    if (store.resources[at].live) visit(store.resources[at].key());
  }
}

Vector<ProviderView> Model::providers(const Resource& resource, std::optional<ThreadId> for_requester) const {
  const Store& store = impl_->store;
  Vector<Index> found;
  const Index at = store.find(resource);
  if (at == none) return {};
  const Index requester = for_requester ? store.find(*for_requester) : none;
  const WaitScratch* notes = requester == none ? nullptr : store.threads[requester].notes.get();
  const auto debits_of = [&](Index provider) {
    return debits(notes, store.threads[store.providers[provider].thread].id);
  };
  store.for_each_provider(at, [&](Index provider) {
    if (requester == none || store.providers[provider].thread != requester) found.push_back(provider);
    return true;
  });
  const auto left = [&](Index provider) {
    return static_cast<std::int64_t>(store.providers[provider].confidence) - debits_of(provider);
  };
  std::sort(found.begin(), found.end(), [&](Index a, Index b) {
    if (const auto x = left(a), y = left(b); x != y) return x > y;
    const Provider& first = store.providers[a];
    const Provider& second = store.providers[b];
    if (first.evidence != second.evidence) return first.evidence < second.evidence;
    return static_cast<std::int32_t>(first.age - second.age) < 0;
  });
  Vector<ProviderView> views;
  views.reserve(found.size());
  for (const Index provider : found) {
    const Provider& record = store.providers[provider];
    const std::uint32_t used = std::min<std::uint32_t>(debits_of(provider), 0xffff);
    views.push_back(
        {store.threads[record.thread].id, record.confidence, static_cast<std::uint16_t>(used), record.evidence});
  }
  return views;
}

Vector<Index> Model::Impl::known(std::span<const ThreadId> ids) const {
  Vector<Index> found;
  found.reserve(ids.size());
  for (const ThreadId id : ids)
    if (const Index thread = store.find(id); thread != none) found.push_back(thread);
  return found;
}

Vector<Model::TreeThread> Model::wait_trees(std::span<const ThreadId> requesters) const {
  Vector<TreeThread> trees;
  for (const auto& one : impl_->search.trees(impl_->known(requesters), [](Index, Index) {}))
    trees.push_back({impl_->store.threads[one.requester].id, impl_->store.threads[one.thread].id});
  return trees;
}

Vector<ThreadId> Model::wait_tree(ThreadId requester) const {
  Vector<ThreadId> tree;
  for (const TreeThread& one : wait_trees({&requester, 1})) tree.push_back(one.thread);
  return tree;
}

void Model::Impl::add_waiters(Index resource, Vector<Index>& found) const {
  if (waiter_seen.size() < store.threads.end()) waiter_seen.resize(store.threads.end());
  const auto add = [&](Index of) {
    for (Index at = store.resources[of].requests; at != none; at = store.requests[at].next) {
      const Index thread = store.requests[at].thread;
      if (std::exchange(waiter_seen[thread], waiter_round) != waiter_round) found.push_back(thread);
    }
  };
  std::size_t next = found.size();
  add(resource);
  for (; next < found.size(); ++next)
    for (Index at = store.threads[found[next]].provides; at != none; at = store.providers[at].next_of_thread)
      add(store.providers[at].resource);
}

Vector<ThreadId> Model::waiters_on(const Resource& resource) const {
  const Index at = impl_->store.find(resource);
  if (at == none) return {};
  ++impl_->waiter_round;
  Vector<Index> found;
  impl_->add_waiters(at, found);
  Vector<ThreadId> waiters;
  waiters.reserve(found.size());
  for (const Index thread : found) waiters.push_back(impl_->store.threads[thread].id);
  return waiters;
}

Vector<ThreadId> Model::waiters_on(ThreadId provider) const {
  const Index thread = impl_->store.find(provider);
  if (thread == none) return {};
  ++impl_->waiter_round;
  Vector<Index> found;
  for (Index at = impl_->store.threads[thread].provides; at != none; at = impl_->store.providers[at].next_of_thread)
    impl_->add_waiters(impl_->store.providers[at].resource, found);
  Vector<ThreadId> waiters;
  waiters.reserve(found.size());
  for (const Index waiter : found) waiters.push_back(impl_->store.threads[waiter].id);
  return waiters;
}

Vector<ThreadId> Model::concerned_by(const Event& event) const {
  return std::visit(
      [&](const auto& e) {
        using T = std::decay_t<decltype(e)>;
        if constexpr (std::is_same_v<T, Accessed> || std::is_same_v<T, Released> || std::is_same_v<T, Holders>) {
          return waiters_on(e.resource);
        } else {
          ThreadId whom;
          if constexpr (std::is_same_v<T, QuantumUsed>)
            whom = e.requester;
          else
            whom = e.thread;
          Vector<ThreadId> out = waiters_on(whom);
          out.push_back(whom);
          if constexpr (std::is_same_v<T, Woken>) {
            if (!e.through) return out;  // else its waker may be a new provider
            for (const ThreadId waiter : waiters_on(*e.through)) out.push_back(waiter);
          }
          return out;
        }
      },
      event);
}

Vector<Resource> Model::unprovided(std::span<const ThreadId> requesters) const {
  const Store& store = impl_->store;
  Vector<Resource> lacking;
  (void)impl_->search.trees(impl_->known(requesters), [&](Index waiter, Index resource) {
    const bool is_socket = store.resources[resource].key().kind == ResourceKind::socket;
    bool provided = false;
    store.for_each_provider(resource, [&](Index place) {
      const Provider& provider = store.providers[place];
      // A thread of one's own that was told just before need not be at the other end.
      const bool hint = is_socket && provider.evidence == Evidence::sent_to &&
                        store.threads[provider.thread].tgid == store.threads[waiter].tgid;
      provided = provider.thread != waiter && !hint;
      return !provided;
    });
    if (!provided) lacking.push_back(store.resources[resource].key());
  });
  std::sort(lacking.begin(), lacking.end());
  lacking.erase(std::unique(lacking.begin(), lacking.end()), lacking.end());
  return lacking;
}

void Model::Impl::follow(const std::vector<ReachableLeaf>& reached, std::size_t place, Candidate& candidate) const {
  for (const std::vector<ReachableLeaf>* here = &reached;;) {
    const ReachableLeaf& reach = (*here)[place];
    const Provider& provider = store.providers[reach.first];
    candidate.path.push_back(store.threads[provider.thread].id);
    candidate.guessed = candidate.guessed || provider.evidence == Evidence::guess;
    if (reach.node == none) return;
    here = &search.node(reach.node).reached;
    place = reach.place;
  }
}

Vector<Candidate> Model::candidates(ThreadId requester) const {
  const Store& store = impl_->store;
  const Index at = store.find(requester);
  if (at == none || store.threads[at].state != RunState::blocked) return {};
  const std::vector<ReachableLeaf>& reached = impl_->search.run(at).reached;
  Vector<Candidate> found;
  found.reserve(reached.size());
  for (std::size_t place = 0; place < reached.size(); ++place) {
    Candidate& candidate = found.emplace_back();
    impl_->follow(reached, place, candidate);
    candidate.direct = candidate.path.front();
    candidate.resource = store.resources[store.providers[reached[place].first].resource].key();
    candidate.leaf = candidate.path.back();
    candidate.confidence = reached[place].value;
  }
  return found;
}

bool Model::has_choice(ThreadId requester, std::span<const ThreadId> path) const {
  const Index at = impl_->store.find(requester);
  return at != none && !impl_->chargeable(at, path).empty();
}

std::size_t Model::records_of(std::uint32_t uid) const { return impl_->store.records.of(uid); }

Model::Counts Model::counts() const {
  const Store& store = impl_->store;
  return {store.threads.live(), store.resources.live(), store.requests.live(), store.providers.live()};
}

}  // namespace swapd::model
