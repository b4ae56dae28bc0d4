// A rule of [match.NAME] gives a program more than its class: its own scheduling attributes, I/O priority, and OOM
// score (sched_setattr(2), ioprio_set(2), proc_pid_oom_score_adj(5)). Any thread.
#pragma once

#include <sys/types.h>

#include <optional>

#include "base/asked_priority.h"
#include "base/result.h"
#include "base/sched_attr.h"
#include "policy/policy.h"
#include "sys/procfs/procfs.h"
#include "sys/sched/scheduler.h"

namespace swapd::daemon {

// The attributes that a thread with these is to have by the rule; none: those that it has. Pure.
[[nodiscard]] std::optional<AskedPriority> asked_by(const policy::MatchRule& rule, const SchedAttr& own);
// ioprio_set(2)'s number; none: the rule says none. Pure.
[[nodiscard]] std::optional<int> io_priority_by(const policy::MatchRule& rule);

class RuleSettings {
 public:
  RuleSettings(const sys::Procfs& procfs, const sys::Scheduler& scheduler) : procfs_(procfs), scheduler_(scheduler) {}

  // For a process; ask before it is managed, so that nothing of it is lent.
  [[nodiscard]] std::optional<AskedPriority> asked(const policy::MatchRule& rule, pid_t pid) const;
  // Sets all of it that is no scheduling attribute. A process that has ended is no error.
  [[nodiscard]] Status give(const policy::MatchRule& rule, pid_t pid) const;

 private:
  [[nodiscard]] Status give_io_priority(int raw, bool keep_own, pid_t pid) const;
  [[nodiscard]] Status give_oom_score(int score, bool keep_own, pid_t pid) const;

  const sys::Procfs& procfs_;
  const sys::Scheduler& scheduler_;
};

}  // namespace swapd::daemon
