// MemberTracker's commands: what is enrolled, managed again, moved and released on request.
#include <algorithm>
#include <string>
#include <utility>

#include "engine/member_tracker.h"

namespace swapd::daemon {

namespace {
constexpr std::size_t max_released = 4096;
}  // namespace

void MemberTracker::enroll_launched(pid_t pid, const std::string& class_name, Time now) {
  const auto leader = parts_.kernel.procfs.thread_id(pid);
  const auto uid = parts_.kernel.procfs.uid(pid);
  if (!leader || !uid) return;  // its listener hangs up
  parts_.members.add_process(pid, leader->start_time, *uid, class_name).launch = pid;
  if (const auto attr = parts_.kernel.scheduler.get(pid)) (void)enroll(*leader, pid, *attr, *uid, now);
}

Result<std::size_t> MemberTracker::enroll_threads(const std::vector<RosterAnswer::Entry>& threads,
                                                  const std::string& class_name, Time now) {
  model::ManagedSet& members = parts_.members;
  std::size_t added = 0;
  Status full = Done{};  // what is above a quota is left out
  for (const RosterAnswer::Entry& e : threads) {
    if (const model::ManagedProcess* stale = members.process(e.tgid);
        stale != nullptr && stale->start_time != e.process_start)
      end_all_threads(*stale, now);
    const model::ManagedThread* before = members.thread(e.id);
    const bool is_new = before == nullptr;
    const model::ManagedProcess* known = members.process(e.tgid);
    // The attributes that were read may have been lent, and be over by now.
    const auto own = parts_.kernel.scheduler.get(e.id.tid);
    const SchedAttr base = parts_.actuator.base(e.id).value_or(own ? *own : e.attr);
    const bool same = !is_new && known != nullptr && known->managed && known->class_name == class_name &&
                      known->uid == e.uid && before->base == base;
    members.add_process(e.tgid, e.process_start, e.uid, class_name);
    members.set_managed(e.tgid, true);
    // The observer may have had no room for it when it came.
    Status taken = same ? parts_.observer.manage({e.id, e.tgid}) : enroll(e.id, e.tgid, base, e.uid, now);
    if (!taken && taken.error().code() == EDQUOT) {
      if (full) full = parts_.quota.room_for(e.uid, e.tgid);
      continue;
    }
    if (!taken && !taken.error().gone())
      return std::move(taken).error().in("thread " + std::to_string(e.id.tid) + " of process " +
                                         std::to_string(e.tgid));
    if (is_new) ++added;
  }
  if (!full && added == 0) return full.error();
  return added;
}

Result<std::size_t> MemberTracker::reenroll(const std::vector<RosterAnswer::Entry>& threads,
                                            const model::Membership& as, Time now) {
  const ListenerTable::Receiver* listener = parts_.listeners.of_launch(as.launch);
  if (by_filter_ && listener == nullptr)
    return Error(ENOENT, "process " + std::to_string(as.pid) + ": its listener is lost");
  if (listener != nullptr)
    for (const RosterAnswer::Entry& e : threads) parts_.listeners.bind(e.tgid, listener);
  if (listener != nullptr && as.io) parts_.listeners.traps_io(listener);
  auto taken = enroll_threads(threads, as.class_name, now);
  for (const RosterAnswer::Entry& e : threads) {
    if (parts_.members.process(e.tgid) == nullptr) {
      parts_.listeners.unbind(e.tgid);
      continue;
    }
    parts_.members.set_launch(e.tgid, as.launch);
    if (!as.managed) (void)release(e.tgid, now);
  }
  return taken;
}

Status MemberTracker::manage_again(pid_t pid, const std::string& class_name, Time now) {
  const model::ManagedProcess* process = parts_.members.process(pid);
  if (process == nullptr) return Error(ENOENT, "not in a managed tree");
  if (!process->managed) parts_.feed.on_managed({pid, process->start_time}, true, now);
  const std::uint32_t uid = process->uid;
  model::ManagedProcess& again = parts_.members.add_process(pid, process->start_time, uid, class_name);
  parts_.members.set_managed(pid, true);
  for (const pid_t tid : std::vector(again.threads)) {
    const model::ManagedThread* member = parts_.members.thread(tid);
    const auto attr = parts_.kernel.scheduler.get(tid);
    if (member != nullptr && attr)
      (void)enroll(member->id, pid, parts_.actuator.base(member->id).value_or(*attr), uid, now);
  }
  return Done{};
}

void MemberTracker::move_class(const std::string& from, const std::string& to, Time now) {
  std::vector<pid_t> pids;
  for (const auto& [pid, process] : parts_.members.processes())
    if (process.class_name == from && process.managed) pids.push_back(pid);
  for (const pid_t pid : pids) (void)manage_again(pid, to, now);
}

Status MemberTracker::release(pid_t pid, Time now) {
  const model::ManagedThread* thread = parts_.members.thread(pid);
  const pid_t tgid = thread == nullptr ? pid : thread->tgid;
  const model::ManagedProcess* process = parts_.members.process(tgid);
  if (process == nullptr || !process->managed)
    return Error(ENOENT, "process " + std::to_string(pid) + " is not managed");
  const ThreadId leader{tgid, process->start_time};
  parts_.members.set_managed(tgid, false);
  if (!by_filter_) remember_released(tgid, leader.start_time);
  parts_.followers.on_process_released(tgid, leader.start_time);
  for (const pid_t tid : std::vector(process->threads)) {
    const model::ManagedThread* member = parts_.members.thread(tid);
    if (member == nullptr) continue;
    const ThreadId id = member->id;
    parts_.followers.on_event(Exited{.time = now, .thread = id});  // to the model it is gone
    parts_.observer.release(id);
    parts_.followers.on_left(id, false);
    if (!by_filter_) parts_.members.remove_thread(tid);  // nothing of it stays; a filter would
  }
  parts_.feed.on_managed(leader, false, now);
  return Done{};
}

void MemberTracker::remember_released(pid_t pid, std::uint64_t start_time) {
  if (released_.size() >= max_released) released_.clear();
  released_[pid] = start_time;
}

bool MemberTracker::knows(pid_t pid, std::uint64_t start_time) const {
  if (const model::ManagedProcess* process = parts_.members.process(pid)) return process->start_time == start_time;
  const auto released = released_.find(pid);
  return released != released_.end() && released->second == start_time;
}

std::vector<model::Membership> MemberTracker::memberships() const {
  std::vector<model::Membership> out;
  for (const auto& [pid, process] : parts_.members.processes()) {
    if (process.kernel) continue;
    out.push_back(
        {pid, process.start_time, process.class_name, process.managed, process.launch, parts_.listeners.has_io(pid)});
  }
  for (const auto& [pid, start_time] : released_)
    if (parts_.members.process(pid) == nullptr) out.push_back({pid, start_time, "default", false, 0});
  return out;
}

}  // namespace swapd::daemon
