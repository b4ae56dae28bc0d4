// Implementation of Model. Private to src/model.
#pragma once

#include <span>
#include <vector>

#include "model/search.h"
#include "model/store.h"

namespace swapd::model {

struct Model::Impl {
  explicit Impl(const Settings& settings) : store(settings) {}

  Store store;
  mutable Search search{store};  // scratch memory

  void on(const Enrolled& event);
  void on(const Accessed& event);
  void on(const Released& event);
  void on(const Blocked& event);
  void on(const Woken& event);
  void on(const Holders& event);
  void on(const QuantumUsed& event);
  void on(const Execed& event);
  void on(const Exited& event);
  void on(const Conversed& /*event*/) {}
  void on(const Ranked& event);

  [[nodiscard]] bool awaits(Index thread, const std::vector<Resource>& keys) const;
  // The wait of this thread, if any, is over. Leaves its confidences alone: settle() comes first.
  void end_wait(Index thread);
  void settle(Index thread, const Woken& woken);
  // The provider record that earns the credit of this wake-up, or none.
  Index creditable(Index thread, const Woken& woken);
  // The places on a favoured path where there was a choice, and so a charge.
  struct Chargeable {
    Index requester = none;
    ThreadId provider;
    Index resource = none;
  };
  [[nodiscard]] Vector<Chargeable> chargeable(Index requester, std::span<const ThreadId> path) const;
  void charge(Index requester, ThreadId provider, Index resource);
  // The awaited resource of which `provider` is one, or none.
  [[nodiscard]] Index awaited_from(Index requester, Index provider) const;
  void forget_provider(Index provider);
  // Upwards: appends the threads that wait for this resource, and those that wait for them, each once.
  void add_waiters(Index resource, Vector<Index>& found) const;
  mutable std::vector<std::uint64_t> waiter_seen;  // by thread: the round in which it was found
  mutable std::uint64_t waiter_round = 0;
  // The resources that are about the thread itself: its signals, its exit, its children's exits.
  void forget_resources_of(Index thread);

  void restore(const ImageThread& thread);
  void restore(std::vector<ImageResource> resources);
  void restore_notes(const ImageThread& thread);

  [[nodiscard]] ThreadView view(const ThreadRecord& record) const;
  [[nodiscard]] Vector<Index> known(std::span<const ThreadId> ids) const;
  // The path of reached[place].
  void follow(const std::vector<ReachableLeaf>& reached, std::size_t place, Candidate& candidate) const;
};

}  // namespace swapd::model
