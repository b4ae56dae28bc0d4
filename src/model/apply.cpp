// What each event does to the model. Feedback is in feedback.cpp.
#include <algorithm>

#include "model/impl.h"

namespace swapd::model {

void Model::apply(const Event& event) {
  std::visit([this](const auto& one) { impl_->on(one); }, event);
  impl_->search.forget();
}

void Model::Impl::on(const Enrolled& event) {
  Index at = store.find(event.thread);
  if (at == none) {
    // Two threads never have one tid at a time: the later start proves the other's exit, whose record was lost.
    if (const Index other = store.find_other(event.thread); other != none) {
      const ThreadRecord& known = store.threads[other];
      if (known.id.start_time > event.thread.start_time) return;
      on(Exited{event.time, known.id});
    }
    at = store.add(event.thread);
    store.threads[at].since = event.time;
  }
  store.set_user(at, event.uid);
  ThreadRecord& thread = store.threads[at];
  thread.tgid = event.tgid;
  thread.base = event.base;
  thread.class_id = event.class_id;
  thread.weight = event.weight;
}

void Model::Impl::on(const Ranked& event) {
  if (const Index at = store.find(event.thread); at != none) store.threads[at].counts_as = event.counts_as;
}

void Model::Impl::on(const Accessed& event) {
  const Index thread = store.find(event.thread);
  if (thread == none) return;
  const Index resource = store.find_or_add(event.resource, store.threads[thread].class_id);
  if (const Index known = store.provider(resource, thread); known != none) {
    Provider& provider = store.providers[known];
    provider.evidence = std::min(provider.evidence, event.evidence);
  } else {
    if (store.make_room(thread))
      store.add_provider(resource, thread, event.evidence);
    else
      store.drop_if_unused(resource);
  }
}

void Model::Impl::on(const Released& event) {
  const Index thread = store.find(event.thread);
  const Index resource = store.find(event.resource);
  if (thread == none || resource == none) return;
  if (const Index provider = store.provider(resource, thread); provider != none) forget_provider(provider);
}

void Model::Impl::on(const Blocked& event) {
  const Index at = store.find(event.thread);
  if (at == none) return;
  ThreadRecord& thread = store.threads[at];

  if (thread.state == RunState::blocked && awaits(at, event.awaited)) {
    thread.call = event.call;
    return;
  }
  end_wait(at);  // of an earlier wait's end nothing was seen: nobody is credited or charged
  // Whoever has no room left waits for one resource, so that a wait it is.
  // A list is built from its end. The newest request heads the resource's list too, which shows a repetition.
  for (auto key = event.awaited.rbegin(); key != event.awaited.rend(); ++key) {
    if (key != event.awaited.rbegin() && !store.has_room(at)) break;
    const Index resource = store.find_or_add(*key, store.threads[at].class_id);
    const Index newest = store.resources[resource].requests;
    if (newest == none || store.requests[newest].thread != at) store.add_request(at, resource);
  }
  thread.state = RunState::blocked;
  thread.call = event.call;
  thread.since = event.time;
}

// The same set, in whatever order and with whatever repetitions.
bool Model::Impl::awaits(Index thread, const std::vector<Resource>& keys) const {
  Vector<Index> asked, present;
  asked.reserve(keys.size());
  for (const Resource& key : keys) asked.push_back(store.find(key));
  std::sort(asked.begin(), asked.end());
  asked.erase(std::unique(asked.begin(), asked.end()), asked.end());
  present.reserve(asked.size());
  for (Index at = store.threads[thread].requests; at != none; at = store.requests[at].next_of_thread)
    present.push_back(store.requests[at].resource);
  std::sort(present.begin(), present.end());
  return asked == present;
}

void Model::Impl::on(const Holders& event) {
  Index resource = store.find(event.resource);
  Vector<Index> holders;
  holders.reserve(event.threads.size());
  for (const ThreadId id : event.threads) {
    if (const Index thread = store.find(id); thread != none) holders.push_back(thread);
  }
  if (resource != none) {
    Vector<Index> gone;
    store.for_each_provider(resource, [&](Index at) {
      const Provider& provider = store.providers[at];
      if (provider.evidence >= Evidence::owner &&
          std::find(holders.begin(), holders.end(), provider.thread) == holders.end())
        gone.push_back(at);
      return true;
    });
    for (const Index at : gone) store.remove_provider(at);
  }
  if (!holders.empty() && resource == none)
    resource = store.find_or_add(event.resource, store.threads[holders.front()].class_id);
  if (resource == none) return;
  for (const Index thread : holders) {
    if (const Index known = store.provider(resource, thread); known != none) {
      Provider& provider = store.providers[known];
      provider.evidence = std::min(provider.evidence, event.evidence);
      continue;
    }
    // A guess does not push out what history has taught; who owns a lock is no guess.
    const bool full = store.resources[resource].provider_count >= store.settings_of(resource).max_providers;
    if ((!full || event.evidence <= Evidence::owner) && store.has_room(thread) && store.make_room(thread))
      store.add_provider(resource, thread, event.evidence);
  }
  store.drop_if_unused(resource);
}

void Model::Impl::on(const Execed& event) {
  const Index at = store.find(event.thread);
  if (at == none) return;
  end_wait(at);
  ThreadRecord& thread = store.threads[at];
  thread.state = RunState::runnable;
  thread.since = event.time;
}

void Model::Impl::on(const Exited& event) {
  const Index at = store.find(event.thread);
  if (at == none) return;
  forget_resources_of(at);
  end_wait(at);
  store.remove_thread(at);
  if (store.threads.live() != 0) return;
  search.clear();
  waiter_seen.clear();
  waiter_seen.shrink_to_fit();
  RecycledMemory::clear();
}

void Model::Impl::end_wait(Index thread) {
  store.remove_requests(thread);
  ThreadRecord& record = store.threads[thread];
  record.notes.reset();
  record.shown = {};
  record.call = -1;
}

void Model::Impl::forget_provider(Index provider) {
  const Index resource = store.providers[provider].resource;
  store.remove_provider(provider);
  store.drop_if_unused(resource);
}

void Model::Impl::forget_resources_of(Index thread) {
  const ThreadRecord& gone = store.threads[thread];
  for (const Resource& key : {signal_to(gone.id), child_exit_of(gone.id), any_child_of(gone.id)}) {
    const Index resource = store.find(key);
    if (resource == none) continue;
    // Who still waits for it keeps its request until that wait ends. A process ends with its last thread, so the other
    // threads of a child whose first thread has gone still provide its exit.
    Vector<Index> providers;
    store.for_each_provider(resource, [&](Index at) {
      const ThreadRecord& other = store.threads[store.providers[at].thread];
      const bool still_provides =
          key.kind == ResourceKind::child_exit && !is_any_child(key) && other.tgid == gone.tgid && other.id != gone.id;
      if (!still_provides) providers.push_back(at);
      return true;
    });
    for (const Index at : providers) store.remove_provider(at);
    store.drop_if_unused(resource);
  }
}

}  // namespace swapd::model
