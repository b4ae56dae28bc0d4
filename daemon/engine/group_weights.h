// The weights of managed threads' CPU groups, where the policy lets weights say which threads are important
// (weight_above): the worker reads them, the engine judges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/thread_id.h"
#include "base/weight.h"
#include "sys/sched/groups.h"

namespace swapd::daemon {

struct WeightsQuestion {
  std::vector<ThreadId> threads;
  std::uint64_t changes = 0;  // Actuator::group_changes() when it was asked
};

struct WeightsAnswer {
  struct Level {
    std::string group;
    sys::WeightedGroup seen;
  };
  using Path = std::vector<Level>;  // a group and those above it, the root left out
  std::vector<Path> paths;
  std::vector<std::pair<ThreadId, std::size_t>> threads;  // and the place in `paths`; those that have gone are left out
  std::uint64_t changes = 0;
};

// Reads procfs and the groups' files, each group once.
[[nodiscard]] WeightsAnswer read_weights(const sys::Groups& groups, const WeightsQuestion& question);

// The weight that a thread of the group counts with: the product of all weights of the path, each as a share of the
// usual one. So the kernel divides the CPU, level by level; of two threads the groups that both are in weigh the same
// and cancel out. With an idle group on the way it is the usual weight at most. The weight of a delegated group says
// nothing: else its user could make their own threads important to all, by a heavy group for requesters or a light
// one for providers. own_weight: of a group whose weight swapd has changed, its own, in the file's unit
// (0: idle); none: it is as it was seen.
[[nodiscard]] Weight weight_of(const WeightsAnswer::Path& path,
                               const std::function<std::optional<std::uint64_t>(const std::string&)>& own_weight);

}  // namespace swapd::daemon
