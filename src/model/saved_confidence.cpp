// Confidences out of a model and into another one. The providers that are at K need not be told of: they will be found
// again.
#include "model/saved_confidence.h"

#include <algorithm>

#include "model/impl.h"

namespace swapd::model {

std::vector<SavedConfidence> Model::learnt(std::size_t most) const {
  const Store& store = impl_->store;
  std::vector<SavedConfidence> out;
  for (Index at = 0; at < store.resources.end() && out.size() < most; ++at) {
    const ResourceRecord& record = store.resources[at];
    if (!record.live || record.providers == none) continue;
    const int base = store.settings_of(at).base_confidence;
    store.for_each_provider(at, [&](Index provider) {
      const Provider& one = store.providers[provider];
      if (one.confidence != base) out.push_back({store.threads[one.thread].id, record.key(), one.confidence - base});
      return out.size() < most;
    });
  }
  return out;
}

// Of evidence nothing is kept: only who has provided gains, and who has not is one of many.
void Model::restore_confidences(std::span<const SavedConfidence> learnt) {
  Store& store = impl_->store;
  for (const SavedConfidence& one : learnt) {
    const Index thread = store.find(one.provider);
    if (thread == none || one.lead == 0) continue;
    const Index at = store.find_or_add(one.resource, store.threads[thread].class_id);
    Index provider = store.provider(at, thread);
    if (provider == none && !store.has_room(thread)) {
      store.drop_if_unused(at);
      continue;
    }
    if (provider == none) provider = store.add_provider(at, thread, one.lead > 0 ? Evidence::woke : Evidence::accessed);
    const int base = store.settings_of(at).base_confidence;
    const int present = store.providers[provider].confidence;
    store.change_confidence(provider, base + std::clamp(one.lead, -base, base) - present);
  }
  impl_->search.forget();
}

}  // namespace swapd::model
