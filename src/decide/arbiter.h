// Several demands for one thread: which of them holds. Pure.
//
// The demand of the highest rank whose budget lasts is granted. One that may use no CPU time just now (it is withheld,
// or its requester or user is at a limit) stands behind every one that may; where all rest, the best of them is granted
// to rest, so that it is shown and goes on when the window ends.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "decide/budget.h"
#include "decide/decider.h"

namespace swapd::decide {

// A demand that holds, and what keeps it from being carried out for the present.
struct Grant {
  RunAs run;
  std::optional<Time> ceiling_until;  // rests until then if what is given is real-time
  std::optional<Time> quota_until;    // rests until then whatever is given
  bool operator==(const Grant&) const = default;
};

// The thread's, among grants that are sorted by thread; null: it has none.
[[nodiscard]] const Grant* find(std::span<const Grant> grants, ThreadId thread);

class Arbiter {
 public:
  explicit Arbiter(BudgetConfig config) : budgets_(std::move(config)) {}

  [[nodiscard]] CpuBudgets& budgets() { return budgets_; }
  [[nodiscard]] const CpuBudgets& budgets() const { return budgets_; }

  // The grants, sorted by thread; valid until the next call. Demands that are not RunAs are the caller's. Of the
  // lasting demands those are weighed that have changed, or whose thread others want too; all of them while a budget's
  // rest may come in, and the first time.
  std::span<const Grant> merge(std::span<const Plan> plans, Time now);
  [[nodiscard]] std::span<const Grant> grants() const { return grants_; }
  // The threads that were weighed, sorted: the grants of all others are what they were.
  [[nodiscard]] std::span<const ThreadId> touched() const { return touched_; }
  // The next merge() weighs all.
  void begin_anew() {
    anew_ = true;
    budgets_.restored();
  }
  // When a grant that rests may go on; none: none rests.
  [[nodiscard]] std::optional<Time> next_resume() const { return next_resume_; }

 private:
  // A RunAs among a plan's demands.
  struct Claim {
    ThreadId thread;
    std::size_t plan = 0, place = 0;
    const RunAs* run = nullptr;
  };
  [[nodiscard]] Grant weigh(const RunAs& run, Time now) const;
  static bool rests(const Grant& grant);
  static bool better(const Grant& one, const Grant& other);
  void find_claims(std::span<const Plan> plans);
  void find_touched(std::span<const Plan> plans, bool all);
  [[nodiscard]] std::optional<Grant> fold(ThreadId thread, std::span<const Plan> plans, Time now);
  void weigh_in(std::optional<Grant>& kept, const RunAs& run, Time now);

  CpuBudgets budgets_;
  std::vector<Grant> grants_;
  std::vector<Claim> claims_;      // sorted by thread, of each in the order of the demands
  std::vector<ThreadId> claimed_;  // the threads of the last merge()'s
  std::vector<ThreadId> touched_;
  std::vector<Grant> merged_;  // becomes grants_
  bool anew_ = true;
  bool rested_ = false;  // a rest might have come in the last time
  std::optional<Time> next_resume_;
};

}  // namespace swapd::decide
