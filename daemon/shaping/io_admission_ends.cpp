// The settlement with threads that have ended, or are limited no more.
#include <utility>

#include "shaping/io_admission.h"
#include "sys/seccomp/seccomp.h"

namespace swapd::daemon {

using Settles = decide::Ledger::Settles;

// When the listener has hung up all its threads end, though the last ones' ends need not have been told yet; till then
// /proc has them. What it does not have any more has been told.
IoAdmission::~IoAdmission() {
  const Time now = parts_.clock.now();
  if (ends_ != nullptr && sys::hung_up(listener_->get())) {
    for (auto& [tid, thread] : threads_) {
      if (!thread.io) continue;
      const auto in_all = thread.io->read();
      if (!in_all) continue;
      settle_last(thread, *in_all, now);
      thread.caller.view.reset();
    }
  }
  settle_ended(now);
  for (auto& [tid, thread] : threads_) forget(thread);
  if (ends_ != nullptr) ends_->drop(owner_);
}

void IoAdmission::ask_for_end(Thread& thread) {
  if (ends_ == nullptr) {
    ends_ = parts_.counters.ends();
    if (ends_ == nullptr) return;
    owner_ = ends_->add();
  }
  thread.end = ends_->ask(thread.caller.tid, owner_).value_or(0);
}

void IoAdmission::settle_ended(Time now) {
  if (ends_ == nullptr) return;
  for (const sys::LastIo::Ended& ended : ends_->take(owner_)) {
    const auto found = threads_.find(ended.tid);
    if (found == threads_.end() || found->second.end != ended.serial) continue;
    settle_last(found->second, ended.in_all, now);
    found->second.end = 0;  // it is asked for no more
    erase(ended.tid);
  }
}

void IoAdmission::settle_last(Thread& thread, const IoCounters& in_all, Time now) {
  const decide::ClassViewPtr before = thread.caller.view;
  if (!thread.io || !before || sys::goes_backwards(thread.counters, in_all)) return;
  decide::CallerMoved moved;
  moved.disk = sys::between(std::exchange(thread.counters, in_all), in_all);
  moved.in_all = in_all;
  moved.has_ended = true;
  moved.disk_of_call = thread.disk;
  if (thread.counted && traffic_for(*before) != nullptr) look_at_traffic(thread, moved, false);
  // Released, or in a class without limits since: what it did then is charged to no class, but its last call is its
  // own.
  const auto view = view_of_process(thread.caller.tgid);
  const bool is_free = view && !view->limited;
  if (!is_free) look_at_pages(thread, *before, moved, now);
  parts_.ledger->settle_last(thread.caller, std::move(moved), is_free ? Settles::call : Settles::all, now);
}

// No class limits it any more: its last call is settled, and what it does from now on is charged to no class.
void IoAdmission::set_free(Thread& thread, Time now) {
  workers_.forget(thread.caller.tgid);
  if (!thread.caller.view && !thread.io) return;
  if (const decide::ClassViewPtr before = thread.caller.view)
    if (auto moved = look(thread, *before))
      parts_.ledger->settle_last(thread.caller, std::move(*moved), Settles::call, now);
  parts_.ledger->drop_debts(thread.caller);
  thread.io.reset();
  thread.caller.call.reset();
  thread.caller.view.reset();
}

}  // namespace swapd::daemon
