// The managed threads as the donation decider needs them: told by Enrolled and Exited events alone. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/event.h"
#include "base/recycled.h"

namespace swapd::decide {

class Roster {
 public:
  struct Thread {
    pid_t tgid = 0;
    std::uint32_t uid = 0;
    ClassId class_id = 0;
    SchedAttr base;
    Weight weight = usual_weight;
    std::optional<SchedAttr> ranked;                                                      // Ranked::counts_as
    [[nodiscard]] const SchedAttr& counts_as() const { return ranked ? *ranked : base; }  // where it waits
    template <typename Self, typename Archive>
    static void state(Self& self, Archive& archive) {
      archive(self.tgid, self.uid, self.class_id, self.base, self.weight);
    }
  };

  // A second time: its attributes, class or user are others now.
  void add(const Enrolled& enrolled);
  void remove(ThreadId thread);
  void rank(const Ranked& ranked);

  [[nodiscard]] const Thread* find(ThreadId thread) const;
  [[nodiscard]] const Map<ThreadId, Thread>& threads() const { return threads_; }
  // The lowest rank of all: only threads above it can donate anything.
  [[nodiscard]] int lowest_rank() const { return ranks_.empty() ? 0 : ranks_.begin()->first; }
  // The lowest weight of a CPU group that has a thread here.
  [[nodiscard]] Weight lowest_weight() const { return weights_.empty() ? usual_weight : weights_.begin()->first; }
  [[nodiscard]] bool is_important(ThreadId thread) const;
  // How many users have a thread here.
  [[nodiscard]] std::size_t users() const { return users_.size(); }

  // All but what rank() says.
  template <typename Self, typename Archive>
  static void state(Self& self, Archive& archive) {
    archive(self.threads_, self.ranks_, self.weights_, self.users_);
  }
  // As rank() said of each.
  using Ranks = Map<ThreadId, SchedAttr>;
  [[nodiscard]] Ranks counted_otherwise() const;
  void restore(const Ranks& ranks);

 private:
  void count(const Thread& thread, int by);

  Map<ThreadId, Thread> threads_;
  Map<int, std::int64_t> ranks_;            // how many threads have it
  Map<Weight, std::int64_t> weights_;       // … are in a group that weighs as much
  Map<std::uint32_t, std::int64_t> users_;  // … are this user's
};

}  // namespace swapd::decide
