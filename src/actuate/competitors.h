// Competitors of a nice boost: the groups of the threads that want a CPU now, or a disk. A scan of /proc, for the
// worker.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actuate/actuator.h"
#include "base/thread_id.h"
#include "sys/procfs/procfs.h"
#include "sys/sched/freezer.h"
#include "sys/sched/groups.h"
#include "sys/sched/scheduler.h"

namespace swapd::actuate {

class CompetitorScan {
 public:
  CompetitorScan(const sys::Procfs& procfs, const sys::Groups& groups, const sys::Scheduler& scheduler,
                 std::vector<DiskGroups> disk_groups = {}, sys::Freezer freezer = sys::Freezer())
      : procfs_(procfs),
        groups_(groups),
        scheduler_(scheduler),
        disk_groups_(std::move(disk_groups)),
        freezer_(std::move(freezer)) {}

  // `leave_out`: the threads that are boosted. Nor do swapd itself, which runs because it looks, and the kernel's own
  // threads count. A real-time thread is named in cpu_ranks only when it was runnable on the same CPU the last time as
  // well: one that merely passes by takes nothing from other threads, and a report of `affinity` must be true.
  [[nodiscard]] Competitors look(const std::set<pid_t>& leave_out);

 private:
  void add(pid_t tid, Competitors& found) const;
  [[nodiscard]] bool waits_for_disk(pid_t tid) const;  // one in the state D
  void add_at_disk(pid_t tid, bool boosted);
  void look_at_boosted(ThreadId thread, char state, Competitors& found);
  void look_at_quotas(pid_t tid, Competitors& found);

  const sys::Procfs& procfs_;
  const sys::Groups& groups_;
  const sys::Scheduler& scheduler_;
  std::vector<DiskGroups> disk_groups_;
  std::map<ThreadId, int> realtime_before_;  // and the CPU of each
  // A thread that waits for a disk again and again is not at it at each look.
  std::map<std::string, Time> boosted_at_disks_, others_at_disks_;
  std::optional<Time> looked_;
  sys::Freezer freezer_;
  struct Throttling {
    std::uint64_t periods = 0;
    Time seen{};
    bool known = false;  // there was an earlier look, and whether `now` some were held back since
    bool now = false;
  };
  std::map<std::string, Throttling> quotas_;  // by cpu group
};

}  // namespace swapd::actuate
