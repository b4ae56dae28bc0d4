// The gate's settlement with threads that have ended.
#include <mutex>
#include <utility>

#include "shaping/io_admission.h"
#include "sys/seccomp/seccomp.h"

namespace swapd::daemon {

// Where the listener has hung up all its threads end, though the last ones' ends need not have been told yet; till then
// /proc has them. What it does not have any more has been told.
IoAdmission::~IoAdmission() {
  const Time now = shaper_.clock_.now();
  if (ends_ && sys::hung_up(listener_->get())) {
    for (auto& [tid, known] : threads_) {
      if (!known.io) continue;
      const auto in_all = known.io->read();
      if (!in_all) continue;
      settle_last(tid, known, *in_all, now);
      known.view.reset();
    }
  }
  settle_ended(now);
  for (const auto& [tid, known] : threads_) forget(tid, known);
  if (ends_) ends_->drop(owner_);
}

void IoAdmission::ask_for_end(Thread& thread, pid_t tid, const Shaper::View& view) {
  if (!view.ends) return;
  if (!ends_) {
    ends_ = view.ends;
    owner_ = ends_->add();
  }
  thread.end = ends_->ask(tid, owner_).value_or(0);
}

void IoAdmission::settle_ended(Time now) {
  if (!ends_) return;
  for (const sys::LastIo::Ended& ended : ends_->take(owner_)) {
    const auto found = threads_.find(ended.tid);
    if (found == threads_.end() || found->second.end != ended.serial) continue;
    settle_last(ended.tid, found->second, ended.in_all, now);
    found->second.end = 0;  // it is asked for no more
    erase(ended.tid);
  }
}

void IoAdmission::settle_last(pid_t tid, Thread& thread, const sys::IoCounters& in_all, Time now) {
  if (!thread.io || !thread.view || sys::goes_backwards(thread.counters, in_all)) return;
  if (thread.call && is_held(*thread.call)) take_back(thread, now);  // killed before it was made
  Seen seen{.disk = sys::between(thread.counters, in_all), .traffic = {}};
  thread.counters = in_all;
  if (thread.view->limits.freezes) note_entry(tid, thread);  // its pages are charged here
  take_paid(tid, seen.disk, false);
  if (thread.counted && thread.view->traffic) seen.traffic = traffic_of(thread, tid, *thread.view->traffic);
  // Released, or in a class without limits since: what it did then is nobody's to pay for, but its last call is its
  // own.
  const auto view = shaper_.view(thread.tgid);
  settle(thread, seen, *thread.view, now, view && !view->limited ? Settles::call : Settles::all);
}

bool IoAdmission::is_held(const ShapedCall& call) const {
  const std::lock_guard lock(shaper_.mutex_);
  return call.held;
}

void IoAdmission::take_back(Thread& thread, Time now) const {
  if (!thread.call) return;
  const std::lock_guard lock(shaper_.mutex_);
  if (!std::exchange(thread.call->withdrawn, true)) shaper_.shaping_.cancel(thread.call->passage, now);
  thread.call.reset();
}

}  // namespace swapd::daemon
