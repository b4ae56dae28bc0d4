// The model: resources, requesters, providers, confidences and the wait graph ([SWAP04 §3.1]; docs/design.md, Model).
//
// Pure: fed with events, asked by the decider. No clock, no system call. Algorithmic notes are at the implementation.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/event.h"
#include "base/recycled.h"
#include "model/image.h"
#include "model/saved_confidence.h"

namespace swapd::model {

enum class Feedback : std::uint8_t {
  wait,   // debits order the candidates of one wait; settled once when it ends
  paper,  // -1 at once for every T [SWAP04 §3.1]
};

struct KindSettings {
  std::uint16_t base_confidence = 20;                // K
  Duration quantum = std::chrono::milliseconds(20);  // T, of the provider's CPU time
  std::uint16_t max_providers = 20;                  // L
  Feedback feedback = Feedback::wait;
  bool counts = true;  // false: waits of this kind are seen, never donated for
};

using KindTable = std::array<KindSettings, resource_kinds>;

struct Settings {
  KindTable kinds{};                 // of class 0, and of those that `classes` does not have
  std::vector<KindTable> classes{};  // of class 1, 2 …
  std::uint32_t records_a_user = 0;  // requests and providers of one user's threads, root excepted; 0: no limit

  // The settings for a wait of a member of this class. K and L are the resource's: those of the class of the thread
  // that was the first to wait for it.
  [[nodiscard]] const KindSettings& of(ClassId id, ResourceKind kind) const {
    const KindTable& table = id == 0 || id > classes.size() ? kinds : classes[id - 1];
    return table[static_cast<std::size_t>(kind)];
  }
};

struct ThreadView {
  ThreadId id;
  pid_t tgid = 0;
  std::uint32_t uid = 0;
  SchedAttr base;
  RunState state = RunState::unknown;
  Time since{};                       // of the present state
  std::int32_t call = -1;             // while blocked
  std::span<const Resource> awaited;  // while blocked; valid until the next apply()
  ClassId class_id = 0;
  Weight weight = usual_weight;
  SchedAttr counts_as;  // where it waits
};

struct ProviderView {
  ThreadId thread;
  std::uint16_t confidence = 0;  // 0…2K, without this wait's debits
  std::uint16_t debits = 0;      // of the wait asked about
  Evidence evidence = Evidence::accessed;
};

// One candidate for a requester: a runnable leaf and the way to it.
struct Candidate {
  ThreadId direct;        // the provider of an awaited resource
  Resource resource;      // …that one
  ThreadId leaf;          // the runnable thread at the end of the way (may be `direct`)
  Vector<ThreadId> path;  // direct … leaf
  double confidence = 0;  // direct or indirect [SWAP04 §3.1], with this wait's debits
  bool guessed = false;   // some step of the way is a guess (Evidence::guess)
};

class Model {
 public:
  explicit Model(const Settings& settings);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  void apply(const Event& event);
  void set_settings(const Settings& settings);
  [[nodiscard]] const Settings& settings() const;

  [[nodiscard]] std::optional<ThreadView> thread(ThreadId id) const;
  [[nodiscard]] Vector<ProviderView> providers(const Resource& resource, std::optional<ThreadId> for_requester) const;
  void for_each_resource(const std::function<void(const Resource&)>& visit) const;

  // Every thread reachable from the requester through awaited resources and their providers (itself left out), each
  // once, nearest first: what must be looked at while it waits. Cycles are cut.
  [[nodiscard]] Vector<ThreadId> wait_tree(ThreadId requester) const;
  // The same for many requesters that wait for each other, at the price of one: each thread once, with the first of
  // them whose tree has it. A requester may be left out of the others' trees.
  struct TreeThread {
    ThreadId requester, thread;
  };
  [[nodiscard]] Vector<TreeThread> wait_trees(std::span<const ThreadId> requesters) const;
  // The other way: every thread that waits, directly or through others, for what this thread provides (or for this
  // resource). What happens to the one may matter to the others.
  [[nodiscard]] Vector<ThreadId> waiters_on(ThreadId provider) const;
  [[nodiscard]] Vector<ThreadId> waiters_on(const Resource& resource) const;
  // The threads for which an event may have changed whom to favour, once it is applied (but an exit: before). No other
  // thread has a new provider to favour.
  [[nodiscard]] Vector<ThreadId> concerned_by(const Event& event) const;
  // The awaited resources in these trees that have no provider other than the thread that waits for it; in order. A
  // thread of the waiter's own process that got its last message is no provider of a socket here.
  [[nodiscard]] Vector<Resource> unprovided(std::span<const ThreadId> requesters) const;
  [[nodiscard]] Vector<Resource> unprovided(ThreadId requester) const { return unprovided({&requester, 1}); }
  // The candidates, the best first: by confidence less this wait's debits, ties by evidence and then by age.
  // Empty: the requester is not virtual runnable. A thread in state unknown counts as runnable.
  [[nodiscard]] Vector<Candidate> candidates(ThreadId requester) const;
  // Whether a QuantumUsed with this path would charge a provider: the direct one, or under Feedback::wait one further
  // down, was chosen among several. Only then need T be measured.
  [[nodiscard]] bool has_choice(ThreadId requester, std::span<const ThreadId> path) const;

  // The settings are not part of it.
  [[nodiscard]] Image image() const;
  void restore(const Image& image);

  // The confidences that are worth keeping for another model, at most so many; and back, for the threads that are known
  // here. A thread that is not a provider yet becomes one.
  [[nodiscard]] std::vector<SavedConfidence> learnt(std::size_t most) const;
  void restore_confidences(std::span<const SavedConfidence> learnt);

  struct Counts {
    std::size_t threads = 0, resources = 0, requesters = 0, providers = 0;
  };
  [[nodiscard]] Counts counts() const;
  // Requests and providers of this user's threads; of root they are not counted.
  [[nodiscard]] std::size_t records_of(std::uint32_t uid) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace swapd::model
