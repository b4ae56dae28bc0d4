// Measurements of a configuration of `cosched`, and its line of the report. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "coscheduling/fairness.h"
#include "coscheduling/job_programs.h"
#include "coscheduling/scene.h"
#include "options.h"

namespace swapd::bench {

struct CoschedConfig {
  std::string under;
  int competitors = 0;
};

// One job or two, and what they are put beside.
struct CoschedSubject {
  std::vector<JobPlan> jobs;
  std::vector<CoschedConfig> configs;
};

// One repeat of a configuration.
struct CoschedFigures {
  SceneRun run;
  std::vector<Whole> dedicated;  // of each job, alone on the machine in the same repeat
  double serial_alone_cpu = 0;   // CPUs that the serial programs use without the job
  double serial_alone_rate = 0;  // their runs a second
};

// The job's figures; of two jobs `time_s` is the slower one's, `cpu_s` both jobs', `fairness` that of the one that is
// further from 1, and `throughput` the sum of what each does a second, as parts of what it does alone. `to_vanilla`:
// the ratio of to_ideal's of the same repeat; none without vanilla.
[[nodiscard]] nlohmann::json cosched_line(const CoschedSubject& subject, const CoschedConfig& config,
                                          const std::vector<CoschedFigures>& repeats, const Options& options,
                                          const std::vector<CoschedFigures>* vanilla = nullptr);

}  // namespace swapd::bench
