#include "engine/base_priority.h"

#include <string>

namespace swapd::daemon {

// Above what it has of its own, whatever it is lent. A nice value that a real-time or idle thread keeps for later
// counts, too.
bool BasePriority::raises(const AskedPriority& asked, pid_t tid, const SchedAttr& own) const {
  if (asked.attr.realtime()) return true;
  if (!asked.nice_alone) return rank(asked.attr) > rank(own);
  const auto nice = own.realtime() ? scheduler_.nice(tid) : Result<int>(own.nice);
  return nice && asked.attr.nice < *nice;
}

// A nice value alone is given as by renice(1): while a real-time priority is lent to a real-time thread, the kernel
// keeps its nice value.
Status BasePriority::set_one(const model::ManagedThread& member, const AskedPriority& asked, const SchedAttr& base) {
  const pid_t tid = member.id.tid;
  const bool lent_to = actuator_.base(member.id).has_value();
  if (lent_to && !(asked.nice_alone && base.realtime())) return actuator_.set_base(member.id, base);
  return asked.nice_alone ? scheduler_.set_nice(tid, asked.attr.nice) : scheduler_.set(tid, base);
}

Status BasePriority::set(pid_t pid, const AskedPriority& asked, bool may_raise, std::vector<Changed>& changed) {
  std::vector<Changed> all;  // with what each has of its own so far
  const auto add = [&](pid_t tid) {
    if (const model::ManagedThread* member = members_.thread(tid)) all.emplace_back(*member, member->base);
  };
  const model::ManagedThread* one = members_.thread(pid);
  const model::ManagedProcess* process = members_.process(pid);
  if (process != nullptr)
    for (const pid_t tid : process->threads) add(tid);
  else
    add(pid);
  const model::ManagedProcess* owner = process != nullptr || one == nullptr ? process : members_.process(one->tgid);
  if (all.empty() || owner == nullptr || !owner->managed)
    return Error(ENOENT, "process " + std::to_string(pid) + " is not managed");
  for (auto& [member, own] : all) {
    const auto base = actuator_.base(member.id);
    const auto seen = base ? Result<SchedAttr>(*base) : scheduler_.get(member.id.tid);
    if (seen) own = *seen;
    if (!may_raise && raises(asked, member.id.tid, own))
      return Error(EACCES, "only root may raise a priority through swapd");
  }
  if (dry_run_) return Error(EPERM, "this swapd only decides (--dry-run), and changes no priority");
  for (const auto& [member, own] : all) {
    const SchedAttr base = asked.over(own);
    Status set = set_one(member, asked, base);
    if (!set && set.error().gone()) continue;
    if (!set) return set;
    changed.emplace_back(member, base);
  }
  return Done{};
}

}  // namespace swapd::daemon
