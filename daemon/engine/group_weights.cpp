#include "engine/group_weights.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "actuate/group_booster.h"

namespace swapd::daemon {

WeightsAnswer read_weights(const sys::Groups& groups, const WeightsQuestion& question) {
  WeightsAnswer answer{.paths = {}, .threads = {}, .changes = question.changes};
  std::unordered_map<std::string, std::size_t> paths;
  std::unordered_map<std::string, Result<sys::WeightedGroup>> seen;
  for (const ThreadId thread : question.threads) {
    const auto group = groups.group_of(thread.tid);
    if (!group) continue;
    const auto [place, is_new] = paths.try_emplace(*group, answer.paths.size());
    answer.threads.emplace_back(thread, place->second);
    if (!is_new) continue;
    WeightsAnswer::Path& path = answer.paths.emplace_back();
    for (std::string& level : actuate::lineage(*group)) {
      auto known = seen.find(level);
      if (known == seen.end()) known = seen.emplace(level, groups.look(level)).first;
      if (known->second) path.push_back({std::move(level), *known->second});
    }
  }
  return answer;
}

Weight weight_of(const WeightsAnswer::Path& path,
                 const std::function<std::optional<std::uint64_t>(const std::string&)>& own_weight) {
  constexpr double most = 1'000'000;  // two levels of the greatest weight
  double product = usual_weight;
  bool idle = false;
  for (const auto& [group, seen] : path) {
    const std::uint64_t weight = own_weight(group).value_or(seen.idle ? 0 : seen.weight);
    if (weight == 0) {
      idle = true;
      continue;
    }
    if (!seen.delegated) product *= static_cast<double>(weight) / static_cast<double>(seen.nice_0_weight);
  }
  if (idle) product = std::min<double>(product, usual_weight);
  return static_cast<Weight>(std::lround(std::clamp(product, 1.0, most)));
}

}  // namespace swapd::daemon
