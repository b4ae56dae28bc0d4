#include "actuate/group_boosters.h"

#include <utility>

namespace swapd::actuate {

GroupBoosters::GroupBoosters(const sys::Groups& cpu, std::span<const DiskGroups> disks, bool dry_run)
    : cpu_(cpu, dry_run) {
  for (const DiskGroups& groups : disks) disks_.emplace_back(*groups.groups, dry_run, kind_of(groups.by));
}

void GroupBoosters::set_journal(Journal* journal) {
  cpu_.set_journal(journal);
  for (GroupBooster& disks : disks_) disks.set_journal(journal);
}

void GroupBoosters::set_competitors(Competitors competitors) {
  for (GroupBooster& disks : disks_) disks.set_competitors(competitors);
  cpu_.set_competitors(std::move(competitors));
}

Ineffective GroupBoosters::lend(ThreadId thread, const SchedAttr& set, bool allowed, Time now) {
  constexpr int best_nice = -20;  // a group has no real-time share of a disk
  for (GroupBooster& disks : disks_) (void)disks.lend(thread, set.realtime() ? best_nice : set.nice, allowed, now);
  if (!set.realtime() && set.policy != SchedPolicy::idle) return cpu_.lend(thread, set.nice, allowed, now);
  cpu_.take_back(thread);
  return Ineffective::none;
}

void GroupBoosters::lower(ThreadId thread, Time now) {
  for (GroupBooster& disks : disks_) disks.take_back(thread);
  cpu_.lower(thread, now);
}

void GroupBoosters::take_back(ThreadId thread) {
  cpu_.take_back(thread);
  for (GroupBooster& disks : disks_) disks.take_back(thread);
}

void GroupBoosters::forget(ThreadId thread) {
  cpu_.forget(thread);
  for (GroupBooster& disks : disks_) disks.forget(thread);
}

}  // namespace swapd::actuate
