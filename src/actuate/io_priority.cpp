#include "actuate/io_priority.h"

#include <algorithm>
#include <utility>

namespace swapd::actuate {
namespace {

// ioprio_set(2), IOPRIO_PRIO_VALUE.
constexpr int class_shift = 13, level_mask = 7;
constexpr int none = 0;

Result<bool> give_back(const sys::Scheduler& scheduler, pid_t tid, int own) {
  const auto now = scheduler.io_priority(tid);
  if (!now) {
    if (now.error().gone()) return false;
    return now.error();
  }
  if (io_priority_of(*now).io_class != IoPriority::Class::none) return false;
  if (Status given = scheduler.set_io_priority(tid, own); !given) {
    if (given.error().gone()) return false;
    return std::move(given).error();
  }
  return true;
}

}  // namespace

IoPriority io_priority_of(int raw) {
  return {static_cast<IoPriority::Class>(std::clamp(raw >> class_shift, 0, 3)),
          static_cast<std::uint8_t>(raw & level_mask)};
}

IoPriority io_priority_of(const SchedAttr& attr) {
  const auto level = static_cast<std::uint8_t>((attr.nice + 20) / 5);
  if (attr.policy == SchedPolicy::idle) return {IoPriority::Class::idle, 0};
  return {attr.realtime() ? IoPriority::Class::realtime : IoPriority::Class::best_effort, level};
}

bool worse(IoPriority a, IoPriority b) {
  if (a.io_class == IoPriority::Class::idle && b.io_class == a.io_class) return false;  // it has no levels
  return std::pair(a.io_class, a.level) > std::pair(b.io_class, b.level);
}

void IoPriorityOverride::lend(ThreadId thread, const SchedAttr& lent) {
  if (dry_run_) return;
  const IoPriority follows = io_priority_of(lent);
  if (const auto known = laid_.find(thread); known != laid_.end()) {
    if (!worse(io_priority_of(known->second.own), follows)) take_back(thread);
    return;
  }
  const auto own = scheduler_.io_priority(thread.tid);
  if (!own || io_priority_of(*own).io_class == IoPriority::Class::none || !worse(io_priority_of(*own), follows)) return;
  const auto slot = record(thread, *own);
  if (!slot) return;  // not without one
  const Laid laid{*own, *slot};
  if (!scheduler_.set_io_priority(thread.tid, none).ok()) {
    if (journal_ != nullptr) journal_->clear(laid.slot);
    return;
  }
  laid_[thread] = laid;
}

void IoPriorityOverride::take_back(ThreadId thread) {
  const auto known = laid_.find(thread);
  if (known == laid_.end()) return;
  // If that fails, it is tried again: with the next boost, or at the next start.
  if (!give_back(scheduler_, thread.tid, known->second.own).ok()) return;
  forget(thread);
}

void IoPriorityOverride::forget(ThreadId thread) {
  const auto known = laid_.find(thread);
  if (known == laid_.end()) return;
  if (journal_ != nullptr) journal_->clear(known->second.slot);
  laid_.erase(known);
}

void IoPriorityOverride::became(ThreadId before, ThreadId now) {
  const int own = saved_priority(before);
  if (own == none) return;
  forget(now);  // of its end nothing was heard
  // Without a record of its own it would not be given back after a crash: all the same it is given back.
  laid_[now] = {own, record(now, own).value_or(Journal::none)};
  forget(before);
}

Result<Journal::Slot> IoPriorityOverride::record(ThreadId thread, int own) {
  if (journal_ == nullptr) return Journal::none;
  Change change;
  change.kind = Change::Kind::io_priority;
  change.thread = thread;
  change.old_value = own;
  change.new_value = none;
  return journal_->write(change);
}

int IoPriorityOverride::saved_priority(ThreadId thread) const {
  const auto known = laid_.find(thread);
  return known == laid_.end() ? none : known->second.own;
}

Result<bool> restore_io_priority(const sys::Scheduler& scheduler, const Change& change) {
  return give_back(scheduler, change.thread.tid, static_cast<int>(change.old_value));
}

}  // namespace swapd::actuate
