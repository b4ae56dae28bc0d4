// The deciders of an engine, run together over one model: fed with the same events and inputs, asked in turn, their
// demands arbitrated. Pure, and so the same in the daemon, in a replay and in tests.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "decide/arbiter.h"
#include "decide/decider.h"

namespace swapd::model {
class Model;
}

namespace swapd::decide {

// State of a decider, or of the budgets, as numbers; `times` are the places of points in time among them.
struct DeciderState {
  std::string name;
  std::vector<std::int64_t> numbers;
  std::vector<std::uint32_t> times;
  bool operator==(const DeciderState&) const = default;
};

class Panel {
 public:
  static constexpr std::string_view budgets_name = "budgets";
  Panel(model::Model& model, BudgetConfig budgets, std::vector<std::unique_ptr<Decider>> deciders);

  // Whether the model is to learn of the event.
  [[nodiscard]] bool admits(const Event& event) const;
  void feed(const Event& event);
  void on(const Input& input);
  // The rest of the requester's budget; none: it has no limit, or it is a user's.
  std::optional<Duration> charge(const BudgetUsed& used) { return arbiter_.budgets().use(used); }
  // The thread has left the managed set.
  void forget(ThreadId thread);

  struct Answer {
    bool complete = true;      // nothing more is to be learnt in this turn
    bool new_demands = false;  // grants(), limits(), timers and metered boosts are those of now
  };
  // Asks each decider once. What the plans ask for besides demands is the caller's to carry out.
  Answer decide(const Turn& turn);

  [[nodiscard]] std::size_t size() const { return deciders_.size(); }
  [[nodiscard]] Plan& plan(std::size_t decider) { return plans_[decider]; }
  // The demands, timers and metered boosts in force.
  [[nodiscard]] const Plan& standing(std::size_t decider) const { return standing_[decider]; }
  [[nodiscard]] std::span<const Grant> grants() const { return arbiter_.grants(); }
  using Limits = std::map<std::string, std::int64_t>;  // bytes a second, by class
  [[nodiscard]] const Limits& limits() const { return limits_; }
  // The processes that are to be away, sorted.
  [[nodiscard]] std::span<const pid_t> away() const { return away_; }
  [[nodiscard]] const Arbiter& arbiter() const { return arbiter_; }

  [[nodiscard]] bool idle() const;
  [[nodiscard]] bool needs_calls() const;
  [[nodiscard]] bool may_batch() const;
  // When decide() must be called at the latest; none: when there is news.
  [[nodiscard]] std::optional<Time> next() const;
  // The same of the plans that want it punctually, and of what has rested for a ceiling's or a quota's sake.
  [[nodiscard]] std::optional<Time> punctual_next() const;

  [[nodiscard]] std::vector<DeciderState> save() const;
  // States of deciders that are not here are passed over. False: one does not fit, and nothing of it is to be used.
  [[nodiscard]] bool restore(std::span<const DeciderState> states);

 private:
  void find_limits();
  void find_away();

  model::Model& model_;
  std::vector<std::unique_ptr<Decider>> deciders_;
  std::vector<Plan> plans_, standing_;  // of each
  Arbiter arbiter_;
  Limits limits_;
  std::vector<pid_t> away_;
};

}  // namespace swapd::decide
