// The objects of the model and the lists that join them; no rule about feedback lives here.
//
//   thread ──requests──▶ request ──▶ resource ◀── provider ◀──provides── thread
//
// Every record can be reached from both of its ends, so that a thread's exit costs what the thread touched.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "model/model.h"
#include "model/slab.h"

namespace swapd::model {

// A thread provides a resource. 32 bytes, the paper's figure.
struct Provider {
  Index thread = none;
  Index resource = none;
  Index previous = none, next = none;                      // among the resource's providers: a ring, see Store
  Index previous_of_thread = none, next_of_thread = none;  // among what the thread provides; before the first: the last
  std::uint32_t age = 0;                                   // counts up; the lower came first
  std::uint16_t confidence = 0;
  Evidence evidence = Evidence::accessed;
};
static_assert(sizeof(Provider) <= 32);

// A thread waits for a resource.
struct Request {
  Index thread = none;
  Index resource = none;
  Index previous = none, next = none;  // among the resource's requesters
  Index next_of_thread = none;         // in the order of Blocked::awaited
};
static_assert(sizeof(Request) <= 32);

struct ResourceRecord {
  std::array<std::uint64_t, 4> ids{};
  Index hash_next = none;
  Index providers = none;
  Index requests = none;
  std::uint16_t provider_count = 0;
  ResourceKind kind = ResourceKind::unknown;
  bool live = false;
  bool waited = false;   // for it, ever
  ClassId class_id = 0;  // whose K and L: of the first one who waited, before that of who made it known

  [[nodiscard]] Resource key() const { return {kind, ids}; }
};
static_assert(sizeof(ResourceRecord) <= 64);

// The quanta that a favoured provider used during one wait without providing. The resource is the one that it was
// favoured for last: that record pays when the wait is settled. The thread may be gone by then, so it is named, not
// indexed.
struct Debit {
  ThreadId thread;
  Index resource = none;
  std::uint32_t count = 0;
};

// Traces of the choice among providers in a wait; most waits have none.
struct WaitScratch {
  static void* operator new(std::size_t size) { return RecycledMemory::take(size); }
  static void operator delete(void* memory, std::size_t size) { RecycledMemory::give_back(memory, size); }
  Vector<Debit> debits;  // ordered by thread
};

struct ThreadRecord {
  ThreadId id;
  pid_t tgid = 0;
  std::uint32_t uid = 0;
  SchedAttr base;
  std::optional<SchedAttr> counts_as;
  Time since{};
  std::int32_t call = -1;
  RunState state = RunState::unknown;
  ClassId class_id = 0;
  Weight weight = usual_weight;
  Index hash_next = none;
  Index provides = none;
  std::uint32_t provided = 0;  // how many those are
  Index requests = none;
  std::unique_ptr<WaitScratch> notes;
  mutable Vector<Resource> shown;  // `requests` spelt out, made when a view asks for it
};

// How many requests and providers each user's threads have; root's are not counted.
class UserRecords {
 public:
  void add(std::uint32_t uid, int by) {
    if (uid != 0 && (by_user_[uid] += static_cast<std::uint32_t>(by)) == 0) by_user_.erase(uid);
  }
  [[nodiscard]] std::size_t of(std::uint32_t uid) const {
    const auto found = by_user_.find(uid);
    return found == by_user_.end() ? 0 : found->second;
  }

 private:
  HashMap<std::uint32_t, std::uint32_t> by_user_;
};

// Each thread's provider records, the newest first.
class ProvidedLists {
 public:
  static constexpr std::uint32_t many = 64;  // from here on it matters which of them are used
  ProvidedLists(Slab<ThreadRecord>& threads, Slab<Provider>& providers) : threads_(threads), providers_(providers) {}
  void link(Index provider);
  void unlink(Index provider);
  // It has provided now: in a long list it becomes what is forgotten last.
  void renew(Index provider);

 private:
  Slab<ThreadRecord>& threads_;
  Slab<Provider>& providers_;
};

// A resource's providers stand in one ring that holds the paper's three lists end to end: below K, at K, above K. So
// "the front of the lowest list that is not empty" is the head of the ring, and a resource needs one link instead of
// six.
class Store {
 public:
  explicit Store(const Settings& settings);
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  ~Store() = default;

  [[nodiscard]] const Settings& settings() const { return settings_; }
  [[nodiscard]] const KindSettings& settings_of(Index resource) const {
    return settings_.of(resources[resource].class_id, resources[resource].kind);
  }
  // For a wait of this thread's.
  [[nodiscard]] const KindSettings& settings_of(Index thread, Index resource) const {
    return settings_.of(threads[thread].class_id, resources[resource].kind);
  }
  // Puts every confidence and every list within the new limits.
  void set_settings(const Settings& settings);

  [[nodiscard]] Index find(ThreadId id) const;
  // Another thread that has or had this tid, or none.
  [[nodiscard]] Index find_other(ThreadId id) const;
  [[nodiscard]] Index add(ThreadId id);
  // With the last one goes all that the model has ever taken of memory.
  void remove_thread(Index thread);
  void set_user(Index thread, std::uint32_t uid);
  // Whether the thread's user may have one more request or provider (Settings::records_a_user).
  [[nodiscard]] bool has_room(Index thread) const;
  // The same, once the oldest of what the thread itself provides has been forgotten where need be. No event tells that
  // a connection has ended, so a server that answers one after the other would be known for all that it ever had: a
  // thread is known for `most_provided` resources, and for ProvidedLists::many while all together are known for many.
  [[nodiscard]] bool make_room(Index thread);
  static constexpr std::uint32_t most_provided = 1024;
  static constexpr std::size_t many_providers = 65536;

  [[nodiscard]] Index find(const Resource& key) const;
  // A new one has the K and the L of this class until a thread waits for it.
  [[nodiscard]] Index find_or_add(const Resource& key, ClassId class_id);
  // For good: also of one that is there.
  void set_class(Index resource, ClassId class_id);
  // A resource object lives while it has requesters or providers [SWAP04 §3.1].
  void drop_if_unused(Index resource);

  [[nodiscard]] Index provider(Index resource, Index thread) const;
  // The newcomer goes to the end of the middle list; where there are L already, the front of the lowest list leaves.
  Index add_provider(Index resource, Index thread, Evidence evidence);
  // As an image has it; the newcomer goes to the end of its list.
  void restore_provider(Index resource, Index thread, const ImageProvider& image);
  // Leaves the resource in place, even an unused one.
  void remove_provider(Index provider);
  // Keeps it within 0…2K and in the right list.
  void change_confidence(Index provider, int by);
  template <typename Visit>
  void for_each_provider(Index resource, Visit visit) const {
    // From the tail: those of highest confidence first. `visit` returns false to stop and must not change the list.
    const Index head = resources[resource].providers;
    if (head == none) return;
    for (Index at = providers[head].previous;; at = providers[at].previous) {
      if (!visit(at) || at == head) return;
    }
  }

  void add_request(Index thread, Index resource);
  void remove_requests(Index thread);
  [[nodiscard]] bool requests_resource(Index thread, Index resource) const;

  Slab<ThreadRecord> threads;
  Slab<ResourceRecord> resources;
  Slab<Provider> providers;
  Slab<Request> requests;
  ProvidedLists provided{threads, providers};
  UserRecords records;
  std::uint32_t next_age = 0;  // of a provider

 private:
  Index new_provider(Index resource, Index thread);
  [[nodiscard]] int list_of(const Provider& provider) const;
  void link_provider(Index provider);
  void unlink_provider(Index provider);
  void fit_providers(Index resource);

  Settings settings_;
  ChainTable<ThreadRecord> thread_table_{threads};
  ChainTable<ResourceRecord> resource_table_{resources};
};

}  // namespace swapd::model
