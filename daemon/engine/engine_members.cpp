// The engine's managed set: who joins it, changes in it and leaves it.
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <span>

#include "engine/engine.h"
#include "observe/io/io_calls.h"

namespace swapd::daemon {

namespace {
constexpr std::size_t max_unseen = 1024;
}  // namespace

Status Engine::enroll(ThreadId id, pid_t tgid, const SchedAttr& base, std::uint32_t uid, Time now) {
  const model::ManagedThread* known = members_.thread(id.tid);
  if (known != nullptr && known->id != id) exited(id.tid, now);  // a recycled tid
  if (members_.process(tgid) == nullptr) return Done{};          // and its process went with it
  if (tgid == ::getpid()) return Done{};                         // who watched itself would never rest
  if (members_.thread(id) == nullptr) {
    const model::ManagedProcess& of = *members_.process(tgid);
    if (of.managed && !has_room(uid, of.threads.empty())) {
      ++over_quota_;
      if (noted(Notes::decisions) && followed_.tell({.first = {tgid, uid}, .what = 2}, now))
        note({.type = Note::Type::limit_reached, .time = now, .thread = id, .tgid = tgid, .limit = "members"});
      observer_->release(id);
      reject(tgid);
      return Error(EDQUOT, "");
    }
  }
  const bool first = members_.process(tgid)->threads.empty();
  members_.add_thread({.id = id, .tgid = tgid, .base = base});
  Status taken = observer_->manage({id, tgid});
  if (!taken && !taken.error().gone()) lost_.fetch_add(1, std::memory_order_relaxed);  // its waits will not be seen
  const model::ManagedProcess* process = members_.process(tgid);
  if (process != nullptr && process->managed) {
    whole_process_ = first;
    take(Enrolled{.time = now, .thread = id, .tgid = tgid, .uid = uid, .base = base, .class_id = process->class_id});
    whole_process_ = false;
  }
  return taken;
}

// Of a process none of whose threads is a member nothing is kept.
void Engine::reject(pid_t tgid) {
  members_.drop_if_empty(tgid);
  if (members_.process(tgid) == nullptr) listener_of_.erase(tgid);
}

bool Engine::has_room(std::uint32_t uid, bool process) const {
  if (uid == 0) return true;
  const model::ManagedSet::Held held = members_.held_by(uid);
  return (options_.max_threads == 0 || held.threads < options_.max_threads) &&
         (!process || options_.max_processes == 0 || held.processes < options_.max_processes);
}

Status Engine::room_for(std::uint32_t uid, pid_t process) const {
  if (const model::ManagedProcess* member = members_.process(process); member != nullptr && member->managed)
    return Done{};
  if (has_room(uid, true)) return Done{};
  const bool threads = !has_room(uid, false);
  const std::string what = threads ? "threads" : "processes";
  return Error(EDQUOT, "user " + std::to_string(uid) + " has " +
                           std::to_string(threads ? options_.max_threads : options_.max_processes) + " managed " +
                           what + ", as many as [quota] " + what + " in the policy allows");
}

// A policy lets waits for the kernel's own work count: then the thread that does it is managed from the first such wait
// on, as far as watching it and lending to it go.
void Engine::enroll_kernel_threads(const Blocked& blocked) {
  for (const Resource& resource : blocked.awaited) {
    if (resource.kind != ResourceKind::kernel_work) continue;
    const ThreadId id = thread_of(resource);
    if (members_.thread(id) != nullptr) continue;
    const auto base = scheduler_.get(id.tid);
    const auto stat = procfs_.stat(id.tid);
    if (!base || !stat || stat->start_time != id.start_time || !stat->kernel) continue;
    members_.add_process(id.tid, id.start_time, 0, "default").kernel = true;
    (void)enroll(id, id.tid, *base, 0, blocked.time);
  }
}

void Engine::child(const sys::ProcEvent& fork, Time now) {
  const pid_t tid = fork.tid;
  const pid_t tgid = fork.tgid;
  const bool new_process = tid == tgid;
  // Of a new thread the connector names the parent of its process; what counts is the process.
  const pid_t parent_tgid = new_process ? fork.parent_tgid : tgid;
  const model::ManagedProcess* parent = family_of(parent_tgid);
  if (parent == nullptr || parent->kernel) {  // released meanwhile, or a stranger's
    observer_->release({tid, fork.start_time});
    return;
  }
  // One that has ended already may have children that are found through it; where its start was told, its end will be.
  const auto id = fork.start_time != 0 ? ThreadId{tid, fork.start_time} : procfs_.thread_id(tid).value_or(ThreadId{});
  if (!id.valid()) {
    if (new_process) remember_family(tgid, *parent, parent_tgid);
    return;
  }
  const model::ManagedThread* maker = members_.thread(fork.parent_tid);
  const auto attr = scheduler_.get(tid);
  if (!attr && (fork.start_time == 0 || maker == nullptr)) return;
  SchedAttr base = attr ? *attr : maker->base;
  if (const model::ManagedProcess* stale = members_.process(tgid);
      new_process && stale != nullptr && stale->start_time != id.start_time) {
    for (const pid_t thread : std::vector(stale->threads)) exited(thread, now);  // of their end nothing was heard
    parent = family_of(parent_tgid);
    if (parent == nullptr) return;
  }
  if (new_process && members_.process(tgid) == nullptr) {
    const std::string class_name = parent->class_name;
    const bool managed = parent->managed;
    const pid_t launch = parent->launch;
    model::ManagedProcess& made = members_.add_process(tgid, id.start_time, parent->uid, class_name);
    made.launch = launch;
    members_.set_managed(tgid, managed);
    if (managed) shaper_.born(tgid, parent_tgid);
    parent = family_of(parent_tgid);  // the table may have moved
    if (const auto listener = listener_of_.find(parent_tgid); listener != listener_of_.end())
      listener_of_[tgid] = listener->second;
  }
  // What a boosted parent's child starts with is reset-on-fork's; the actuator knows, for a while, who was boosted when
  // it forked.
  const model::ManagedThread* from = members_.thread(new_process ? fork.parent_tid : tgid);
  constexpr std::size_t max_makers = 64;  // of a thread: any thread of its process
  // Of a thread the connector names the process of who has made it; of a process the very thread.
  const bool maker_is_known = new_process || parent->threads.size() == 1;
  if (new_process && from != nullptr) actuator_.adopt_child(id, from->id, maker_is_known);
  if (new_process && from != nullptr) decisions_->forked(from->id, now);
  for (std::size_t i = 0; !new_process && i < std::min(parent->threads.size(), max_makers); ++i)
    actuator_.adopt_child(id, members_.thread(parent->threads[i])->id, maker_is_known);
  if (const auto again = scheduler_.get(tid)) base = *again;
  const model::ManagedProcess* own = members_.process(tgid);
  if (own == nullptr) return;  // it ended before anybody looked; this thread of it, too, or soon
  if (Status in = enroll(id, tgid, base, own->uid, now); !in && in.error().code() == EDQUOT) return;
  if (new_process && parent->managed && parent->start_time != 0) {
    // Whoever waits for it, or for any child of that parent, waits for this thread: no scan need find it.
    const ThreadId made{tgid, id.start_time};
    for (const Resource& resource : {child_exit_of(made), any_child_of({parent->tgid, parent->start_time})})
      take(Accessed{.time = now, .thread = id, .resource = resource, .evidence = Evidence::child});
  }
  if (noted(Notes::all)) {
    note({.type = Note::Type::spawned, .time = now, .thread = id, .tgid = tgid, .other = from ? from->id : ThreadId{}});
  }
}

// Also of one that had ended before anybody looked, and may have started others: where their events are told without
// start times, all that is known of it is whose child it was.
const model::ManagedProcess* Engine::family_of(pid_t tgid) const {
  if (const model::ManagedProcess* process = members_.process(tgid)) return process;
  const auto unseen = ended_unseen_.find(tgid);
  return unseen == ended_unseen_.end() ? nullptr : &unseen->second;
}

void Engine::remember_family(pid_t tgid, const model::ManagedProcess& parent, pid_t parent_tgid) {
  if (ended_unseen_.size() >= max_unseen) {  // their ends were lost
    for (const auto& [pid, unseen] : ended_unseen_) listener_of_.erase(pid);
    ended_unseen_.clear();
  }
  model::ManagedProcess family;
  family.class_name = parent.class_name;
  family.uid = parent.uid;
  family.managed = parent.managed;
  family.launch = parent.launch;
  ended_unseen_.insert_or_assign(tgid, std::move(family));
  if (const auto listener = listener_of_.find(parent_tgid); listener != listener_of_.end())
    listener_of_[tgid] = listener->second;
}

void Engine::exited(pid_t tid, Time now) {
  shaper_.favour(tid, false);  // the number may be anybody's next
  const model::ManagedThread* member = members_.thread(tid);
  if (member == nullptr) {
    if (ended_unseen_.erase(tid) != 0) listener_of_.erase(tid);
    return;
  }
  const ThreadId id = member->id;
  std::optional<model::ManagedProcess> ends;
  if (const model::ManagedProcess* process = members_.process(member->tgid); process->threads.size() == 1)
    ends = *process;
  whole_process_ = ends && ends->managed;
  take(Exited{.time = now, .thread = id});
  whole_process_ = false;
  decisions_->forget(id, true);
  members_.remove_thread(tid);
  if (!ends) return;
  // A thread that was made too short ago to be known may have taken the leader's place with execve(2): the end of the
  // leader that was is told, and the process lives on.
  const auto base = scheduler_.get(ends->tgid);
  const auto stat = procfs_.stat(ends->tgid);
  if (base && stat && stat->start_time == ends->start_time && stat->alive()) {
    members_.add_process(ends->tgid, ends->start_time, ends->uid, ends->class_name);
    members_.set_managed(ends->tgid, ends->managed);
    (void)enroll({ends->tgid, ends->start_time}, ends->tgid, *base, ends->uid, now);
    return;
  }
  listener_of_.erase(ends->tgid);
  resolver_.forget(ends->tgid);
}

std::optional<observe::Member> Engine::identify(pid_t tid) {
  const model::ManagedThread* member = members_.thread(tid);
  if (member == nullptr) return std::nullopt;
  const model::ManagedProcess* process = members_.process(member->tgid);
  if (process == nullptr || !process->managed) return std::nullopt;
  return observe::Member{member->id, member->tgid};
}

// Whoever of its threads calls execve(2) becomes the leader, with its tid and start time, and keeps its attributes:
// what was lent to the one it was is still on it. And the user may be another now.
void Engine::execed(const sys::ProcEvent& exec, Time now) {
  const model::ManagedProcess* process = members_.process(exec.tgid);
  if (process == nullptr) return;
  const ThreadId id{exec.tgid, process->start_time};
  std::vector<pid_t> others = process->threads;
  std::erase(others, exec.tgid);
  for (const pid_t tid : others) {
    const model::ManagedThread* sibling = members_.thread(tid);
    const bool it = exec.former_tid != 0 ? tid == exec.former_tid : sibling != nullptr && !procfs_.thread_id(tid).ok();
    if (sibling == nullptr || !it) continue;
    actuator_.became(sibling->id, id);
    if (exec.former_tid == 0) observer_->release(sibling->id);  // whose exec this is the kernel's program did not know
    if (members_.thread(id) == nullptr) (void)enroll(id, exec.tgid, sibling->base, process->uid, now);
    exited(tid, now);
  }
  if (exec.former_tid == 0 && observer_->follows_children()) {  // what it has made since is found by a look
    rescan_ = true;
    next_roster_ = now;
  }
  resolver_.forget(exec.tgid);  // its memory is another now
  const model::ManagedThread* leader = members_.thread(id);
  if (leader == nullptr) return;
  if (const auto uid = procfs_.uid(exec.tgid); uid && members_.set_uid(exec.tgid, *uid))
    (void)enroll(id, exec.tgid, leader->base, *uid, now);
  take(Execed{.time = now, .thread = id});
}

void Engine::happened(const sys::ProcEvent& event, Time now) {
  switch (event.what) {
    case sys::ProcEvent::What::fork:
      child(event, now);
      break;
    case sys::ProcEvent::What::exec:
      execed(event, now);
      break;
    case sys::ProcEvent::What::exit:
      exited(event.tid, now);
      break;
    case sys::ProcEvent::What::renamed:
    case sys::ProcEvent::What::other_user:
      break;  // not asked for here
  }
}

// Nobody's waits are seen meanwhile, which is worth a warning while it lasts.
void Engine::on_tracing_changed(const Status& status) {
  trouble_ = status ? "" : status.error().text() + "; nothing is lent until that works: it is tried again";
  if (!status) spdlog::warn("{}", trouble_);
}

void Engine::request_rescan(std::uint64_t lost, Time now) {
  lost_.fetch_add(lost, std::memory_order_relaxed);
  next_roster_ = now;
  rescan_ = true;
}

Result<std::size_t> Engine::enroll_threads(const std::vector<RosterAnswer::Entry>& threads,
                                           const std::string& class_name) {
  const Time now = clock_.now();
  if (members_.empty()) next_tick_ = now;
  std::size_t added = 0;
  Status full = Done{};  // what is above a quota is left out
  for (const RosterAnswer::Entry& e : threads) {
    if (const model::ManagedProcess* stale = members_.process(e.tgid);
        stale != nullptr && stale->start_time != e.process_start)
      for (const pid_t tid : std::vector(stale->threads)) exited(tid, now);
    const bool is_new = members_.thread(e.id) == nullptr;
    const model::ManagedProcess* known = members_.process(e.tgid);
    // What was read may have been lent, and be over by now.
    const auto own = scheduler_.get(e.id.tid);
    const SchedAttr base = actuator_.base(e.id).value_or(own ? *own : e.attr);
    const bool same = !is_new && known != nullptr && known->managed && known->class_name == class_name &&
                      known->uid == e.uid && members_.thread(e.id)->base == base;
    members_.add_process(e.tgid, e.process_start, e.uid, class_name);
    members_.set_managed(e.tgid, true);
    // The observer may have had no room for it when it came.
    Status taken = same ? observer_->manage({e.id, e.tgid}) : enroll(e.id, e.tgid, base, e.uid, now);
    if (!taken && taken.error().code() == EDQUOT) {
      if (full) full = room_for(e.uid, e.tgid);
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

void Engine::take_proc_events(Time now) {
  if (!proc_events_) return;
  std::array<sys::ProcEvent, 64> batch;
  for (;;) {
    const auto n = proc_events_->read(batch.data(), batch.size());
    if (!n) {  // some were lost
      request_rescan(1, now);
      if (n.error().code() == ENOBUFS) continue;
      proc_events_.reset();  // scans find the children from now on
      return;
    }
    for (const sys::ProcEvent& e : std::span(batch).first(*n)) happened(e, now);
    if (*n < batch.size()) return;
  }
}

// What the worker read may be over by now: a priority that was lent then must not become the thread's own.
void Engine::take_roster(const RosterAnswer& answer, Time now) {
  std::unordered_set<pid_t> alive;
  std::unordered_set<pid_t> other_user;
  for (const RosterAnswer::Entry& e : answer.threads) {
    if (const model::ManagedProcess* stale = members_.process(e.tgid);
        stale != nullptr && stale->start_time != e.process_start) {
      for (const pid_t tid : std::vector(stale->threads)) exited(tid, now);
      if (e.parent == 0) continue;  // the pid is a stranger's
    }
    alive.insert(e.id.tid);
    if (members_.process(e.tgid) == nullptr) {
      const model::ManagedProcess* parent = members_.process(e.parent);
      if (parent == nullptr || !observer_->inherits(e.id.tid)) continue;
      const std::string class_name = parent->class_name;
      const bool managed = parent->managed;
      members_.add_process(e.tgid, e.process_start, e.uid, class_name);
      members_.set_managed(e.tgid, managed);
      if (managed) shaper_.born(e.tgid, e.parent);
      if (const auto listener = listener_of_.find(e.parent); listener != listener_of_.end())
        listener_of_[e.tgid] = listener->second;
    }
    if (members_.set_uid(e.tgid, e.uid)) other_user.insert(e.tgid);
    const model::ManagedThread* known = members_.thread(e.id.tid);
    if (known != nullptr && known->id == e.id && known->base == e.attr && !other_user.contains(e.tgid)) continue;
    if (known == nullptr && !has_room(e.uid, members_.process(e.tgid)->threads.empty())) {
      reject(e.tgid);
      continue;
    }
    if (actuator_.base(e.id)) {
      if (known != nullptr && other_user.contains(e.tgid)) (void)enroll(e.id, e.tgid, known->base, e.uid, now);
      continue;
    }
    if (const auto attr = scheduler_.get(e.id.tid)) (void)enroll(e.id, e.tgid, *attr, e.uid, now);
  }
  std::vector<pid_t> gone;
  for (const pid_t pid : answer.question.members) {
    const model::ManagedProcess* process = members_.process(pid);
    if (process == nullptr) continue;
    for (const pid_t tid : process->threads) {
      if (alive.contains(tid)) continue;
      const auto stat = procfs_.stat(tid);
      if (!stat || !stat->alive()) gone.push_back(tid);  // nobody need have waited for it
    }
  }
  for (const pid_t tid : gone) exited(tid, now);
}

// Delayed by its class's limits, which end as soon as it is favoured. And each of the calls that are trapped for them
// sleeps until the receiver has looked at it, which is no reason to take anything back; nor is it where it then waits
// for the disk, which its priority holds for, too.
bool Engine::would_run(const Blocked& blocked) const {
  if (shaper_.would_run(blocked.thread.tid)) return true;
  if (io_receivers_.empty() || !blocked.awaited.empty() || observe::io_call(blocked.call) == nullptr) return false;
  const model::ManagedThread* member = members_.thread(blocked.thread);
  return member != nullptr && has_io(member->tgid);
}

// Also where it was seen to block before it was held.
void Engine::poll_held_threads(Time now) {
  std::unordered_map<pid_t, Time> held;
  for (const auto& [tid, since] : shaper_.would_run()) {
    held[tid] = since;
    const model::ManagedThread* member = members_.thread(tid);
    const auto before = held_before_.find(tid);
    if (member != nullptr && (before == held_before_.end() || before->second != since))
      decisions_->take(Woken{.time = now, .thread = member->id, .unrelated = true});
  }
  held_before_ = std::move(held);
}

}  // namespace swapd::daemon
