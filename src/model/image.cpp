// Model to image and back. Whatever stands in an image, the model that is made of it keeps its invariants: an image may
// come from a file.
#include "model/image.h"

#include <algorithm>

#include "model/impl.h"

namespace swapd::model {
namespace {

void add_notes(const Store& store, const WaitScratch& notes, ImageThread& thread) {
  for (const Debit& debit : notes.debits)
    if (store.resources[debit.resource].live)
      thread.debits.push_back({debit.thread, store.resources[debit.resource].key(), debit.count});
}

// Waits are restored thread by thread, and not in the order in which they began.
bool class_stands_with_waiters(const Store& store, const ResourceRecord& record) {
  for (Index at = record.requests; at != none; at = store.requests[at].next)
    if (store.threads[store.requests[at].thread].class_id != record.class_id) return false;
  return true;
}

// From the order in which they came to 0, 1, 2 …: the counter may have wrapped.
void make_ages_dense(std::vector<ImageResource>& resources, std::uint32_t next_age) {
  std::vector<ImageProvider*> all;
  for (ImageResource& resource : resources)
    for (ImageProvider& provider : resource.providers) all.push_back(&provider);
  std::stable_sort(all.begin(), all.end(), [next_age](const ImageProvider* a, const ImageProvider* b) {
    return a->age - next_age < b->age - next_age;
  });
  for (std::uint32_t age = 0; age < all.size(); ++age) all[age]->age = age;
}

}  // namespace

Image Model::image() const {
  const Store& store = impl_->store;
  Image image;
  image.threads.reserve(store.threads.live());
  for (Index at = 0; at < store.threads.end(); ++at) {
    const ThreadRecord& record = store.threads[at];
    if (!record.id.valid()) continue;
    ImageThread thread{.id = record.id,
                       .tgid = record.tgid,
                       .uid = record.uid,
                       .base = record.base,
                       .state = record.state,
                       .since = record.since,
                       .call = record.call,
                       .class_id = record.class_id,
                       .weight = record.weight,
                       .counts_as = record.counts_as};
    for (Index request = record.requests; request != none; request = store.requests[request].next_of_thread)
      thread.awaited.push_back(store.resources[store.requests[request].resource].key());
    if (record.notes) add_notes(store, *record.notes, thread);
    image.threads.push_back(std::move(thread));
  }
  for (Index at = 0; at < store.resources.end(); ++at) {
    const ResourceRecord& record = store.resources[at];
    if (!record.live || (record.providers == none && class_stands_with_waiters(store, record))) continue;
    ImageResource resource{.key = record.key(), .class_id = record.class_id, .waited = record.waited};
    store.for_each_provider(at, [&](Index provider) {
      const Provider& one = store.providers[provider];
      resource.providers.push_back({store.threads[one.thread].id, one.confidence, one.evidence, one.age});
      return true;
    });
    std::reverse(resource.providers.begin(), resource.providers.end());  // they are visited from the tail
    image.resources.push_back(std::move(resource));
  }
  std::sort(image.threads.begin(), image.threads.end(),
            [](const ImageThread& a, const ImageThread& b) { return a.id < b.id; });
  std::sort(image.resources.begin(), image.resources.end(),
            [](const ImageResource& a, const ImageResource& b) { return a.key < b.key; });
  make_ages_dense(image.resources, store.next_age);
  return image;
}

void Model::restore(const Image& image) {
  auto fresh = std::make_unique<Impl>(impl_->store.settings());
  for (const ImageThread& thread : image.threads) fresh->restore(thread);
  fresh->restore(image.resources);
  // Notes name resources by their index, so they come when all of these are there.
  for (const ImageThread& thread : image.threads) fresh->restore_notes(thread);
  impl_ = std::move(fresh);
}

void Model::Impl::restore(const ImageThread& thread) {
  if (!thread.id.valid() || store.find(thread.id) != none) return;
  on(Enrolled{thread.since, thread.id, thread.tgid, thread.uid, thread.base, thread.class_id, thread.weight});
  const Index at = store.find(thread.id);
  if (at == none) return;  // another thread has its tid
  store.threads[at].counts_as = thread.counts_as;
  if (thread.state == RunState::blocked) on(Blocked{thread.since, thread.id, thread.call, thread.awaited});
  store.threads[at].state = thread.state;
  store.threads[at].since = thread.since;
}

void Model::Impl::restore(std::vector<ImageResource> resources) {
  make_ages_dense(resources, 0);
  std::uint32_t providers = 0;
  for (const ImageResource& resource : resources) {
    const Index at = store.find_or_add(resource.key, resource.class_id);
    ResourceRecord& record = store.resources[at];
    record.class_id = resource.class_id;  // it has no provider yet
    record.waited = record.waited || resource.waited;
    for (const ImageProvider& one : resource.providers) {
      ++providers;
      const Index thread = store.find(one.thread);
      if (thread != none && store.provider(at, thread) == none) store.restore_provider(at, thread, one);
    }
    store.drop_if_unused(at);
  }
  store.next_age = providers;
}

void Model::Impl::restore_notes(const ImageThread& thread) {
  const Index at = store.find(thread.id);
  if (at == none || store.threads[at].state != RunState::blocked) return;
  const auto awaited = [&](const Resource& key) {
    const Index resource = store.find(key);
    return resource != none && store.requests_resource(at, resource) ? resource : none;
  };
  WaitScratch notes;
  for (const ImageDebit& debit : thread.debits)
    if (const Index resource = awaited(debit.resource); resource != none)
      notes.debits.push_back({debit.thread, resource, debit.count});
  const auto by_thread = [](const Debit& a, const Debit& b) { return a.thread < b.thread; };
  std::stable_sort(notes.debits.begin(), notes.debits.end(), by_thread);
  const auto same_thread = [](const Debit& a, const Debit& b) { return a.thread == b.thread; };
  notes.debits.erase(std::unique(notes.debits.begin(), notes.debits.end(), same_thread), notes.debits.end());
  if (notes.debits.empty()) return;
  store.threads[at].notes = std::make_unique<WaitScratch>(std::move(notes));
}

}  // namespace swapd::model
