#include "actuate/competitors.h"

#include <unistd.h>

#include <algorithm>

namespace swapd::actuate {
namespace {

constexpr pid_t kthreadd = 2;

template <typename T>
void add_once(std::vector<T>& all, T one) {
  if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(std::move(one));
}

}  // namespace

void CompetitorScan::add(pid_t tid, Competitors& found) const {
  const auto group = groups_.cpu_group(tid);
  if (!group.ok()) return;
  if (*group == "/" && groups_.autogroups()) {
    if (const auto own = groups_.autogroup(tid); own.ok()) return add_once(found.autogroups, own->id);
  }
  add_once(found.cpu_groups, *group);
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
      if (leave_out.contains(tid)) continue;
      const auto stat = procfs_.stat(tid);
      if (!stat.ok() || stat->state != 'R') continue;
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
  // In a fixed order, so that an unchanged answer compares equal.
  std::sort(found.autogroups.begin(), found.autogroups.end());
  std::sort(found.cpu_groups.begin(), found.cpu_groups.end());
  return found;
}

}  // namespace swapd::actuate
