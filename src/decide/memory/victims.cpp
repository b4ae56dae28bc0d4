#include "decide/memory/victims.h"

#include <algorithm>

namespace swapd::decide {

namespace {

// A job that waits does not ask for what it has in swap.
std::int64_t wanted_by(const MemoryJob& job) { return job.waits ? 0 : job.swapped; }

struct Sum {
  std::int64_t freed = 0, wanted = 0;  // by what leaves; by what stays
  int rank = INT32_MIN;                // of the best that leaves
  void leaves(const MemoryJob& job) {
    freed += job.resident;
    wanted -= wanted_by(job);
    rank = std::max(rank, job.rank);
  }
};

// The jobs that stay get something of it. One that thrashes alone, because it needs more than there is, stands still
// only for one that matters more.
bool is_worth(const Sum& sum, const Sum& all, std::span<const MemoryJob> jobs) {
  constexpr std::int64_t least = 1 << 20;
  if (sum.wanted >= std::max(all.wanted / 16, least)) return true;
  std::int64_t better = 0;
  for (const MemoryJob& job : jobs)
    if (job.rank > sum.rank) better += wanted_by(job);
  return better >= least;
}

// Less than that of one job is not worth standing still for.
std::int64_t least_worth(std::int64_t lacking) { return std::max<std::int64_t>(lacking / 64, 1 << 20); }

bool is_enough(const Sum& sum, std::int64_t room, std::int64_t swap_room) {
  return sum.freed > 0 && sum.freed <= swap_room && room + sum.freed >= with_margin(sum.wanted);
}

}  // namespace

bool goes_before(const MemoryJob& one, const MemoryJob& other) {
  if (one.rank != other.rank) return one.rank < other.rank;
  if (one.waits != other.waits) return one.waits;
  if (one.since != other.since) return one.since < other.since;
  if (one.resident != other.resident) return one.resident > other.resident;
  return one.id < other.id;
}

bool all_fit(std::span<const MemoryJob> jobs, std::int64_t room) {
  std::int64_t wanted = 0;
  for (const MemoryJob& job : jobs) wanted += wanted_by(job);
  return room >= with_margin(wanted);
}

std::vector<MemoryJob::Id> choose_victims(std::span<const MemoryJob> jobs, std::int64_t room, std::int64_t swap_room) {
  Sum all;
  std::vector<const MemoryJob*> order;
  for (const MemoryJob& job : jobs) {
    all.wanted += wanted_by(job);
    if (!job.needed) order.push_back(&job);
  }
  std::ranges::sort(order, [](const auto* one, const auto* other) { return goes_before(*one, *other); });
  if (order.size() == jobs.size() && !order.empty()) order.pop_back();
  const std::int64_t least = least_worth(with_margin(all.wanted) - room);
  std::erase_if(order, [&](const MemoryJob* job) { return job->resident + wanted_by(*job) < least; });
  // One alone, of those that matter as little as the first and wait as it does, rather than several.
  for (const MemoryJob* job : order) {
    if (job->rank != order.front()->rank || job->waits != order.front()->waits) break;
    Sum sum = all;
    sum.leaves(*job);
    if (is_enough(sum, room, swap_room) && is_worth(sum, all, jobs)) return {job->id};
  }
  Sum sum = all;
  std::vector<MemoryJob::Id> chosen;
  for (const MemoryJob* job : order) {
    sum.leaves(*job);
    chosen.push_back(job->id);
    if (is_enough(sum, room, swap_room) && is_worth(sum, all, jobs)) return chosen;
  }
  return {};
}

}  // namespace swapd::decide
