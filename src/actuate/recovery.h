// Gives threads back what is theirs: at the end of a donation, and after a crash from the journal.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actuate/actuator.h"
#include "actuate/journal.h"
#include "base/result.h"
#include "sys/sched/groups.h"
#include "sys/sched/scheduler.h"

namespace swapd::actuate {

using StartTime = std::function<std::optional<std::uint64_t>(pid_t)>;

// Whether a thread that swapd gave `set` still has it. A real-time thread's nice value is not part of the question,
// because sched_getattr(2) does not show it.
[[nodiscard]] bool still_has(const SchedAttr& now, const SchedAttr& set);
// A real-time priority one lower; empty where there is none.
[[nodiscard]] std::optional<SchedAttr> one_lower(const SchedAttr& set);
// Whether it has that, or what Actuator::give_way() leaves where it is cut short.
[[nodiscard]] bool is_ours(const SchedAttr& now, const SchedAttr& set);

// Attributes for a thread that has not got `set` any more: those that another program gave it, less what was ours. But
// attributes that it may have made of the boost without any right to them, to keep them, are not its own: then it gets
// `base`. (An administrator who renices a thread without privilege to something between its own and its boost is not
// heard.)
[[nodiscard]] SchedAttr own_by_now(const sys::Scheduler& scheduler, pid_t tid, const SchedAttr& seen,
                                   const SchedAttr& base, const SchedAttr& set);

struct Restored {
  // foreign: the thread had other attributes than `set`, they are in `own`, and it keeps them.
  enum class What : std::uint8_t { restored, foreign, gone } what = What::restored;
  SchedAttr own;  // what the thread has now
};
// Gives the thread `base` if it still has `set`. While it was real-time its kernel-kept nice was set.nice; another one
// means that another program has reniced it, and that value is respected.
[[nodiscard]] Result<Restored> restore_thread(const sys::Scheduler& scheduler, pid_t tid, const SchedAttr& base,
                                              const SchedAttr& set);

struct Surfaces {
  const sys::Scheduler& scheduler;
  const sys::Groups& groups;
  std::span<const DiskGroups> disk_groups;
  const StartTime& start_time;
};
// Undoes the changes of an earlier run. What cannot be undone stays in the journal and is named in `notes`.
[[nodiscard]] int recover_left(Journal& journal, const Surfaces& surfaces, std::vector<std::string>& notes);

// /proc/sys/kernel/random/boot_id; empty where it cannot be read.
[[nodiscard]] std::string read_boot_id();

}  // namespace swapd::actuate
