#include "actuate/competitors.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace swapd::actuate {
namespace {

constexpr pid_t kthreadd = 2;
constexpr auto at_disk_for = std::chrono::seconds(2);

template <typename T>
void add_once(std::vector<T>& all, T one) {
  if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(std::move(one));
}

}  // namespace

void CompetitorScan::add(pid_t tid, Competitors& found) const {
  const auto group = groups_.group_of(tid);
  if (!group.ok()) return;
  if (*group == "/" && groups_.autogroups()) {
    if (const auto own = groups_.autogroup(tid); own.ok()) return add_once(found.autogroups, own->id);
  }
  add_once(found.cpu_groups, *group);
}

// Not in a call that is held, frozen, waiting for another machine or for a child that has yet to exec.
bool CompetitorScan::waits_for_disk(pid_t tid) const {
  return !procfs_.sleeps_in(tid, {"seccomp", "do_freezer", "__refrigerator", "rpc_", "kernel_clone"});
}

void CompetitorScan::add_at_disk(pid_t tid, bool boosted) {
  for (const DiskGroups& disks : disk_groups_)
    if (auto group = disks.groups->group_of(tid); group.ok())
      (boosted ? boosted_at_disks_ : others_at_disks_)[std::move(group).value()] = std::chrono::steady_clock::now();
}

Competitors CompetitorScan::look(const std::set<pid_t>& leave_out) {
  Competitors found;
  std::map<ThreadId, int> realtime_now;
  for (const pid_t pid : procfs_.processes()) {
    if (pid == ::getpid() || pid == kthreadd) continue;
    const auto leader = procfs_.stat(pid);
    if (!leader.ok() || leader->ppid == kthreadd) continue;
    const auto threads = procfs_.threads(pid);
    if (!threads.ok()) continue;
    for (const pid_t tid : *threads) {
      const bool boosted = leave_out.contains(tid);
      const auto stat = procfs_.stat(tid);
      if (!stat.ok()) continue;
      if (stat->state == 'D' && !disk_groups_.empty() && waits_for_disk(tid)) add_at_disk(tid, boosted);
      if (boosted || stat->state != 'R') continue;
      add(tid, found);
      const auto attr = scheduler_.get(tid);
      if (!attr.ok() || !attr->realtime() || stat->processor < 0) continue;
      const ThreadId id{tid, stat->start_time};
      realtime_now[id] = stat->processor;
      const auto before = realtime_before_.find(id);
      if (before == realtime_before_.end() || before->second != stat->processor) continue;
      const auto cpu = static_cast<std::size_t>(stat->processor);
      if (found.cpu_ranks.size() <= cpu) found.cpu_ranks.resize(cpu + 1, -1);
      found.cpu_ranks[cpu] = std::max(found.cpu_ranks[cpu], rank(*attr));
    }
  }
  realtime_before_ = std::move(realtime_now);
  const Time now = std::chrono::steady_clock::now();
  const Duration kept = std::max<Duration>(at_disk_for, 2 * (now - std::exchange(looked_, now).value_or(now)));
  const auto recent = [&](std::map<std::string, Time>& seen) {
    std::erase_if(seen, [&](const auto& entry) { return now - entry.second > kept; });
    std::vector<std::string> groups;
    for (const auto& [group, at] : seen) groups.push_back(group);
    return groups;
  };
  found.boosted_at_disks = recent(boosted_at_disks_);
  found.others_at_disks = recent(others_at_disks_);
  // In a fixed order, so that an unchanged answer compares equal.
  std::sort(found.autogroups.begin(), found.autogroups.end());
  std::sort(found.cpu_groups.begin(), found.cpu_groups.end());
  return found;
}

}  // namespace swapd::actuate
