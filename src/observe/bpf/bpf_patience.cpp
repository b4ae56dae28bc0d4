// The bpf observer's silent waits: those of threads that wait often, and those for an expected thread.
#include <algorithm>
#include <chrono>
#include <utility>

#include "observe/bpf/bpf_observer.h"
#include "observe/resolve/compat_calls.h"
#include "observe/resolve/syscall_table.h"

namespace swapd::observe {
namespace {
constexpr Duration conversed_period = std::chrono::milliseconds(200);
constexpr int conversed_phases = 20;
}  // namespace

void BpfObserver::be_patient(ThreadId thread, Duration patience) {
  Watched* w = find(thread);
  if (w == nullptr) return;
  if (w->rate.set_patience(patience)) {
    if (!w->rate.patient()) return tell_each_wait(*w);
    ignore_gone(tracer_->set_often(thread.tid, w->rate.often()));
  }
  patient_.set_patience(thread.tid, patience);
}

// Which futex it is changes with each lock; all other calls name what they are about in their first argument.
void BpfObserver::count_wait(Watched& w, const sys::BpfRecord& record) {
  if (record.compat || record.call < 0) return;
  const CallKind of = call_entry(record.call).kind;
  // A kernel thread ends these, which is known as a provider only from the wait before.
  if (of == CallKind::disk || of == CallKind::copy) return;
  WaitRate::Kind kind{.call = record.call, .arg = record.args[0]};
  if (of == CallKind::futex) kind.arg.reset();
  if (record.inverted) inverted(w, record.time);
  if (!w.rate.told(kind, record.time)) return;
  const pid_t tid = record.tid;
  ignore_gone(tracer_->set_often(tid, w.rate.often()));
  if (w.rate.often().size() > 1) return;
  ignore_gone(tracer_->be_patient(tid, sys::BpfTracer::Patience::watchful));
  patient_.add(tid, w.rate.patience(), record.time);
}

void BpfObserver::tell_each_wait(Watched& w) {
  const pid_t tid = w.wait.member.id.tid;
  patient_.remove(tid);
  ignore_gone(tracer_->be_patient(tid, sys::BpfTracer::Patience::none));
  request_rescan(w);  // it may have begun a silent wait
}

// The thread that it waits for has lost its CPU.
void BpfObserver::inverted(const Watched& w, Time now) {
  if (!w.rate.patient()) return;
  const pid_t tid = w.wait.member.id.tid;
  patient_.told_of_inversion(tid, now);
  ignore_gone(tracer_->be_patient(tid, sys::BpfTracer::Patience::resting));
}

void BpfObserver::look_at_patient(Time now, std::vector<Event>& out) {
  if (!patient_.due_about(now)) return;
  const PatientThreads::Found& found = patient_.look(now);
  for (const pid_t tid : found.rested) ignore_gone(tracer_->be_patient(tid, sys::BpfTracer::Patience::watchful));
  for (const pid_t tid : found.told) {
    const auto w = watched_.find(tid);
    if (w == watched_.end() || w->second->fresh) continue;
    ignore_gone(tracer_->be_patient(tid, sys::BpfTracer::Patience::resting));
    read_slot(*w->second, now, out);
  }
  const bool contended = patient_.contended(now);
  for (const auto& [tid, waits] : found.seen) {
    const auto w = watched_.find(tid);
    if (w == watched_.end()) continue;
    if (contended) tell_conversation(*w->second, waits, now, out);
    if (w->second->rate.counted(waits, now)) tell_each_wait(*w->second);
  }
}

// How often it waits, and for whom, can be seen in its slot without any of its waits being told.
void BpfObserver::tell_conversation(Watched& w, std::uint32_t waits, Time now, std::vector<Event>& out) const {
  if (now - w.conversed < conversed_period) return;
  const ThreadId thread = w.wait.member.id;
  const std::uint32_t begun = waits - std::exchange(w.conversed_waits, waits);
  const bool first = std::exchange(w.conversed, now) == Time{};
  // Each at a moment of its own: all that one thread wakes in turn would name the same one.
  if (first) w.conversed -= thread.tid % conversed_phases * (conversed_period / conversed_phases);
  if (first || begun == 0) return;
  const auto slot = tracer_->slot(thread.tid);
  if (!slot || slot->waker.kernel_thread || slot->waker.interrupt) return;
  const std::int32_t call = slot->waker.compat ? native_call(slot->waker.call) : slot->waker.call;
  const auto by = managed_.find(slot->waker.tid);
  if (by == managed_.end() || by->second == thread || call_entry(call).kind == CallKind::kill) return;
  // The last of many waits: the others may have been ended by other threads, unless it is the same one each time.
  const bool again = std::exchange(w.conversed_by, by->second) == by->second;
  out.emplace_back(Conversed{.time = now, .thread = thread, .by = by->second, .waits = again ? begun : 1});
}

int BpfObserver::least_running() const {
  int least = 0;
  for (const sys::RunningThread& one : tracer_->running())
    if (!watched_.contains(one.tid)) least = std::max(least, one.prio);
  return least;
}

bool BpfObserver::waits_unreported(ThreadId thread) {
  Watched* w = find(thread);
  const auto slot = tracer_->glance(thread.tid);
  if (!slot) return false;
  if (slot->silent && (w == nullptr || !w->rate.patient())) return true;
  if (w == nullptr || !w->rate.patient()) return false;
  if (std::exchange(w->asked_waits, slot->waits) == slot->waits) return false;
  // Not for a timer, nor for a device; and a boost helps only where there is something less important to run before.
  const auto last = tracer_->slot(thread.tid);
  return last && watched_.contains(last->waker.tid) && patient_.contended(std::chrono::steady_clock::now());
}

void BpfObserver::look_if_unreported(ThreadId thread, Time since, std::vector<Event>& out) {
  Watched* w = find(thread);
  if (w == nullptr || w->fresh || w->rate.patient()) return;  // look_at_patient() does
  const auto slot = tracer_->slot(thread.tid);
  if (slot && slot->silent && slot->blocked_at < since) read_slot(*w, since, out);
}

void BpfObserver::look_at_unreported(Time now, std::vector<Event>& out) {
  for (const auto& [tid, w] : watched_)
    if (const auto slot = w->rate.patient() && !w->fresh ? tracer_->glance(tid) : std::nullopt; slot && slot->silent)
      read_slot(*w, now, out);
}

}  // namespace swapd::observe
