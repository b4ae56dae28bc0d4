// Whom a lent nice value has to compete with: the groups of the threads that want a CPU now. A scan of /proc, for the
// worker.
#pragma once

#include <map>
#include <set>

#include "actuate/actuator.h"
#include "base/thread_id.h"
#include "sys/groups.h"
#include "sys/procfs.h"
#include "sys/scheduler.h"

namespace swapd::actuate {

class CompetitorScan {
 public:
  CompetitorScan(const sys::Procfs& procfs, const sys::Groups& groups, const sys::Scheduler& scheduler)
      : procfs_(procfs), groups_(groups), scheduler_(scheduler) {}

  // `leave_out`: the threads that are boosted. Nor do swapd itself, which runs because it looks, and the kernel's own
  // threads count. A real-time thread is named in cpu_ranks only when it was runnable on the same CPU the last time as
  // well: one that merely passes by takes nothing from anybody, and a report of `affinity` must be true.
  [[nodiscard]] Competitors look(const std::set<pid_t>& leave_out);

 private:
  void add(pid_t tid, Competitors& found) const;

  const sys::Procfs& procfs_;
  const sys::Groups& groups_;
  const sys::Scheduler& scheduler_;
  std::map<ThreadId, int> realtime_before_;  // and the CPU of each
};

}  // namespace swapd::actuate
