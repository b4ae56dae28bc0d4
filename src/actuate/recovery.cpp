#include "actuate/recovery.h"

#include <algorithm>
#include <fstream>
#include <span>
#include <unordered_set>

#include "actuate/attributes.h"
#include "actuate/group_booster.h"
#include "actuate/io_priority.h"

namespace swapd::actuate {

bool still_has(const SchedAttr& now, const SchedAttr& set) {
  SchedAttr expected = set;
  if (set.realtime()) expected.nice = now.nice;
  return now == expected;
}

std::optional<SchedAttr> one_lower(const SchedAttr& set) {
  if (!set.realtime() || set.rt_priority <= 1) return std::nullopt;
  SchedAttr lower = set;
  --lower.rt_priority;
  return lower;
}

bool is_ours(const SchedAttr& now, const SchedAttr& set) {
  const auto lower = one_lower(set);
  return still_has(now, set) || (lower && still_has(now, *lower));
}

SchedAttr own_by_now(const sys::Scheduler& scheduler, pid_t tid, const SchedAttr& seen, const SchedAttr& base,
                     const SchedAttr& set) {
  if (rank(seen) > rank(base) && within(seen, set) && !scheduler.may_take(tid, seen)) return base;
  return without_ours(seen, base, set);
}

Result<Restored> restore_thread(const sys::Scheduler& scheduler, pid_t tid, const SchedAttr& base,
                                const SchedAttr& set) {
  auto now = scheduler.get(tid);
  if (!now.ok()) {
    if (now.error().gone()) return Restored{Restored::What::gone, base};
    if (now.error().code() == EOPNOTSUPP) return Restored{Restored::What::foreign, base};  // moved to sched_ext
    return std::move(now).error();
  }
  if (!is_ours(*now, set)) {
    const SchedAttr theirs = own_by_now(scheduler, tid, *now, base, set);
    if (theirs != *now)
      if (auto given = scheduler.set(tid, theirs); !given.ok() && !given.error().gone())
        return std::move(given).error();
    return Restored{Restored::What::foreign, theirs};
  }
  SchedAttr own = base;
  if (set.realtime() && !base.realtime())
    if (const auto nice = scheduler.nice(tid); nice.ok() && *nice != set.nice)
      own.nice = static_cast<std::int8_t>(*nice);
  auto given = scheduler.set(tid, own);
  if (given.ok()) return Restored{Restored::What::restored, own};
  if (given.error().gone()) return Restored{Restored::What::gone, own};
  return std::move(given).error();
}

namespace {

// A run that was killed between a record and its change leaves two records of one thread, of which the older is what
// the thread has. Gives the newest that fits; where none does, the newest.
const Change& fitting(const sys::Scheduler& scheduler, std::span<const Journal::Left> newest_first,
                      const Change& newest) {
  const auto now = scheduler.get(newest.thread.tid);
  if (!now.ok()) return newest;
  for (const auto& [slot, change] : newest_first)
    if (change.kind == Change::Kind::thread && change.thread == newest.thread && is_ours(*now, change.set))
      return change;
  return newest;
}

}  // namespace

int recover_left(Journal& journal, const Surfaces& surfaces, std::vector<std::string>& notes) {
  const auto& [scheduler, groups, disk_groups, start_time] = surfaces;
  int restored = 0;
  // The newest first: of two records of one thread the newer has what it was given last.
  std::vector<Journal::Left> left = journal.left();
  std::reverse(left.begin(), left.end());
  std::unordered_set<ThreadId> seen, kept;
  for (const auto& [slot, change] : left) {
    if (change.kind == Change::Kind::thread) {
      if (kept.contains(change.thread)) continue;
      if (start_time(change.thread.tid) == change.thread.start_time && seen.insert(change.thread).second) {
        const Change& own = fitting(scheduler, left, change);
        auto done = restore_thread(scheduler, change.thread.tid, own.base, own.set);
        if (!done.ok()) {
          notes.push_back(std::move(done).error().in("recovering").text());
          kept.insert(change.thread);
          continue;
        }
        if (done->what == Restored::What::restored) ++restored;
      }
    } else if (change.kind == Change::Kind::io_priority) {
      if (start_time(change.thread.tid) == change.thread.start_time) {
        const auto done = restore_io_priority(scheduler, change);
        if (!done.ok()) {
          notes.push_back(Error(done.error()).in("recovering").text());
          continue;
        }
        if (*done) ++restored;
      }
    } else {
      const auto of_disks =
          std::ranges::find(disk_groups, change.kind, [](const DiskGroups& one) { return kind_of(one.by); });
      const bool of_cpus = change.kind == Change::Kind::autogroup || change.kind == Change::Kind::cgroup ||
                           change.kind == Change::Kind::idle_cgroup;
      if (!of_cpus && of_disks == disk_groups.end()) continue;
      auto done = restore_group(of_cpus ? groups : *of_disks->groups, change);
      if (!done.ok()) {
        notes.push_back(std::move(done).error().in("recovering").text());
        continue;
      }
      if (*done) ++restored;
    }
    journal.clear(slot);
  }
  return restored;
}

std::string read_boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

}  // namespace swapd::actuate
