// Workloads whose figure is a rate: what a window of one cost, and the lines of the report. A line of them has no
// iterations; its ratios are those of throughputs, so that less than 1 is slower.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/process.h"
#include "harness/report.h"
#include "harness/team.h"

namespace swapd::bench {

// CPU time that swapd and the hogs used between two moments, and what swapd counted between them.
struct RateCost {
  double wall_s = 0;
  double swapd_cpu_s = 0;   // all threads of swapd and of its guard
  double engine_cpu_s = 0;  // the engine's alone
  double hogs_cpu_s = 0;    // all of them together
  std::uint64_t events_lost = 0, donations = 0;
  std::string observer;  // empty: no swapd
};

// Begins where it is made. daemon: null where none runs.
class Meter {
 public:
  [[nodiscard]] static Result<Meter> start(const Daemon* daemon, const std::vector<Child>& hogs);
  [[nodiscard]] Result<RateCost> stop() const;

 private:
  Meter(const Daemon* daemon, const std::vector<Child>& hogs) : daemon_(daemon), hogs_(&hogs) {}
  Status ask_swapd(RateCost& now) const;
  void look(RateCost& now) const;
  const Daemon* daemon_;
  const std::vector<Child>* hogs_;
  std::chrono::steady_clock::time_point began_;
  RateCost before_;
};

struct RateRun {
  double throughput = 0;
  RateCost cost;
};

// One configuration, and a run of it for each repeat.
struct RateRow {
  Setup setup;
  std::vector<RateRun> runs;
  nlohmann::json extra = nlohmann::json::object();
};

// Repeat by repeat, in each repeat one setup after the other.
[[nodiscard]] Result<std::vector<RateRow>> measure_rates(const std::vector<Setup>& setups, const Options& options,
                                                         const std::function<Result<RateRun>(const Setup&)>& run);

// One line a row. `ratio` is the throughput against that of the row that `base` says it is to be compared with, which
// is vanilla under the same hogs or none; to_vanilla and to_hand_set are against those under the same hogs. Each is the
// median of the ratios of neighbours. No ratio to a row that is not there, nor of a row to itself.
using IsBase = bool (*)(const Setup& base, const Setup& of);
[[nodiscard]] bool vanilla_of_same_hogs(const Setup& base, const Setup& of);
[[nodiscard]] bool vanilla_unloaded(const Setup& base, const Setup& of);
[[nodiscard]] std::vector<nlohmann::json> rate_lines(const std::vector<RateRow>& rows, const Options& options,
                                                     IsBase base);

}  // namespace swapd::bench
