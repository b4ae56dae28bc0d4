#include "model/store.h"

#include <algorithm>
#include <utility>

namespace swapd::model {
namespace {

std::uint64_t hash_of(const Resource& key) { return std::hash<Resource>{}(key); }
std::uint64_t hash_of_record(const ResourceRecord& record) { return hash_of(record.key()); }
// By tid alone: a recycled tid is found in the chain of the one before it.
std::uint64_t hash_of_tid(ThreadId id) { return static_cast<std::uint64_t>(id.tid); }
std::uint64_t hash_of_thread(const ThreadRecord& record) { return hash_of_tid(record.id); }

// K of 0 would make every indirect confidence a division by zero, and 2K has to fit its field.
Settings within_limits(Settings settings) {
  const auto limit = [](KindTable& kinds) {
    for (KindSettings& kind : kinds) {
      kind.base_confidence = std::clamp<std::uint16_t>(kind.base_confidence, 1, 0x7fff);
      kind.max_providers = std::max<std::uint16_t>(kind.max_providers, 1);
    }
  };
  limit(settings.kinds);
  std::ranges::for_each(settings.classes, limit);
  return settings;
}

// The oldest that the thread provides; one that is awaited now is passed over, where another is not much younger.
Index oldest_unawaited(const Store& store, Index thread) {
  constexpr int looked_at = 16;
  const Index first = store.threads[thread].provides;
  const Index oldest = store.providers[first].previous_of_thread;
  Index at = oldest;
  for (int looks = 0; looks < looked_at; ++looks, at = store.providers[at].previous_of_thread) {
    if (store.resources[store.providers[at].resource].requests == none) return at;
    if (at == first) break;
  }
  return oldest;
}

}  // namespace

Store::Store(const Settings& settings) : settings_(within_limits(settings)) {}

void Store::set_settings(const Settings& settings) {
  settings_ = within_limits(settings);
  for (Index at = 0; at < resources.end(); ++at)
    if (resources[at].live) fit_providers(at);
}

void Store::fit_providers(Index resource) {
  std::vector<Index> all;
  for_each_provider(resource, [&](Index provider) {
    all.push_back(provider);
    return true;
  });
  // Linking them again in their old order keeps that order within each list.
  ResourceRecord& record = resources[resource];
  record.providers = none;
  record.provider_count = 0;
  const KindSettings& limits = settings_of(resource);
  for (auto it = all.rbegin(); it != all.rend(); ++it) {
    Provider& provider = providers[*it];
    provider.confidence = std::min<std::uint16_t>(provider.confidence, limits.base_confidence * 2);
    link_provider(*it);
  }
  while (record.provider_count > limits.max_providers) remove_provider(record.providers);
}

// A provider that is only known keeps its place: at the K of its class before, it is at that of the new one.
void Store::set_class(Index resource, ClassId class_id) {
  ResourceRecord& record = resources[resource];
  record.waited = true;
  if (record.class_id == class_id) return;
  const int before = settings_of(resource).base_confidence;
  record.class_id = class_id;
  const int after = settings_of(resource).base_confidence;
  if (record.providers == none) return;
  for_each_provider(resource, [&](Index at) {
    providers[at].confidence =
        static_cast<std::uint16_t>(std::clamp(providers[at].confidence + after - before, 0, 2 * after));
    return true;
  });
  fit_providers(resource);
}

Index Store::find(ThreadId id) const {
  return thread_table_.find(hash_of_tid(id), [&](const ThreadRecord& record) { return record.id == id; });
}

Index Store::find_other(ThreadId id) const {
  return thread_table_.find(hash_of_tid(id),
                            [&](const ThreadRecord& record) { return record.id.tid == id.tid && record.id != id; });
}

Index Store::add(ThreadId id) {
  const Index at = threads.add();
  threads[at].id = id;
  thread_table_.insert(at, hash_of_thread);
  return at;
}

void Store::remove_thread(Index thread) {
  remove_requests(thread);
  while (threads[thread].provides != none) {
    const Index provider = threads[thread].provides;
    const Index resource = providers[provider].resource;
    remove_provider(provider);
    drop_if_unused(resource);
  }
  thread_table_.erase(thread, hash_of_thread(threads[thread]));
  threads.remove(thread);
  if (threads.live() + resources.live() + providers.live() + requests.live() != 0) return;
  threads.clear();
  resources.clear();
  providers.clear();
  requests.clear();
  thread_table_.clear();
  resource_table_.clear();
}

void Store::set_user(Index thread, std::uint32_t uid) {
  if (threads[thread].uid == uid) return;
  int own = 0;
  for (Index at = threads[thread].provides; at != none; at = providers[at].next_of_thread) ++own;
  for (Index at = threads[thread].requests; at != none; at = requests[at].next_of_thread) ++own;
  records.add(threads[thread].uid, -own);
  threads[thread].uid = uid;
  records.add(threads[thread].uid, own);
}

bool Store::has_room(Index thread) const {
  const std::uint32_t uid = threads[thread].uid;
  return uid == 0 || settings_.records_a_user == 0 || records.of(uid) < settings_.records_a_user;
}

bool Store::make_room(Index thread) {
  const ThreadRecord& record = threads[thread];
  const bool known_for_much =
      record.provided >= (providers.live() < many_providers ? most_provided : ProvidedLists::many);
  if (!known_for_much && has_room(thread)) return true;
  if (record.provides == none) return false;
  const Index gone = oldest_unawaited(*this, thread);
  const Index resource = providers[gone].resource;
  remove_provider(gone);
  drop_if_unused(resource);
  return has_room(thread);
}

Index Store::find(const Resource& key) const {
  return resource_table_.find(
      hash_of(key), [&](const ResourceRecord& record) { return record.kind == key.kind && record.ids == key.ids; });
}

Index Store::find_or_add(const Resource& key, ClassId class_id) {
  if (const Index found = find(key); found != none) return found;
  const Index at = resources.add();
  resources[at].ids = key.ids;
  resources[at].kind = key.kind;
  resources[at].live = true;
  resources[at].class_id = class_id;
  resource_table_.insert(at, hash_of_record);
  return at;
}

void Store::drop_if_unused(Index resource) {
  const ResourceRecord& record = resources[resource];
  if (record.providers != none || record.requests != none) return;
  resource_table_.erase(resource, hash_of_record(record));
  resources.remove(resource);
}

Index Store::provider(Index resource, Index thread) const {
  Index found = none;
  for_each_provider(resource, [&](Index at) {
    if (providers[at].thread == thread) found = at;
    return found == none;
  });
  return found;
}

Index Store::add_provider(Index resource, Index thread, Evidence evidence) {
  const KindSettings& limits = settings_of(resource);
  if (resources[resource].provider_count >= limits.max_providers) remove_provider(resources[resource].providers);
  const Index at = new_provider(resource, thread);
  Provider& added = providers[at];
  added.age = next_age++;
  added.confidence = limits.base_confidence;
  added.evidence = evidence;
  link_provider(at);
  return at;
}

void Store::restore_provider(Index resource, Index thread, const ImageProvider& image) {
  const KindSettings& limits = settings_of(resource);
  if (resources[resource].provider_count >= limits.max_providers) return;
  const Index at = new_provider(resource, thread);
  Provider& added = providers[at];
  added.age = image.age;
  added.confidence = std::min<std::uint16_t>(image.confidence, limits.base_confidence * 2);
  added.evidence = image.evidence;
  link_provider(at);
}

Index Store::new_provider(Index resource, Index thread) {
  const Index at = providers.add();
  Provider& added = providers[at];
  added.thread = thread;
  added.resource = resource;
  provided.link(at);
  records.add(threads[thread].uid, 1);
  return at;
}

void ProvidedLists::link(Index provider) {
  Provider& added = providers_[provider];
  ThreadRecord& owner = threads_[added.thread];
  added.next_of_thread = owner.provides;
  added.previous_of_thread = provider;
  if (owner.provides != none)
    added.previous_of_thread = std::exchange(providers_[owner.provides].previous_of_thread, provider);
  owner.provides = provider;
  ++owner.provided;
}

void ProvidedLists::unlink(Index provider) {
  const Provider& gone = providers_[provider];
  ThreadRecord& owner = threads_[gone.thread];
  if (owner.provides == provider)
    owner.provides = gone.next_of_thread;
  else
    providers_[gone.previous_of_thread].next_of_thread = gone.next_of_thread;
  const Index after = gone.next_of_thread != none ? gone.next_of_thread : owner.provides;
  if (after != none) providers_[after].previous_of_thread = gone.previous_of_thread;
  --owner.provided;
}

void ProvidedLists::renew(Index provider) {
  const ThreadRecord& owner = threads_[providers_[provider].thread];
  if (owner.provided < many || owner.provides == provider) return;
  unlink(provider);
  link(provider);
}

void Store::remove_provider(Index provider) {
  unlink_provider(provider);
  records.add(threads[providers[provider].thread].uid, -1);
  provided.unlink(provider);
  providers.remove(provider);
}

void Store::change_confidence(Index provider, int by) {
  Provider& changed = providers[provider];
  const int limit = settings_of(changed.resource).base_confidence * 2;
  const int list = list_of(changed);
  changed.confidence = static_cast<std::uint16_t>(std::clamp(changed.confidence + by, 0, limit));
  if (list_of(changed) == list) return;
  unlink_provider(provider);
  link_provider(provider);
}

int Store::list_of(const Provider& provider) const {
  const int base = settings_of(provider.resource).base_confidence;
  return (provider.confidence > base) - (provider.confidence < base);
}

void Store::link_provider(Index provider) {
  Provider& added = providers[provider];
  ResourceRecord& owner = resources[added.resource];
  ++owner.provider_count;
  if (owner.providers == none) {
    added.previous = added.next = owner.providers = provider;
    return;
  }
  // Back from the tail over the higher lists: the place behind the last one of this list or of a lower one.
  const Index head = owner.providers;
  const int list = list_of(added);
  Index before = providers[head].previous;
  bool first = false;
  while (list_of(providers[before]) > list) {
    if (before == head) {
      first = true;
      before = providers[head].previous;
      break;
    }
    before = providers[before].previous;
  }
  added.previous = before;
  added.next = providers[before].next;
  providers[added.next].previous = provider;
  providers[before].next = provider;
  if (first) owner.providers = provider;
}

void Store::unlink_provider(Index provider) {
  const Provider& gone = providers[provider];
  ResourceRecord& owner = resources[gone.resource];
  --owner.provider_count;
  if (gone.next == provider) {
    owner.providers = none;
    return;
  }
  providers[gone.previous].next = gone.next;
  providers[gone.next].previous = gone.previous;
  if (owner.providers == provider) owner.providers = gone.next;
}

void Store::add_request(Index thread, Index resource) {
  const Index at = requests.add();
  Request& added = requests[at];
  if (!resources[resource].waited) set_class(resource, threads[thread].class_id);
  ResourceRecord& wanted = resources[resource];
  added.thread = thread;
  added.resource = resource;
  added.next = wanted.requests;
  if (wanted.requests != none) requests[wanted.requests].previous = at;
  wanted.requests = at;
  added.next_of_thread = threads[thread].requests;
  threads[thread].requests = at;
  records.add(threads[thread].uid, 1);
}

void Store::remove_requests(Index thread) {
  for (Index at = threads[thread].requests; at != none;) {
    const Request gone = requests[at];
    if (gone.previous != none)
      requests[gone.previous].next = gone.next;
    else
      resources[gone.resource].requests = gone.next;
    if (gone.next != none) requests[gone.next].previous = gone.previous;
    requests.remove(at);
    records.add(threads[thread].uid, -1);
    drop_if_unused(gone.resource);
    at = gone.next_of_thread;
  }
  threads[thread].requests = none;
}

bool Store::requests_resource(Index thread, Index resource) const {
  for (Index at = threads[thread].requests; at != none; at = requests[at].next_of_thread) {
    if (requests[at].resource == resource) return true;
  }
  return false;
}

}  // namespace swapd::model
