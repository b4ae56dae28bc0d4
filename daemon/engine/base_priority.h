// `swapctl set`: the attributes of its own that a managed thread has, whatever its boost is meanwhile. Engine thread.
#pragma once

#include <sys/types.h>

#include <utility>
#include <vector>

#include "actuate/actuator.h"
#include "base/asked_priority.h"
#include "base/result.h"
#include "base/sched_attr.h"
#include "model/managed_set.h"
#include "sys/sched/scheduler.h"

namespace swapd::daemon {

class BasePriority {
 public:
  BasePriority(const model::ManagedSet& members, const sys::Scheduler& scheduler, actuate::Actuator& actuator,
               bool dry_run)
      : members_(members), scheduler_(scheduler), actuator_(actuator), dry_run_(dry_run) {}

  using Changed = std::pair<model::ManagedThread, SchedAttr>;  // a thread, and what it has of its own now
  // Gives the threads of the process, or the one thread, what is asked for, and appends those that have it now. ENOENT:
  // not managed. EACCES: it is above what a thread has of its own, and may_raise is false; then nothing is changed.
  // EPERM: a dry run changes nothing. A thread that has ended meanwhile is left out.
  [[nodiscard]] Status set(pid_t pid, const AskedPriority& asked, bool may_raise, std::vector<Changed>& changed);

 private:
  [[nodiscard]] bool raises(const AskedPriority& asked, pid_t tid, const SchedAttr& own) const;
  [[nodiscard]] Status set_one(const model::ManagedThread& member, const AskedPriority& asked, const SchedAttr& base);

  const model::ManagedSet& members_;
  const sys::Scheduler& scheduler_;
  actuate::Actuator& actuator_;
  bool dry_run_;
};

}  // namespace swapd::daemon
