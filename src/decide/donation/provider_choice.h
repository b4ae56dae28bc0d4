// Chooses which provider gets a donation, and how much ([SWAP04 §4]; docs/design.md, Model). Pure.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "model/model.h"

namespace swapd::decide {

struct DonationRules {
  LendingRules lending;
  bool cross_user = false;
  Duration linger = std::chrono::milliseconds(2);  // of the provider's CPU time; Linger applies it
  // Threads that keep waiting for each other keep what is lent so long after the last told wait (Conversation).
  Duration conversation = std::chrono::seconds(1);
  // A thread whose CPU group weighs more than this, and more than its provider's, counts as more important by as much;
  // 0: weights do not count.
  Weight weight_above = 0;
  std::vector<DonationRules> classes{};  // of class 1, 2 …; these have none of their own

  // Weights count for some class.
  [[nodiscard]] bool look_at_weights() const {
    return weight_above != 0 || std::ranges::any_of(classes, [](const auto& c) { return c.weight_above != 0; });
  }

  // Rules for members of this class: what is said here of all, where `classes` does not have it.
  [[nodiscard]] const DonationRules& of(ClassId id) const {
    return id == 0 || id > classes.size() ? *this : classes[id - 1];
  }
  // A requester of this class counts as this towards a provider whose group weighs `other`: as its own attributes, or
  // as its group's weight makes it.
  [[nodiscard]] SchedAttr importance(const SchedAttr& base, Weight weight, ClassId requester,
                                     Weight other = usual_weight) const;
  // The attributes that such a requester lends to a provider, of which classes they are: no real-time priority where
  // either of these has none.
  [[nodiscard]] SchedAttr lend(const SchedAttr& base, ClassId requester, ClassId provider) const;
  // A requester of this user and class may lend to a thread of that one.
  [[nodiscard]] bool permit(std::uint32_t user, ClassId requester, std::uint32_t provider_user,
                            ClassId provider) const {
    return user == 0 || of(requester).cross_user || user == provider_user || of(provider).cross_user;
  }
  // The same on a guess: never a real-time priority, so that a wrong one costs others little.
  [[nodiscard]] SchedAttr lend_on_guess(const SchedAttr& base, ClassId requester) const;
};

// Why a favoured provider gets nothing, decided here; the actuator adds its own reasons.
enum class Refusal : std::uint8_t { none, policy };

// One requester's favoured provider and the threads that run for it. Every thread of `path` is lent `attr` (or, where
// its class has no real-time priorities, what DonationRules::lend() says): the leaf runs now, the others at once when
// they wake.
struct Donation {
  ThreadId requester;
  SchedAttr attr;     // lent by what the requester counts as
  Resource resource;  // the awaited one that `path.front()` provides
  Vector<ThreadId> path;
  bool choice = false;  // more than one candidate at some level of the path: T is to be measured on the leaf
  // In a choice: all candidates end in the same leaf, so that each of them helps. (A lock's owner waits for its child,
  // and the child has the lock's descriptor too.) Not in recordings: decide() finds it anew each time.
  bool one_leaf = false;
  Duration quantum{};  // T of the awaited resource's kind
  Refusal refusal = Refusal::none;
  bool operator==(const Donation&) const = default;
  template <typename Self, typename Archive>
  static void state(Self& self, Archive& archive) {
    archive(self.requester, self.attr, self.resource, self.path, self.choice, self.quantum, self.refusal);
  }
};

// Each requester's favoured provider.
class ProviderChoice {
 public:
  explicit ProviderChoice(DonationRules rules);
  void set_rules(DonationRules rules);
  [[nodiscard]] const DonationRules& rules() const { return rules_; }
  // Donations of every blocked requester, by the rank of the requester, the highest first, then by how long it waits.
  // A requester lends only where its rank is above that of some thread of the path, or where the wait is to be shown
  // (`refusal`). Keeps each requester's favoured provider until it has used T, has blocked without being virtual
  // runnable, or has gone, or a change of the graph brings one of higher confidence. Where the rules refuse another
  // user's threads, a candidate of the requester's own user comes first.
  [[nodiscard]] Vector<Donation> decide(const model::Model& model, std::span<const ThreadId> requesters);
  // Direct providers among which the last decide() had a choice, in no order; one may be there twice.
  [[nodiscard]] std::span<const ThreadId> chosen_among() const { return chosen_among_; }
  // The favoured way of the present wait, direct provider … leaf; empty: none is favoured.
  [[nodiscard]] std::span<const ThreadId> favoured(ThreadId requester) const;
  // The favoured provider has used T, or the requester waits for something else: the next decide() chooses anew.
  void lapse(ThreadId requester);
  // The requester's wait is over or it is gone.
  void forget(ThreadId requester);

  template <typename Self, typename Archive>
  static void state(Self& self, Archive& archive) {
    archive(self.favoured_);
  }

 private:
  struct Favoured {
    ThreadId direct;
    ThreadId leaf;
    std::uint64_t graph = 0;  // of the candidates seen last, whatever their confidences
    Vector<ThreadId> path;    // empty: it has lapsed
    template <typename Self, typename Archive>
    static void state(Self& self, Archive& archive) {
      archive(self.direct, self.leaf, self.graph, self.path);
    }
  };
  std::optional<Donation> donate(const model::Model& model, ThreadId requester);
  const model::Candidate& choose(ThreadId requester, std::span<const model::Candidate* const> candidates);

  DonationRules rules_;
  HashMap<ThreadId, Favoured> favoured_;
  Vector<ThreadId> chosen_among_;
};

}  // namespace swapd::decide
