// The CPU time that counts against the ceiling.
#include <algorithm>
#include <iterator>
#include <utility>

#include "donation/donor.h"

namespace swapd::daemon {

namespace {
// How long a boosted thread that can run may have none of the clocks that perf gives.
constexpr auto max_uncharged = std::chrono::milliseconds(20);
}  // namespace

// What a thread with a real-time donation uses counts against the policy's ceiling, and at the ceiling it rests until
// the window ends: so that ordinary tasks get their share of the CPU in small pieces. Without, the kernel takes it for
// them in one piece: 50 ms of each second by the fair server (or, before Linux 6.12, by throttling all real-time
// tasks).
void Donor::charge_boosts(Time now) {
  next_charge_.reset();
  if (!settings_.ceiling) return;
  ++charges_;
  for (const auto& a : actuator_.active()) {
    if (!a.lent.realtime()) continue;
    Charged& charged = charged_.try_emplace(a.boost.thread, Charged{.since = now}).first->second;
    charged.round = charges_;
    // Where it cannot be told, the next tick looks again.
    if (const auto left = charge(charged, a.boost, now))
      next_charge_ = std::min(now + *left, next_charge_.value_or(Time::max()));
  }
  for (auto at = charged_.begin(); at != charged_.end();)
    at = at->second.round == charges_ ? std::next(at) : end_charge(at);
  for (auto at = timed_.begin(); at != timed_.end();) {
    const ThreadId thread = *at;
    at = charged_.contains(thread) ? std::next(at) : timed_.erase(at);
    if (!charged_.contains(thread)) time_no_more(thread);
  }
}

Donor::ChargedThreads::iterator Donor::end_charge(ChargedThreads::iterator at) {
  const ThreadId thread = at->first;
  const auto next = charged_.erase(at);
  time_no_more(thread);
  return next;
}

// Those that are about to be lent to. What the kernel says of a thread that has a CPU is as of its own last tick, up to
// 10 ms ago, and a rest would be shorter by that. A switch is timed only where that was asked for before it, so it goes
// on to the next tick, in case they are lent to again.
void Donor::time_loans(const std::unordered_map<ThreadId, actuate::Boost>& loans) {
  if (!settings_.ceiling || !observer_.counts_cpu()) return;
  for (const auto& [thread, boost] : loans)
    if (boost.attr.realtime() && timed_.insert(thread).second) observer_.time_exactly(thread, true);
}

// What those have used that are lent to no more, or for another waiter; `kept` has the loans from now on. Who rests is
// not charged, and begins anew. (With clocks of perf each look is a system call: there the next tick does it.)
void Donor::settle_charges(const std::unordered_map<ThreadId, actuate::Boost>& kept, Time now) {
  if (!observer_.counts_cpu()) return;
  for (auto at = charged_.begin(); at != charged_.end();) {
    const auto found = kept.find(at->first);
    const auto lent = actuator_.active(at->first);
    const bool rests = lent && (lent->boost.withheld || lent->reason == actuate::Ineffective::ceiling ||
                                lent->reason == actuate::Ineffective::quota);
    const bool goes_on = found != kept.end() && found->second.attr.realtime() && lent && !rests &&
                         lent->boost.requester == found->second.requester;
    const auto used = goes_on || !lent || !at->second.seen ? std::nullopt : observer_.cpu_time(at->first, now);
    if (used) actuator_.charge_last(at->first, *used - *at->second.seen, now);
    at = goes_on ? std::next(at) : end_charge(at);
  }
}

// What is used from now on counts, also where the next tick comes after the end.
void Donor::begin_charges(const std::unordered_map<ThreadId, actuate::Boost>& loans, Time now) {
  if (!settings_.ceiling || !observer_.counts_cpu()) return;
  for (const auto& [thread, boost] : loans) {
    if (!boost.attr.realtime() || charged_.contains(thread)) continue;
    const auto lent = actuator_.active(thread);
    if (!lent || !lent->lent.realtime()) continue;
    Charged& charged = charged_[thread] = {.since = now, .round = charges_};
    if (const auto left = charge(charged, lent->boost, now))
      next_charge_ = std::min(now + *left, next_charge_.value_or(Time::max()));
  }
}

// Where several take turns at it, each for T, what each has used is known to the end of its turn.
void Donor::begin_charge(ThreadId thread, std::uint64_t clock, Time now) {
  if (!settings_.ceiling || charged_.contains(thread)) return;
  const Timer& timer = timers_.at(clock);
  const auto used = cpu_time(timer, now);
  if (used) charged_[thread] = {.since = now, .clock = timer.perf ? clock : 0, .seen = used};
}

void Donor::settle_charge(ThreadId thread, Time now) {
  const auto charged = charged_.find(thread);
  const auto lent = charged == charged_.end() ? std::nullopt : actuator_.active(thread);
  if (lent) (void)charge(charged->second, lent->boost, now);
}

// How much more it may use, where it can be told.
std::optional<Duration> Donor::charge(Charged& charged, const actuate::Boost& boost, Time now) {
  std::optional<Duration> used;
  if (observer_.counts_cpu()) {
    used = observer_.cpu_time(boost.thread, now);
  } else {
    auto clock = timers_.find(charged.clock);
    if (clock == timers_.end() || !clock->second.perf) {
      charged.seen.reset();
      charged.clock = clock_of(boost.thread);
      // Most that are boosted have a clock, or are blocked.
      const auto view = model_.thread(boost.thread);
      if (charged.clock == 0 && now - charged.since >= max_uncharged && timers_.size() < max_timers && view &&
          view->state != model::RunState::blocked)
        charged.clock = timer_for(boost.requester, boost.thread, Timer::Use::quantum, now);
      clock = timers_.find(charged.clock);
    }
    if (clock != timers_.end() && clock->second.perf) {
      clock->second.last_used = now;
      used = clock->second.perf->used();
    }
  }
  std::optional<Duration> left;
  if (used) left = actuator_.charge(boost.thread, *used - charged.seen.value_or(*used), now);
  if (used) charged.seen = used;
  if (left) left = std::max<Duration>(*left, min_look);
  return left;
}

std::uint64_t Donor::clock_of(ThreadId thread) const {
  for (const auto& [key, timer] : timers_)
    if (timer.thread == thread && timer.perf) return key;
  return 0;
}

}  // namespace swapd::daemon
