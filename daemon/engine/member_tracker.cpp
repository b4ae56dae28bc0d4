#include "engine/member_tracker.h"

#include <unistd.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace swapd::daemon {

namespace {

constexpr std::size_t max_makers = 64;  // of a thread: any thread of its process
constexpr auto roster_period = std::chrono::seconds(1);
constexpr auto roster_period_a_thread = std::chrono::milliseconds(1);  // reading one takes some 20 us

std::uint64_t u64(pid_t pid) { return static_cast<std::uint64_t>(pid); }

}  // namespace

MemberTracker::MemberTracker(const Parts& parts, bool by_filter)
    : parts_(parts), by_filter_(by_filter), families_(parts.members, parts.listeners) {}

void MemberTracker::tell(const Event& event, bool whole_process) {
  parts_.followers.on_event(event);
  parts_.feed.on_event(event, whole_process);
}

// EDQUOT: the user has as many as it may have, and the thread is not enrolled. Another error is the observer's: the
// thread is enrolled, but its waits are not seen.
Status MemberTracker::enroll(ThreadId id, pid_t tgid, const SchedAttr& base, std::uint32_t uid, Time now) {
  model::ManagedSet& members = parts_.members;
  const model::ManagedThread* known = members.thread(id.tid);
  if (known != nullptr && known->id != id) on_exit(id.tid, now);  // a recycled tid …
  const model::ManagedProcess* process = members.process(tgid);
  if (process == nullptr) return Done{};  // … and its process went with it
  if (tgid == ::getpid()) return Done{};  // if swapd watched itself, it would never rest
  const bool first = process->threads.empty();
  if (members.thread(id) == nullptr && process->managed && !parts_.quota.has_room(uid, first)) {
    ++counts_.over_quota;
    parts_.feed.on_over_quota(id, tgid, uid, now);
    parts_.observer.release(id);
    reject(tgid);
    return Error(EDQUOT, "");
  }
  const model::ManagedThread* before = members.thread(id);
  const Weight weight = before == nullptr ? process->weight : before->weight;
  members.add_thread({.id = id, .tgid = tgid, .base = base, .weight = weight});
  Status observed = parts_.observer.manage({id, tgid, process->start_time});
  if (!observed && !observed.error().gone()) ++counts_.lost;  // its waits will not be seen
  process = members.process(tgid);
  if (process != nullptr && process->managed)
    tell(Enrolled{.time = now,
                  .thread = id,
                  .tgid = tgid,
                  .uid = uid,
                  .base = base,
                  .class_id = process->class_id,
                  .weight = weight},
         first);
  return observed;
}

// Nothing is kept of a process none of whose threads is managed.
void MemberTracker::reject(pid_t tgid) {
  parts_.members.drop_if_empty(tgid);
  if (parts_.members.process(tgid) == nullptr) parts_.listeners.unbind(tgid);
}

void MemberTracker::set_base(const model::ManagedThread& thread, const SchedAttr& base, Time now) {
  if (const model::ManagedProcess* process = parts_.members.process(thread.tgid))
    (void)enroll(thread.id, thread.tgid, base, process->uid, now);
}

void MemberTracker::set_weight(const model::ManagedThread& thread, Weight weight, Time now) {
  model::ManagedThread weighed = thread;
  if (weighed.id.tid == weighed.tgid) parts_.members.set_weight(weighed.tgid, weight);
  if (std::exchange(weighed.weight, weight) == weight) return;
  parts_.members.add_thread(weighed);
  set_base(weighed, weighed.base, now);
}

std::optional<observe::Member> MemberTracker::identify(pid_t tid) const {
  const model::ManagedThread* member = parts_.members.thread(tid);
  if (member == nullptr) return std::nullopt;
  const model::ManagedProcess* process = parts_.members.process(member->tgid);
  if (process == nullptr || !process->managed) return std::nullopt;
  return observe::Member{member->id, member->tgid, process->start_time};
}

void MemberTracker::enroll_kernel_threads(const Blocked& blocked) {
  for (const Resource& resource : blocked.awaited) {
    if (resource.kind != ResourceKind::kernel_work) continue;
    const ThreadId id{static_cast<pid_t>(resource.ids[0]), resource.ids[1]};
    if (parts_.members.thread(id) != nullptr) continue;
    const auto base = parts_.kernel.scheduler.get(id.tid);
    const auto stat = parts_.kernel.procfs.stat(id.tid);
    if (!base || !stat || stat->start_time != id.start_time || !stat->kernel) continue;
    parts_.members.add_process(id.tid, id.start_time, 0, "default").kernel = true;
    (void)enroll(id, id.tid, *base, 0, blocked.time);
  }
}

void MemberTracker::on_process_event(const sys::ProcEvent& event, Time now) {
  switch (event.what) {
    case sys::ProcEvent::What::fork:
      on_fork(event, now);
      break;
    case sys::ProcEvent::What::exec:
      on_exec(event, now);
      break;
    case sys::ProcEvent::What::exit:
      on_exit(event.tid, now);
      break;
    case sys::ProcEvent::What::renamed:
    case sys::ProcEvent::What::other_user:
      break;  // not asked for here
  }
}

void MemberTracker::on_fork(const sys::ProcEvent& fork, Time now) {
  const pid_t tid = fork.tid;
  const pid_t tgid = fork.tgid;
  const bool new_process = tid == tgid;
  // For a new thread the connector names the parent of its process; what counts is the process.
  const pid_t parent_tgid = new_process ? fork.parent_tgid : tgid;
  const model::ManagedProcess* parent = families_.find(parent_tgid);
  if (parent == nullptr || parent->kernel) {  // released meanwhile, or never managed
    parts_.observer.release({tid, fork.start_time});
    return;
  }
  // A thread that has ended already may have children that are found through it; where its start was told, its end will
  // be.
  const auto id =
      fork.start_time != 0 ? ThreadId{tid, fork.start_time} : parts_.kernel.procfs.thread_id(tid).value_or(ThreadId{});
  if (!id.valid()) {
    if (new_process) families_.add_unseen(tgid, *parent, parent_tgid);
    return;
  }
  const model::ManagedThread* maker = parts_.members.thread(fork.parent_tid);
  const auto attr = parts_.kernel.scheduler.get(tid);
  if (!attr && (fork.start_time == 0 || maker == nullptr)) return;
  SchedAttr base = attr ? *attr : maker->base;
  if (new_process) {
    if (const model::ManagedProcess* stale = parts_.members.process(tgid);
        stale != nullptr && stale->start_time != id.start_time)
      end_all_threads(*stale, now);  // its end was not told
    parent = families_.find(parent_tgid);
    if (parent == nullptr) return;
    if (parts_.members.process(tgid) == nullptr) {
      add_child_process(id, parent->uid, parent_tgid, *parent);
      parent = families_.find(parent_tgid);  // the table may have moved
    }
  }
  const ThreadId from = adopt(id, fork, *parent, now);
  const bool waited_for = new_process && parent->managed && parent->start_time != 0;
  const std::uint64_t parent_start = parent->start_time;
  if (const auto again = parts_.kernel.scheduler.get(tid)) base = *again;
  const model::ManagedProcess* own = parts_.members.process(tgid);
  if (own == nullptr) return;  // it ended before swapd looked; this thread of it, too, or soon
  if (const Status in = enroll(id, tgid, base, own->uid, now); !in && in.error().code() == EDQUOT) return;
  if (waited_for) {
    // A wait for this process, or for any child of that parent, is a wait for this thread: no scan need find it.
    const Resource itself{ResourceKind::child_exit, {u64(tgid), id.start_time}};
    const Resource any{ResourceKind::child_exit, {0, 0, u64(parent_tgid), parent_start}};
    for (const Resource& resource : {itself, any})
      tell(Accessed{.time = now, .thread = id, .resource = resource, .evidence = Evidence::child});
  }
  parts_.feed.on_spawned(id, tgid, from, now);
}

// A boosted parent's child starts with what reset-on-fork leaves; the actuator knows, for a while, which threads were
// boosted when they forked. Returns the managed thread that has made the child, as far as that is known.
ThreadId MemberTracker::adopt(ThreadId child, const sys::ProcEvent& fork, const model::ManagedProcess& parent,
                              Time now) {
  const bool new_process = fork.tid == fork.tgid;
  const model::ManagedThread* from = parts_.members.thread(new_process ? fork.parent_tid : fork.tgid);
  // For a thread the connector names the process that has made it; for a process the very thread.
  const bool maker_is_known = new_process || parent.threads.size() == 1;
  if (new_process && from != nullptr) {
    parts_.actuator.adopt_child(child, from->id, maker_is_known);
    parts_.followers.on_forked(from->id, now);
  }
  for (std::size_t i = 0; !new_process && i < std::min(parent.threads.size(), max_makers); ++i)
    if (const model::ManagedThread* maker = parts_.members.thread(parent.threads[i]))
      parts_.actuator.adopt_child(child, maker->id, maker_is_known);
  return from != nullptr ? from->id : ThreadId{};
}

// As its parent is: in its class, managed or not, under its filter.
void MemberTracker::add_child_process(ThreadId leader, std::uint32_t uid, pid_t parent_tgid,
                                      const model::ManagedProcess& parent) {
  const bool managed = parent.managed;
  const pid_t launch = parent.launch;
  const Weight weight = parent.weight;
  parts_.members.add_process(leader.tid, leader.start_time, uid, std::string(parent.class_name)).launch = launch;
  parts_.members.set_weight(leader.tid, weight);
  parts_.members.set_managed(leader.tid, managed);
  if (managed) parts_.followers.on_process_born(leader.tid, parent_tgid);
  parts_.listeners.inherit(leader.tid, parent_tgid);
}

void MemberTracker::end_all_threads(const model::ManagedProcess& process, Time now) {
  for (const pid_t tid : std::vector(process.threads)) on_exit(tid, now);
}

void MemberTracker::on_exit(pid_t tid, Time now) {
  parts_.followers.on_number_free(tid);
  const model::ManagedThread* member = parts_.members.thread(tid);
  if (member == nullptr) {
    families_.end(tid);
    return;
  }
  const ThreadId id = member->id;
  std::optional<model::ManagedProcess> ends;
  if (const model::ManagedProcess* process = parts_.members.process(member->tgid);
      process != nullptr && process->threads.size() == 1)
    ends = *process;
  tell(Exited{.time = now, .thread = id}, ends && ends->managed);
  parts_.followers.on_left(id, true);
  parts_.members.remove_thread(tid);
  if (!ends) return;
  // A thread that was made too short ago to be known may have taken the leader's place with execve(2): the end of the
  // leader that was is told, and the process lives on.
  const auto base = parts_.kernel.scheduler.get(ends->tgid);
  const auto stat = parts_.kernel.procfs.stat(ends->tgid);
  if (base && stat && stat->start_time == ends->start_time && stat->alive()) {
    parts_.members.add_process(ends->tgid, ends->start_time, ends->uid, ends->class_name);
    parts_.members.set_managed(ends->tgid, ends->managed);
    (void)enroll({ends->tgid, ends->start_time}, ends->tgid, *base, ends->uid, now);
    return;
  }
  parts_.listeners.unbind(ends->tgid);
  parts_.followers.on_image_gone(ends->tgid);
}

// The thread that calls execve(2) becomes the leader, with its tid and start time, and keeps its attributes: what was
// lent to the thread that it was is still on it. And the user may be another now.
void MemberTracker::on_exec(const sys::ProcEvent& exec, Time now) {
  const model::ManagedProcess* process = parts_.members.process(exec.tgid);
  if (process == nullptr) return;
  const ThreadId id{exec.tgid, process->start_time};
  const std::uint32_t uid_before = process->uid;
  std::vector<pid_t> others = process->threads;
  std::erase(others, exec.tgid);
  for (const pid_t tid : others) {
    const model::ManagedThread* sibling = parts_.members.thread(tid);
    const bool it =
        exec.former_tid != 0 ? tid == exec.former_tid : sibling != nullptr && !parts_.kernel.procfs.thread_id(tid).ok();
    if (sibling == nullptr || !it) continue;
    parts_.actuator.became(sibling->id, id);
    // The kernel's program did not know whose exec this is.
    if (exec.former_tid == 0) parts_.observer.release(sibling->id);
    if (parts_.members.thread(id) == nullptr) (void)enroll(id, exec.tgid, SchedAttr(sibling->base), uid_before, now);
    on_exit(tid, now);
  }
  if (exec.former_tid == 0 && parts_.observer.follows_children()) {  // what it has made since is found by a look
    look_for_descendants_ = true;
    next_roster_ = now;
  }
  parts_.followers.on_image_gone(exec.tgid);
  const model::ManagedThread* leader = parts_.members.thread(id);
  if (leader == nullptr) return;
  if (const auto uid = parts_.kernel.procfs.uid(exec.tgid); uid && parts_.members.set_uid(exec.tgid, *uid))
    (void)enroll(id, exec.tgid, SchedAttr(leader->base), *uid, now);
  tell(Execed{.time = now, .thread = id});
}

void MemberTracker::on_lost(std::uint64_t events, Time now) {
  counts_.lost += events;
  next_roster_ = now;
  look_for_descendants_ = true;
}

std::optional<RosterQuestion> MemberTracker::next_roster(Time now, bool children_are_told) {
  if (now < next_roster_) return std::nullopt;
  next_roster_ = now + std::max<Duration>(roster_period, parts_.members.threads().size() * roster_period_a_thread);
  std::vector<pid_t> all;
  std::vector<pid_t> kernel_threads;
  for (const auto& [tgid, process] : parts_.members.processes())
    (process.kernel ? kernel_threads : all).push_back(tgid);
  const bool descendants = std::exchange(look_for_descendants_, false) || !children_are_told;
  if (!all.empty()) return RosterQuestion{std::move(all), descendants};
  for (const pid_t tgid : kernel_threads) (void)release(tgid, now);
  return std::nullopt;
}

// The answer may be over by now: a priority that was lent then must not become the thread's own.
void MemberTracker::take_roster(const RosterAnswer& answer, Time now) {
  std::unordered_set<pid_t> alive;
  std::unordered_set<pid_t> other_user;  // processes whose user has changed
  for (const RosterAnswer::Entry& entry : answer.threads)
    if (take_roster_entry(entry, other_user, now)) alive.insert(entry.id.tid);
  std::vector<pid_t> gone;
  for (const pid_t pid : answer.question.members) {
    const model::ManagedProcess* process = parts_.members.process(pid);
    if (process == nullptr) continue;
    for (const pid_t tid : process->threads) {
      if (alive.contains(tid)) continue;
      const auto stat = parts_.kernel.procfs.stat(tid);
      if (!stat || !stat->alive()) gone.push_back(tid);  // no wait need have been for it
    }
  }
  for (const pid_t tid : gone) on_exit(tid, now);
}

// False: the entry's process is not the one that was asked about.
bool MemberTracker::take_roster_entry(const RosterAnswer::Entry& e, std::unordered_set<pid_t>& other_users, Time now) {
  model::ManagedSet& members = parts_.members;
  if (const model::ManagedProcess* stale = members.process(e.tgid);
      stale != nullptr && stale->start_time != e.process_start) {
    end_all_threads(*stale, now);
    if (e.parent == 0) return false;  // another process has the pid now
  }
  if (members.process(e.tgid) == nullptr) {
    const model::ManagedProcess* parent = members.process(e.parent);
    if (parent == nullptr || !parts_.observer.inherits(e.id.tid)) return true;
    add_child_process({e.tgid, e.process_start}, e.uid, e.parent, *parent);
  }
  if (members.set_uid(e.tgid, e.uid)) other_users.insert(e.tgid);
  const bool other_user = other_users.contains(e.tgid);
  const model::ManagedThread* known = members.thread(e.id.tid);
  if (known != nullptr && known->id == e.id && known->base == e.attr && !other_user) return true;
  const model::ManagedProcess* process = members.process(e.tgid);
  if (known == nullptr && process != nullptr && !parts_.quota.has_room(e.uid, process->threads.empty())) {
    reject(e.tgid);
    return true;
  }
  if (parts_.actuator.base(e.id)) {
    if (known != nullptr && other_user) (void)enroll(e.id, e.tgid, SchedAttr(known->base), e.uid, now);
    return true;
  }
  if (const auto attr = parts_.kernel.scheduler.get(e.id.tid)) (void)enroll(e.id, e.tgid, *attr, e.uid, now);
  return true;
}

}  // namespace swapd::daemon
