#include "actuate/competitors.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "actuate/group_booster.h"

namespace swapd::actuate {
namespace {

constexpr pid_t kthreadd = 2;
constexpr auto at_disk_for = std::chrono::seconds(2);
constexpr auto stat_lasts = std::chrono::seconds(3);         // a cpu.stat says what has been since, and that is now
constexpr auto min_between = std::chrono::milliseconds(90);  // two looks at one: most quotas' period is 100 ms

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

// The reason why a boosted thread does not run, whatever its boost.
void CompetitorScan::look_at_boosted(ThreadId thread, char state, Competitors& found) {
  if (state == 'T' || state == 't')
    found.halted.emplace_back(thread, Ineffective::stopped);
  else if (state != 'R' && freezer_.freezes(thread.tid))
    found.halted.emplace_back(thread, Ineffective::frozen);
  look_at_quotas(thread.tid, found);
}

// A quota of any size holds threads back where more CPU is asked for: whether it does, the kernel counts.
void CompetitorScan::look_at_quotas(pid_t tid, Competitors& found) {
  const auto own = groups_.group_of(tid);
  if (!own.ok()) return;
  const Time now = std::chrono::steady_clock::now();
  for (const std::string& group : lineage(*own)) {
    if (found.throttled.contains(group)) return;  // and so are those above
    const auto periods = groups_.throttled_periods(group);
    if (!periods.ok()) continue;
    const auto [known, is_new] = quotas_.try_emplace(group, Throttling{.periods = *periods, .seen = now});
    Throttling& last = known->second;
    if (!is_new && now - last.seen >= min_between)
      last = {.periods = *periods, .seen = now, .known = true, .now = *periods != last.periods};
    if (last.known) {
      found.throttled[group] = last.now;
      continue;
    }
    const auto look = groups_.look(group);
    found.unsure = found.unsure || (look.ok() && look->quota > 0);
  }
}

Competitors CompetitorScan::look(const std::set<pid_t>& leave_out) {
  Competitors found;
  std::map<ThreadId, int> realtime_now;
  freezer_.forget();
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
      if (boosted) look_at_boosted({tid, stat->start_time}, stat->state, found);
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
  std::erase_if(quotas_, [&](const auto& one) { return now - one.second.seen > stat_lasts; });
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
  std::sort(found.halted.begin(), found.halted.end());
  return found;
}

}  // namespace swapd::actuate
