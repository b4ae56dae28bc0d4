#include "coscheduling/fairness.h"

#include <algorithm>
#include <cmath>

namespace swapd::bench {

double fair_share(const Crowd& crowd) {
  const int others = crowd.competitors * crowd.cpus + crowd.other_ranks;
  return static_cast<double>(crowd.ranks) / (crowd.ranks + others);
}

double fairness(double cpu_s, double wall_s, const Crowd& crowd) {
  if (wall_s <= 0) return 0;
  return cpu_s / (wall_s * crowd.cpus * fair_share(crowd));
}

double ideal_s(double dedicated_s, const Crowd& crowd) { return dedicated_s / fair_share(crowd); }

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
