#include "shaping/io_admission.h"

#include <utility>

#include "shaping/held_call.h"

namespace swapd::daemon {
namespace {

using decide::ClassView;
using decide::ClassViewPtr;
using decide::Device;
using decide::Tokens;
using decide::WantedCall;
using observe::IoCall;

constexpr std::size_t max_threads = 4096;
constexpr int max_ancestors = 16;
constexpr Duration sought_again = std::chrono::milliseconds(100), met_again = std::chrono::seconds(1);

}  // namespace

IoAdmission::IoAdmission(const ShapingParts& parts, actuate::Delays& delays, Fd listener, std::uint32_t slot)
    : parts_(parts),
      delays_(delays),
      listener_(std::make_shared<const Fd>(std::move(listener))),
      slot_(slot),
      inspector_(parts, listener_),
      workers_(parts.procfs),
      unlimited_(parts.ledger->classes().unlimited()) {}

// ---- which thread is it, and in which class ----

// A thread that has no file open here may be another process's by now, with the same id.
IoAdmission::Thread* IoAdmission::identify_thread(pid_t tid, Time now) {
  const auto found = threads_.find(tid);
  if (found != threads_.end() && (found->second.io || now - found->second.met < met_again)) return &found->second;
  if (threads_.size() >= max_threads) prune(now);
  const auto tgid = parts_.procfs.tgid(tid);
  if (!tgid) return nullptr;
  Thread& made = threads_[tid];
  made.caller.tid = tid;
  made.caller.tgid = *tgid;
  made.caller.gate = this;
  made.met = now;
  made.generation = 0;
  return &made;
}

void IoAdmission::forget(const Thread& thread) const {
  parts_.ledger->forget(thread.caller);
  if (ends_ != nullptr && thread.end != 0) ends_->forget(thread.caller.tid, thread.end);
  if (sys::NetIo* traffic = parts_.counters.traffic(); thread.counted && traffic != nullptr)
    traffic->forget(thread.caller.tid);
}

void IoAdmission::erase(pid_t tid) {
  const auto found = threads_.find(tid);
  if (found == threads_.end()) return;
  forget(found->second);
  threads_.erase(found);
}

void IoAdmission::prune(Time now) {
  settle_ended(now);
  std::erase_if(threads_, [&](auto& entry) {
    const bool ended = !entry.second.io || !entry.second.io->read();
    if (ended) forget(entry.second);
    return ended;
  });
  if (threads_.size() < max_threads) return;
  for (auto& [tid, thread] : threads_) forget(thread);
  threads_.clear();
}

// Null: not in a class, nor a process that was released.
ClassViewPtr IoAdmission::view_of_process(pid_t tgid) const {
  return view_of_member(tgid, parts_.ledger->classes().member(tgid));
}

ClassViewPtr IoAdmission::view_of_member(pid_t tgid, const decide::ClassTable::Member& member) const {
  if (!member.released) return member.view;
  const auto id = parts_.procfs.thread_id(tgid);
  return id && id->start_time == *member.released ? unlimited_ : nullptr;
}

// A process that the engine has not told of yet is in the class of the nearest one above it that is in one.
pid_t IoAdmission::member_above(pid_t tgid) const {
  for (int i = 0; i < max_ancestors && tgid > 1; ++i) {
    const auto stat = parts_.procfs.stat(tgid);
    if (!stat) return 0;
    tgid = stat->ppid;
    if (view_of_process(tgid)) return tgid;
  }
  return 0;
}

// The ledger's last answer holds until a member or a class changes.
ClassViewPtr IoAdmission::view_of(Thread& thread, Time now) {
  const std::uint64_t generation = parts_.ledger.generation();
  if (thread.generation != generation) {
    thread.member = parts_.ledger->classes().member(thread.caller.tgid);
    thread.generation = generation;
  }
  if (auto own = view_of_member(thread.caller.tgid, thread.member)) {
    if (own->limited && own != of_listener_) of_listener_ = own;
    return own;
  }
  if (now - thread.parent_sought >= sought_again) {
    thread.parent = member_above(thread.caller.tgid);
    thread.parent_sought = now;
  }
  if (thread.parent != 0) return view_of_process(thread.parent);
  // A process under this filter comes of a program of this class: its parents have ended, or it was above a quota.
  return of_listener_ ? parts_.ledger->classes().find(of_listener_->of) : nullptr;
}

// ---- what has it moved ----

sys::NetIo* IoAdmission::traffic_for(const ClassView& view) const {
  return view.limits_networks ? parts_.counters.traffic() : nullptr;
}

CallInspector::Subject IoAdmission::subject(const Thread& thread, const ClassView& view) const {
  return {.tid = thread.caller.tid,
          .tgid = thread.caller.tgid,
          .disk = thread.disk,
          .limits = view.limits,
          .traffic = traffic_for(view) != nullptr};
}

std::optional<decide::CallerMoved> IoAdmission::look(Thread& thread, const ClassView& view) {
  const pid_t tid = thread.caller.tid;
  const bool first = !thread.io;
  if (first) {
    auto opened = sys::ThreadIo::open(parts_.procfs.root(), tid);
    if (!opened) return std::nullopt;
    thread.io = std::move(opened).value();
  }
  const auto now = thread.io->read();
  if (!now) return std::nullopt;
  const IoCounters before = std::exchange(thread.counters, *now);
  decide::CallerMoved moved;
  moved.in_all = *now;
  moved.another_thread = sys::goes_backwards(before, *now);
  moved.anew = first || moved.another_thread;
  moved.disk_of_call = thread.disk;
  if (!moved.anew) moved.disk = sys::between(before, *now);
  if (moved.anew && view.limited) ask_for_end(thread);
  if (first)
    if (const auto stat = parts_.procfs.stat(tid)) thread.faults = stat->major_faults;
  if (sys::NetIo* traffic = traffic_for(view); traffic == nullptr) {
    thread.counted = false;
  } else if (thread.counted) {
    look_at_traffic(thread, moved, moved.anew);
  } else {
    thread.counted = traffic->count(tid).ok();
    thread.traffic = {};
  }
  moved.traffic_is_counted = thread.counted;
  return moved;
}

// anew: what was counted before was moved while no class limited the thread.
void IoAdmission::look_at_traffic(Thread& thread, decide::CallerMoved& moved, bool anew) const {
  const auto now = parts_.counters.traffic()->read(thread.caller.tid);
  thread.counted = moved.traffic_is_counted = now.ok();
  if (!now) return;
  const TrafficCounters before = std::exchange(thread.traffic, *now);
  if (anew || now->received < before.received || now->sent < before.sent) return;
  moved.traffic = {.received = now->received - before.received, .sent = now->sent - before.sent};
}

// Bytes that are read without a call that comes to a gate may be pages of mapped files, or directories and inodes
// (getdents64, stat, unlink ...). The pages come by faults.
Tokens IoAdmission::max_paged(Thread& thread) const {
  const auto stat = parts_.procfs.stat(thread.caller.tid);
  if (!stat) return read_by_fault;
  const std::uint64_t faults = stat->major_faults - std::min(thread.faults, stat->major_faults);
  thread.faults = stat->major_faults;
  return static_cast<Tokens>(std::min<std::uint64_t>(faults, 1U << 30U)) * read_by_fault;
}

// The devices are looked for only if something may have been moved without a call. A call of a thread that has ended
// may turn out not to have been made; then all that was moved is such.
void IoAdmission::look_at_pages(Thread& thread, const ClassView& view, decide::CallerMoved& moved, Time now) {
  if (moved.disk.read_bytes == 0 && moved.disk.written_bytes == 0) return;
  const auto pages = decide::may_owe_pages(thread.caller, view.limits.mode, moved);
  if (pages.read == 0 && pages.written == 0 && !moved.has_ended) return;
  const auto subject = this->subject(thread, view);
  const bool of_call = pages.of_call && !moved.has_ended;
  moved.pages_disk = of_call ? *thread.disk : inspector_.disk_of_pages(subject, now);
  moved.paged = max_paged(thread);
  moved.tree_disk = of_call || pages.read <= moved.paged
                        ? moved.pages_disk
                        : inspector_.disk_of_directories(subject, moved.pages_disk, now);
}

void IoAdmission::look_at_workers(Thread& thread, const ClassView& view, decide::CallerMoved& moved, Time now) {
  const pid_t tgid = thread.caller.tgid;
  if (!workers_.knows(tgid)) return;
  workers_.grown(tgid, traffic_for(view), now, moved);
  const FileDevices files = inspector_.known_files(tgid);
  moved.workers_disk = files.disk ? *files.disk : thread.disk.value_or(Device{Device::Kind::disk, 0});
  moved.workers_link = files.link.value_or(Device{Device::Kind::network, 0});
}

// ---- the call ----

std::optional<WantedCall> IoAdmission::wanted(const IoCall& call, Thread& thread, const ClassView& view,
                                              const sys::Notification& notification, Time now) {
  if (call.amount == observe::IoAmount::ring) workers_.note(thread.caller.tgid, traffic_for(view), now);
  return inspector_.wanted(call, notification, subject(thread, view), now);
}

// A call like the one before it goes on before its thread's counters are read. Only if the end of the thread will be
// told.
bool IoAdmission::joins_last(Thread& thread, const IoCall& call, const ClassView& view, Time now,
                             const sys::Notification& notification, std::optional<WantedCall>& want) {
  if (!thread.may_join || thread.kind != &call || !thread.io || thread.end == 0) return false;
  if (!decide::may_join_last(thread.caller, view, now) || workers_.knows(thread.caller.tgid)) return false;
  want = wanted(call, thread, view, notification, now);
  return want && parts_.ledger->join_last(thread.caller, *want, now);
}

bool IoAdmission::hold(const sys::Notification& notification, const Thread& thread,
                       const decide::Ledger::Verdict& verdict) {
  return delays_.hold({.listener = listener_,
                       .slot = slot_,
                       .id = notification.id,
                       .tid = notification.tid,
                       .by_turns = verdict.by_turns,
                       .repeated = thread.caller.disturbed.signals,
                       .patience = thread.caller.disturbed.patience},
                      verdict.due, std::make_shared<HeldCall>(parts_.ledger, thread.caller.call));
}

bool IoAdmission::should_delay(const sys::Notification& notification) {
  const IoCall* call = observe::io_call(notification.nr);
  if (call == nullptr) return false;
  const Time now = parts_.clock.now();
  settle_ended(now);  // before an id is used again, or another thread takes it over as it execs
  Thread* thread = identify_thread(notification.tid, now);
  if (thread == nullptr) return false;
  const ClassViewPtr view = view_of(*thread, now);
  if (!view || !view->limited) {
    set_free(*thread, now);
    return false;
  }
  if (call->amount == observe::IoAmount::entry && !view->limits.counts_operations()) return false;
  std::optional<WantedCall> want;
  if (joins_last(*thread, *call, *view, now, notification, want)) return false;
  auto moved = look(*thread, *view);
  if (!moved) {  // another thread's id by now
    settle_ended(now);
    erase(notification.tid);
    want.reset();
    thread = identify_thread(notification.tid, now);
    if (thread == nullptr) return false;
    moved = look(*thread, *view);
    if (!moved) return false;
  }
  look_at_pages(*thread, *view, *moved, now);
  look_at_workers(*thread, *view, *moved, now);
  if (!want) want = wanted(*call, *thread, *view, notification, now);
  const auto verdict =
      parts_.ledger->settle_and_reserve(thread->caller, view, std::move(*moved), want ? &*want : nullptr, now);
  thread->may_join = verdict.spares;
  thread->kind = want && want->count > 0 ? call : nullptr;
  if (!want) return false;
  for (std::size_t i = 0; i < want->count; ++i)
    if (const Device& device = want->transfers.at(i).device; !want->network(i) && device.number != 0)
      thread->disk = device;
  return verdict.waits && hold(notification, *thread, verdict);
}

}  // namespace swapd::daemon
