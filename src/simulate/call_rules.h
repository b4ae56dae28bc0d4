// The rules by which a message calls its process, over the decision code that the daemon has too. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/time.h"
#include "decide/coscheduling/controller.h"
#include "decide/coscheduling/epoch.h"
#include "simulate/machine.h"
#include "simulate/scenario.h"

namespace swapd::simulate {

struct CallCounts {
  std::uint64_t granted = 0;
  std::uint64_t refused_epoch = 0;
  std::uint64_t refused_equal = 0;  // it does not lag enough
  std::uint64_t refused_fair = 0;   // by the predicate
};

class CallRules {
 public:
  CallRules(const Scenario& scenario, std::size_t processes);

  // May a message of this epoch, for a runnable process without the CPU, take the CPU from the running one? Counts the
  // answer.
  [[nodiscard]] bool grants(const Node& node, const Process& called, std::uint32_t index,
                            decide::coscheduling::Epoch message, Duration now);
  // Ends a window of the controllers. `used`: CPU time of each process since the last one.
  void end_window(const Machine& machine, std::span<const Duration> used, Duration elapsed);
  [[nodiscard]] bool automatic() const { return scheduler_.predicate == Predicate::automatic; }
  [[nodiscard]] const std::vector<CallCounts>& counts() const { return counts_; }  // by job
  void forget_counts();
  // The mean E of a job's controllers.
  [[nodiscard]] double mean_exponent(std::span<const std::uint32_t> members) const;

 private:
  // One process on its CPU.
  struct Account {
    Duration last_call = Duration::max();  // max: none yet
    decide::coscheduling::FairnessWindow window;
    decide::coscheduling::FairnessController controller;
  };
  [[nodiscard]] bool fair(const Node& node, Account& account, Duration now) const;

  Scheduler scheduler_;
  Duration history_, quantum_;
  std::vector<CallCounts> counts_;
  std::vector<Account> accounts_;  // by process; empty without a predicate
};

}  // namespace swapd::simulate
