// The bpf observer's silent waits: those of threads that wait often, and those for an expected thread.
#include <algorithm>
#include <chrono>
#include <utility>

#include "observe/bpf/bpf_observer.h"

namespace swapd::observe {

void BpfObserver::be_patient(ThreadId thread, Duration patience) {
  Watched* w = find(thread);
  if (w == nullptr) return;
  if (w->rate.set_patience(patience)) return tell_each_wait(*w);
  patient_.set_patience(thread.tid, patience);
}

void BpfObserver::count_wait(Watched& w, Time now) {
  if (!w.rate.told(now)) return;
  const pid_t tid = w.wait.member.id.tid;
  ignore_gone(tracer_->be_patient(tid, sys::BpfTracer::Patience::watchful));
  patient_.add(tid, w.rate.patience(), now);
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
  const auto due = patient_.due();
  if (!due || now < *due) return;
  const PatientThreads::Found& found = patient_.look(now);
  for (const pid_t tid : found.rested) ignore_gone(tracer_->be_patient(tid, sys::BpfTracer::Patience::watchful));
  for (const pid_t tid : found.told) {
    const auto w = watched_.find(tid);
    if (w == watched_.end() || w->second->fresh) continue;
    ignore_gone(tracer_->be_patient(tid, sys::BpfTracer::Patience::resting));
    read_slot(*w->second, now, out);
  }
  for (const auto& [tid, waits] : found.seen)
    if (const auto w = watched_.find(tid); w != watched_.end() && w->second->rate.counted(waits, now))
      tell_each_wait(*w->second);
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
  const bool has_waited = std::exchange(w->asked_waits, slot->waits) != slot->waits;
  // A boost helps only where there is something less important to run before.
  return has_waited && patient_.contended(std::chrono::steady_clock::now());
}

void BpfObserver::look_if_unreported(ThreadId thread, Time since, std::vector<Event>& out) {
  Watched* w = find(thread);
  if (w == nullptr || w->fresh || w->rate.patient()) return;  // look_at_patient() does
  const auto slot = tracer_->slot(thread.tid);
  if (slot && slot->silent && slot->blocked_at < since) read_slot(*w, since, out);
}

}  // namespace swapd::observe
