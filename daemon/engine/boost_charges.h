// Charges the CPU time that boosted threads use to the budgets of decide/budget.h. Runs on the engine thread.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "actuate/actuator.h"
#include "decide/arbiter.h"
#include "engine/cpu_clocks.h"
#include "model/model.h"
#include "sys/procfs/procfs.h"

namespace swapd::daemon {

class BoostCharges {
 public:
  // charge: what is left of a requester's budget; none: it has no limit, or it is a user's.
  using Charge = std::function<std::optional<Duration>(const decide::BudgetUsed&)>;
  BoostCharges(const decide::BudgetConfig& config, Charge charge, const actuate::Actuator& actuator,
               const observe::Observer& observer, const model::Model& model, const sys::Procfs& procfs,
               ExactTiming& exact);

  // `clocks` is made after this, and tells it of quanta.
  void use(CpuClocks& clocks) { clocks_ = &clocks; }
  // Around the actuator's apply(): what ends, or goes to another requester, is charged to its end; what begins is
  // measured from its begin.
  void before_apply(std::span<const decide::Grant> grants, Time now);
  void after_apply(std::span<const decide::Grant> grants, Time now);
  // Charges what is in force.
  void charge(Time now);
  void charge_users(Time now);
  void quantum_begins(ThreadId thread, Time now);
  void quantum_ends(ThreadId thread, Time now);
  // When a requester could be at its ceiling: charge() then.
  [[nodiscard]] std::optional<Time> next() const { return next_; }
  [[nodiscard]] bool idle() const { return charged_.empty() && timed_.empty() && users_.empty(); }
  void forget(ThreadId thread);

 private:
  struct Charged {  // a thread with a real-time boost, while there is a ceiling
    Time since{};
    std::optional<CpuClocks::Reading> seen;
    std::uint64_t round = 0;
  };
  using ChargedThreads = HashMap<ThreadId, Charged>;
  struct UserBoost {  // of a provider of this user's requester, while there are quotas
    std::uint32_t user = 0;
    std::optional<Duration> seen;
    Time looked{};
    std::uint64_t round = 0;
  };
  std::optional<Duration> charge(Charged& charged, const actuate::Actuator::Active& active, Time now);
  void charge(ThreadId thread, UserBoost& boost, Time now);
  void note_left(std::optional<Duration> left, Time now);
  [[nodiscard]] std::optional<Duration> user_cpu_time(ThreadId thread, Time now) const;

  const decide::BudgetConfig& config_;
  Charge charge_;
  const actuate::Actuator& actuator_;
  const observe::Observer& observer_;
  const model::Model& model_;
  const sys::Procfs& procfs_;
  ExactTiming& exact_;
  CpuClocks* clocks_ = nullptr;
  ChargedThreads charged_;
  HashSet<ThreadId> timed_;  // exactly, for that
  HashMap<ThreadId, UserBoost> users_;
  std::uint64_t round_ = 0, user_round_ = 0;
  std::optional<Time> next_;
};

}  // namespace swapd::daemon
