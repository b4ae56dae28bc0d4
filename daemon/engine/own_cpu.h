// The CPU time of swapd's own threads, and what keeps it within its budget: how long the engine's turns wait,
// patience, and how many threads are heard of (decide/observation_budget.h). Engine thread.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"
#include "decide/observation_budget.h"
#include "engine/snapshot.h"

namespace swapd::daemon {

class OwnCpu {
 public:
  explicit OwnCpu(const decide::ObservationBudget::Config& config) : budget_(config) {}

  struct Help {
    std::uint64_t boosts = 0, begun = 0;  // in force, and so far
    std::uint64_t gangs = 0;
    bool competes = true;  // false: boosts help nothing, because no other thread wants the CPUs
  };
  // Call at each tick. apart: CPU time so far that patience could not have spared, for loading programs and moving
  // pages. The patience, if it has changed. Reads one clock each window.
  [[nodiscard]] std::optional<Duration> measure(Time now, const Help& help, Duration apart);
  // Call at each turn: how long it is to wait. Reads one clock.
  [[nodiscard]] Duration wait(Time now);
  // By thread. worker, receivers, jobs, memory: what those have used; the rest of the process is the control thread's
  // and that of the threads that it starts (launches, limits, delays).
  [[nodiscard]] static CpuTimes times(Duration worker, Duration receivers, Duration jobs, Duration memory);
  [[nodiscard]] BudgetUse budget() const;
  // ObservationBudget::set_many().
  void set_many(bool many) { budget_.set_many(many); }
  // The part of the watched threads that the observer is to hear of.
  [[nodiscard]] double heard() const { return budget_.heard(); }

 private:
  decide::ObservationBudget budget_;
  Duration apart_{};
  std::uint64_t begun_ = 0;
  bool helped_ = false;  // since the last window
};

}  // namespace swapd::daemon
