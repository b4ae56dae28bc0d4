#include "shaping/io_admission.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>

#include "sys/seccomp/seccomp.h"

namespace swapd::daemon {
namespace {

using decide::Tokens;
using decide::IoDirection;

constexpr std::size_t max_threads = 4096;
constexpr int max_ancestors = 16;
constexpr std::uint64_t max_joined = 8;
constexpr Duration max_unsettled = std::chrono::milliseconds(10);
constexpr Duration sought_again = std::chrono::milliseconds(100), met_again = std::chrono::seconds(1);

}  // namespace

IoAdmission::IoAdmission(Shaper& shaper, Fd listener, std::uint32_t slot)
    : shaper_(shaper),
      listener_(std::make_shared<const Fd>(std::move(listener))),
      slot_(slot),
      targets_(shaper.procfs_, shaper.disks_),
      likely_(shaper.procfs_, shaper.disks_, targets_),
      workers_(shaper.procfs_) {}

void IoAdmission::forget(pid_t tid, const Thread& thread) const {
  {
    const std::lock_guard lock(shaper_.mutex_);
    const auto entered = shaper_.entered_.find(tid);
    if (entered != shaper_.entered_.end() && entered->second.gate == this) {  // else the id is another thread's by now
      shaper_.entered_.erase(entered);
      shaper_.paid_.erase(tid);
    }
  }
  drop_debts(tid, thread);
  if (ends_ && thread.end != 0) ends_->forget(tid, thread.end);
  if (!thread.counted) return;
  const auto traffic = [&] {
    const std::lock_guard lock(shaper_.mutex_);
    return shaper_.traffic_;
  }();
  if (traffic) traffic->forget(tid);
}

// It has ended, or pays to nobody any more.
void IoAdmission::drop_debts(pid_t tid, const Thread& thread) const {
  const std::lock_guard lock(shaper_.mutex_);
  shaper_.shaping_.write_off(*thread.debts);
  thread.debts->clear();
  const auto listed = shaper_.debts_.find(tid);
  if (listed != shaper_.debts_.end() && listed->second == thread.debts) shaper_.debts_.erase(listed);
}

void IoAdmission::erase(pid_t tid) {
  const auto found = threads_.find(tid);
  if (found == threads_.end()) return;
  forget(tid, found->second);
  threads_.erase(found);
}

void IoAdmission::prune(Time now) {
  settle_ended(now);
  std::erase_if(threads_, [&](auto& entry) {
    const bool ended = !entry.second.io || !entry.second.io->read();
    if (ended) forget(entry.first, entry.second);
    return ended;
  });
  if (threads_.size() < max_threads) return;
  for (const auto& [tid, known] : threads_) forget(tid, known);
  threads_.clear();
}

// A process that the engine has not told of yet is in the class of the nearest one above it that is in one.
pid_t IoAdmission::member_above(pid_t tgid) const {
  for (int i = 0; i < max_ancestors && tgid > 1; ++i) {
    const auto stat = shaper_.procfs_.stat(tgid);
    if (!stat) return 0;
    tgid = stat->ppid;
    if (shaper_.view(tgid)) return tgid;
  }
  return 0;
}

Shaper::ViewPtr IoAdmission::view_of(Thread& thread, Time now) {
  if (auto own = shaper_.view(thread.tgid)) {
    if (own->limited && own != of_listener_) of_listener_ = own;
    return own;
  }
  if (now - thread.parent_sought >= sought_again) {
    thread.parent = member_above(thread.tgid);
    thread.parent_sought = now;
  }
  if (thread.parent != 0) return shaper_.view(thread.parent);
  // Whoever is under this filter comes of a program of this class: its parents have ended, or it was above a quota.
  return of_listener_ ? shaper_.view_of_class(of_listener_->of) : nullptr;
}

// One that has nothing open here may be another process's by now, with the same id.
IoAdmission::Thread* IoAdmission::thread(pid_t tid, Time now) {
  const auto found = threads_.find(tid);
  if (found != threads_.end() && (found->second.io || now - found->second.met < met_again)) return &found->second;
  if (threads_.size() >= max_threads) prune(now);
  const auto tgid = shaper_.procfs_.tgid(tid);
  if (!tgid) return nullptr;
  Thread& made = threads_[tid];
  made.tid = tid;
  made.tgid = *tgid;
  made.met = now;
  return &made;
}

std::optional<IoAdmission::Seen> IoAdmission::look(Thread& thread, pid_t tid, const Shaper::View& view) {
  const bool first = !thread.io;
  if (first) {
    auto opened = sys::ThreadIo::open(shaper_.procfs_.root(), tid);
    if (!opened) return std::nullopt;
    thread.io = std::move(opened).value();
  }
  const auto now = thread.io->read();
  if (!now) return std::nullopt;
  const sys::IoCounters before = std::exchange(thread.counters, *now);
  Seen seen;
  const bool backwards = sys::goes_backwards(before, *now);
  if (backwards) take_back(thread, shaper_.clock_.now());  // a thread that execs has taken the place of the first one
  if (!first && !backwards) seen.disk = sys::between(before, *now);
  if (first || backwards) ask_for_end(thread, tid, view);
  if (const auto stat = first ? shaper_.procfs_.stat(tid) : Error(EAGAIN, ""); stat) thread.faults = stat->major_faults;
  if (view.limits.freezes) {
    note_entry(tid, thread);
    take_paid(tid, seen.disk, first || backwards);
  }
  if (!view.traffic)
    thread.counted = false;
  else if (thread.counted) {
    const sys::NetIo::Counters traffic = traffic_of(thread, tid, *view.traffic);
    if (!first && !backwards) seen.traffic = traffic;  // else it was moved while nobody limited it
  } else {
    thread.counted = view.traffic->count(tid).ok();
    thread.traffic = {};
  }
  return seen;
}

// Since the last time.
sys::NetIo::Counters IoAdmission::traffic_of(Thread& thread, pid_t tid, sys::NetIo& traffic) const {
  const auto now = traffic.read(tid);
  thread.counted = now.ok();
  if (!now) return {};
  const sys::NetIo::Counters before = std::exchange(thread.traffic, *now);
  if (now->received < before.received || now->sent < before.sent) return {};
  return {.received = now->received - before.received, .sent = now->sent - before.sent};
}

void IoAdmission::note_entry(pid_t tid, const Thread& thread) const {
  const std::lock_guard lock(shaper_.mutex_);
  Shaper::Entries& entries = shaper_.entered_[tid];
  ++entries.count;
  entries.counted = thread.counters;
  entries.reads = entries.writes = 0;
  entries.gate = this;
}

void IoAdmission::note_costs(pid_t tid, const Wanted& want) const {
  Shaper::Entries& entries = shaper_.entered_[tid];
  for (std::size_t transfer = 0; transfer < want.count; ++transfer)
    if (!want.network[transfer]) (want.transfers[transfer].direction == IoDirection::read ? entries.reads : entries.writes) += want.transfers[transfer].cost;
}

// What was charged to it already, without a call. anew: what is counted begins here.
void IoAdmission::take_paid(pid_t tid, sys::IoCounters& moved, bool anew) const {
  const std::lock_guard lock(shaper_.mutex_);
  const auto found = shaper_.paid_.find(tid);
  if (found == shaper_.paid_.end()) return;
  if (anew) {
    shaper_.paid_.erase(found);
    return;
  }
  const auto take = [](std::uint64_t& bytes, Tokens& paid) {
    const auto taken = std::min(bytes, static_cast<std::uint64_t>(std::max(paid, Tokens{0})));
    bytes -= taken;
    paid -= static_cast<Tokens>(taken);
  };
  take(moved.read_bytes, found->second.read);
  take(moved.written_bytes, found->second.written);
}

// Nobody limits it any more: its last call is settled, and what it does from now on is nobody's to pay for.
void IoAdmission::set_free(Thread& thread, pid_t tid, Time now) {
  if (const Shaper::ViewPtr before = thread.view) {
    if (const auto seen = look(thread, tid, *before)) settle(thread, *seen, *before, now, Settles::call);
  }
  thread.io.reset();
  thread.call.reset();
  thread.view.reset();
  drop_debts(tid, thread);
  workers_.forget(thread.tgid);
}

// Takes the call's places. True: it is to be held until then.
bool IoAdmission::enter(Thread& thread, const Wanted& want, pid_t tid, Time& due, Time now) const {
  const Shaper::View& view = *thread.view;
  auto call = std::make_shared<ShapedCall>();
  const std::lock_guard lock(shaper_.mutex_);
  const auto index = shaper_.shaping_.find(view.name);
  if (!index) return false;
  call->debts = thread.debts;
  for (std::size_t transfer = 0; transfer < want.count; ++transfer) call->asked = std::max(call->asked, want.transfers[transfer].cost);
  call->pages_only = want.count == 0;
  if (shaper_.shaping_.advance(*thread.debts, call->pages_only, now) <= now && want.count == 0) return false;
  if (thread.debts->empty())
    shaper_.debts_.erase(tid);
  else
    shaper_.debts_[tid] = thread.debts;
  call->passage = shaper_.shaping_.reserve(*index, want.transfers, want.count, now);
  if (view.limits.freezes) note_costs(tid, want);
  due = call->due(shaper_.shaping_, now);
  const bool favoured = !view.limits.favoured_wait && shaper_.favoured_.contains(tid);
  if (due > now && favoured) shaper_.shaping_.postpone(call->passage, now);
  thread.call = std::move(call);
  return due > now && !favoured && !shaper_.options_.dry_run;
}

// A call like the one before it, shortly after it, while the buckets are far from empty: it may go on whatever that one
// has moved, so that they are settled together. Only where they cannot move more than is known of them (a receiver
// may), nor is anything else out of the ordinary; and where the end of the thread will be told.
bool IoAdmission::may_join(const Thread& thread, const observe::IoCall& call, const Shaper::ViewPtr& view,
                         Time now) const {
  if (!thread.io || thread.end == 0 || !thread.call || thread.kind != &call || thread.view != view) return false;
  if (view->limits.freezes || call.amount == observe::IoAmount::ring || call.amount == observe::IoAmount::submits ||
      call.amount == observe::IoAmount::none)
    return false;
  if (now - thread.settled > max_unsettled || thread.call->calls >= max_joined) return false;
  if (workers_.knows(thread.tgid)) return false;
  const ShapedCall& last = *thread.call;
  if (last.passage.transfers != 1 || (thread.network[0] && last.passage.directions[0] == decide::IoDirection::read)) return false;
  const std::lock_guard lock(shaper_.mutex_);
  return !last.held && !last.withdrawn && last.signals == 0 && last.waited == Duration::zero() &&
         thread.debts->empty() && shaper_.shaping_.spares(last.passage, 0, now);
}

bool IoAdmission::joins_last(Thread& thread, const Wanted& want, const Shaper::View& view, Time now) const {
  if (want.count != 1 || !want.known || want.network[0] != thread.network[0]) return false;
  const bool as_the_disk =
      view.limits.mode == decide::ShapeMode::device || thread.kind->moved == observe::IoMoved::disk;
  const auto calls = static_cast<Tokens>(thread.call->calls + 1);
  const Tokens besides = as_the_disk && !want.network[0] ? calls * moves_besides : 0;
  auto next = std::make_shared<ShapedCall>();
  const std::lock_guard lock(shaper_.mutex_);
  const ShapedCall& last = *thread.call;
  const auto index = shaper_.shaping_.find(view.name);
  if (!index || !shaper_.shaping_.has_places_of(last.passage, *index, want.transfers[0]) ||
      !shaper_.shaping_.spares(last.passage, want.transfers[0].cost + besides, now))
    return false;
  next->passage = shaper_.shaping_.reserve(*index, want.transfers, 1, now);
  if (!next->passage.join(last.passage)) {
    shaper_.shaping_.cancel(next->passage, now);
    return false;
  }
  next->calls = last.calls + 1;
  thread.call->settled = true;
  thread.call = std::move(next);
  thread.asked += want.asked;
  return true;
}

bool IoAdmission::holds(const sys::Notification& notification) {
  const observe::IoCall* call = observe::io_call(notification.nr);
  if (call == nullptr) return false;
  const Time now = shaper_.clock_.now();
  settle_ended(now);  // before an id is used again, or another thread takes it over as it execs
  Thread* found = thread(notification.tid, now);
  if (found == nullptr) return false;
  const Shaper::ViewPtr view = view_of(*found, now);
  if (!view || !view->limited) {
    set_free(*found, notification.tid, now);
    return false;
  }
  if (call->amount == observe::IoAmount::entry && !view->limits.counts_operations()) return false;
  std::optional<Wanted> want;
  if (may_join(*found, *call, view, now)) {
    want = wanted(*call, notification, *found, *view, now);
    if (want && joins_last(*found, *want, *view, now)) return false;
  }
  auto seen = look(*found, notification.tid, *view);
  if (!seen) {  // another thread's id by now
    settle_ended(now);
    erase(notification.tid);
    want.reset();
    found = thread(notification.tid, now);
    if (found == nullptr) return false;
    seen = look(*found, notification.tid, *view);
    if (!seen) return false;
  }
  Thread& caller = *found;
  if (caller.view && caller.view->name != view->name)
    drop_debts(notification.tid, caller);  // it stays with the class that it was in
  settle(caller, *seen, *view, now, Settles::all);
  settle_workers(caller, *view, now);
  caller.view = view;
  if (!want) want = wanted(*call, notification, caller, *view, now);
  Time due = now;
  if (!want) return false;
  const bool waits = enter(caller, *want, notification.tid, due, now);
  if (want->count > 0) caller.kind = call;
  caller.asked = want->asked;
  for (std::size_t transfer = 0; transfer < want->count; ++transfer) {
    caller.network[transfer] = want->network[transfer];
    caller.costs[transfer] = want->transfers[transfer].cost;
    if (!want->network[transfer] && want->transfers[transfer].device.number != 0) caller.disk = want->transfers[transfer].device;
  }
  return waits && hold(notification, caller, view->limits.favoured_wait, due, now);
}

}  // namespace swapd::daemon
