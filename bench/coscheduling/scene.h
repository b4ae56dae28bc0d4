// One run of one configuration of `cosched`: swapd where it is asked for, one or two jobs, what competes with them; and
// what each has got.
#pragma once

#include <optional>

#include "coscheduling/fairness.h"
#include "coscheduling/job.h"

namespace swapd::bench {

struct ScenePlan {
  std::vector<JobPlan> jobs;  // rounds and all
  std::string under = "vanilla";
  int competitors = 0;  // busy loops on each CPU
  double limit_s = 30;  // the run is cut then
  bool frozen = false;  // the jobs run in turns of 100 ms, the others are stopped (SIGSTOP)
};

struct SceneRun {
  std::vector<Progress> jobs;
  double window_s = 0;  // from the jobs' start to the look at what competitors have used
  double competitors_cpu_s = 0;
  double swapd_cpu_s = 0;
  std::string observer = "none";
  nlohmann::json counters = nlohmann::json::object();  // swapd's
};

[[nodiscard]] Result<SceneRun> run_scene(const Context& context, const ScenePlan& plan);

}  // namespace swapd::bench
