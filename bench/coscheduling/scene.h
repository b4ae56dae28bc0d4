// One run of one configuration of `cosched`: swapd where it is asked for, one or two jobs, what competes with them; and
// what each has got.
#pragma once

#include <optional>

#include "coscheduling/fairness.h"
#include "coscheduling/job.h"

namespace swapd::bench {

// Competitors of the jobs for a time.
struct Rivals {
  int competitors = 0;  // on each CPU
  int nice = 0;         // of each
};

struct ScenePlan {
  std::vector<JobPlan> jobs;  // none: only what competes
  std::string under = "vanilla";
  int competitors = 0;              // on each CPU
  std::vector<std::string> serial;  // what they are; none: busy loops
  double limit_s = 30;              // the run ends then
  // Busy loops that come and go: one after the other, over and over, so long each. None: they stay the same.
  std::vector<Rivals> turns;
  double turn_s = 0;
};

struct ScenePhase {
  Rivals rivals;
  double wall_s = 0;
  double cpu_s = 0;  // of the first job
};

struct SceneRun {
  std::vector<Progress> jobs;
  double window_s = 0;  // from the jobs' start to the look at what the others have used
  double competitors_cpu_s = 0;
  double serial_runs = 0;  // of serial programs, in the window
  double swapd_cpu_s = 0;
  std::vector<ScenePhase> phases;  // where rivals come and go
  std::string observer = "none";
  nlohmann::json counters = nlohmann::json::object();  // swapd's
};

// Under "freeze" the jobs run in turns of 100 ms, and the others are stopped meanwhile (SIGSTOP).
[[nodiscard]] Result<SceneRun> run_scene(const Context& context, const ScenePlan& plan);

}  // namespace swapd::bench
