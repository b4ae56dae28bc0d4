#include "observe/bpf/patient_threads.h"

#include <algorithm>
#include <utility>

namespace swapd::observe {

void PatientThreads::add(pid_t tid, Duration patience, Time now) {
  if (std::ranges::find(threads_, tid, &Patient::tid) != threads_.end()) return set_patience(tid, patience);
  if (threads_.empty()) next_ = now + interval_;
  threads_.push_back({.tid = tid, .patience = patience});
}

void PatientThreads::remove(pid_t tid) {
  std::erase_if(threads_, [&](const Patient& one) { return one.tid == tid; });
}

void PatientThreads::set_patience(pid_t tid, Duration patience) {
  const auto found = std::ranges::find(threads_, tid, &Patient::tid);
  if (found != threads_.end()) found->patience = patience;
}

std::optional<Time> PatientThreads::due() const { return threads_.empty() ? std::nullopt : std::optional(next_); }

void PatientThreads::Patient::rest(Time now) {
  rests = true;
  rested = now + rest_patiences * patience;
}

Duration PatientThreads::shortest() const {
  Duration least = Duration::max();
  for (const Patient& one : threads_) least = std::min(least, one.patience);
  return threads_.empty() ? min_interval : std::clamp<Duration>(least, min_interval, max_pace);
}

void PatientThreads::told_of_inversion(pid_t tid, Time now) {
  const auto found = std::ranges::find(threads_, tid, &Patient::tid);
  if (found == threads_.end()) return;
  found->rest(now);
  next_ = std::min(next_, found->rested);
}

void PatientThreads::note_waker(Patient& one) const {
  const pid_t waker = slots_.woken_by(one.tid);
  if (waker == 0 || std::ranges::find(one.wakers, waker) != one.wakers.end()) return;
  one.wakers[one.next_waker++ % max_wakers] = waker;
}

bool PatientThreads::lacks_a_provider(const Patient& one) const {
  return std::ranges::any_of(one.wakers, [&](pid_t waker) {
    const auto slot = waker == 0 ? std::nullopt : slots_.glance(waker);
    return slot && slot->starved;
  });
}

void PatientThreads::tell(Patient& one, Time now) {
  one.silent = false;
  one.rest(now);
  found_.told.push_back(one.tid);
}

// A chain: the inversion of a provider is one of each thread that waits for that provider.
void PatientThreads::tell_those_who_wait_for_told(Time now) {
  for (std::size_t i = 0; i < found_.told.size() && found_.told.size() < max_told; ++i)
    for (Patient& one : threads_)
      if (one.silent && found_.told.size() < max_told && slots_.woken_by(one.tid) == found_.told[i]) tell(one, now);
}

const PatientThreads::Found& PatientThreads::look(Time now) {
  found_.told.clear();
  found_.seen.clear();
  found_.rested.clear();
  std::vector<Patient*> outlasting;
  const std::size_t count = threads_.size();
  std::optional<int> least;
  const auto lesser_runs = [&](int prio) {
    if (!least) least = slots_.least_running();
    if (*least > prio) contended_until_ = now + stays_contended;
    return *least > prio;
  };
  const bool asks = contended_until_ - now < stays_contended / 2;
  for (std::size_t i = 0; i < count; ++i) {
    Patient& one = threads_[(first_ + i) % count];
    if (one.rests && now >= one.rested) {
      one.rests = false;
      found_.rested.push_back(one.tid);
    }
    const auto slot = slots_.glance(one.tid);
    if (!slot) continue;
    found_.seen.push_back({one.tid, slot->waits});
    if (asks) (void)lesser_runs(slot->prio);
    const bool same = one.silent && slot->silent && slot->waits == one.waits;
    one.silent = slot->silent;
    one.waits = slot->waits;
    note_waker(one);
    const bool inverted = one.silent && lacks_a_provider(one) && lesser_runs(slot->prio);
    const bool again = std::exchange(one.inverted, inverted) && inverted;
    if (!same) one.since = now;
    if ((same || again) && inverted && !one.rests && found_.told.size() < max_told)
      tell(one, now);
    else if (!same)
      continue;
    else if (now - one.since >= std::max(one.patience, min_outlasting))
      outlasting.push_back(&one);
  }
  if (count != 0) first_ = (first_ + max_told) % count;
  const bool inversions = !found_.told.empty();
  tell_those_who_wait_for_told(now);
  std::size_t quiet = 0;
  for (Patient* one : outlasting)
    if (one->silent && quiet++ < max_outlasting) tell(*one, now);
  const Duration pace = shortest();
  interval_ = inversions ? pace : std::min(2 * interval_, std::max(max_interval, pace));
  next_ = now + std::max<Duration>(interval_, a_look * static_cast<int>(count));
  return found_;
}

}  // namespace swapd::observe
