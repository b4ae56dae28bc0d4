#include "coscheduling/fairness.h"

#include <algorithm>
#include <cmath>

namespace swapd::bench {

double fair_share(const Crowd& crowd) {
  if (crowd.sessions > 0) {
    const int others = (crowd.competitors > 0 ? 1 : 0) + (crowd.other_ranks > 0 ? crowd.sessions : 0);
    return static_cast<double>(crowd.sessions) / (crowd.sessions + others);
  }
  const double others = crowd.weight * crowd.competitors * crowd.cpus + crowd.other_ranks;
  return static_cast<double>(crowd.ranks) / (crowd.ranks + others);
}

double fairness(double cpu_s, double wall_s, const Crowd& crowd) {
  if (wall_s <= 0) return 0;
  return cpu_s / (wall_s * crowd.cpus * fair_share(crowd));
}

double ideal_s(double dedicated_s, const Crowd& crowd) { return dedicated_s / fair_share(crowd); }

double weight_of(int nice) { return std::pow(1.25, -nice); }

double fairness(std::span<const Phase> phases) {
  double cpu_s = 0, fair_s = 0;
  for (const Phase& phase : phases) {
    cpu_s += phase.cpu_s;
    fair_s += phase.wall_s * phase.crowd.cpus * fair_share(phase.crowd);
  }
  return fair_s > 0 ? cpu_s / fair_s : 0;
}

double fairness_furthest(std::span<const Phase> phases, double least_s) {
  double furthest = 1;
  for (const Phase& phase : phases) {
    if (phase.crowd.competitors == 0 || phase.wall_s < least_s) continue;
    const double here = fairness(phase.cpu_s, phase.wall_s, phase.crowd);
    if (std::abs(here - 1) > std::abs(furthest - 1)) furthest = here;
  }
  return furthest;
}

double fair_part_s(std::span<const Phase> phases) {
  double sum_s = 0;
  for (const Phase& phase : phases) sum_s += phase.wall_s * fair_share(phase.crowd);
  return sum_s;
}

double share_of_cpus(double cpu_s, double wall_s, int cpus) { return wall_s > 0 ? cpu_s / (wall_s * cpus) : 0; }

Whole at_pace(const Progress& progress) {
  const double scale =
      static_cast<double>(progress.wanted) / static_cast<double>(std::max<std::uint64_t>(progress.done, 1));
  return {.time_s = progress.wall_s * scale, .cpu_s = progress.cpu_s * scale, .cut = false};
}

Whole mean_of(const Whole& one, const Whole& other) {
  return {
      .time_s = (one.time_s + other.time_s) / 2, .cpu_s = (one.cpu_s + other.cpu_s) / 2, .cut = one.cut || other.cut};
}

Whole whole_run(const Progress& progress) {
  if (progress.done >= progress.wanted) return {.time_s = progress.wall_s, .cpu_s = progress.cpu_s, .cut = false};
  Whole whole = at_pace(progress);
  whole.cut = true;
  return whole;
}

double lost(double rate, double alone, const Crowd& crowd) {
  const double fair = alone * (1 - fair_share(crowd));
  return fair > 0 ? 1 - rate / fair : 0;
}

std::uint64_t rounds_for(double seconds, const Progress& first) {
  if (first.wall_s <= 0) return 1;
  const double pace = static_cast<double>(first.done) / first.wall_s;
  return static_cast<std::uint64_t>(std::max(1.0, std::round(pace * seconds)));
}

}  // namespace swapd::bench
