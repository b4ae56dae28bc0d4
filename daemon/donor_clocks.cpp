// The donor's clocks: quanta of favoured providers, lingering donations, and the CPU time that counts against the
// ceiling.
#include <sys/epoll.h>

#include <algorithm>

#include "donor.h"

namespace swapd::daemon {

namespace {
constexpr std::size_t most_timers = 128;  // idle ones are dropped past this
}  // namespace

// The wait is over: the donation ends, or lingers where the requester keeps coming back to the same resource, so that a
// chain of short waits is one donation (DESIGN.md section 6). A requester that is lower than what it lends must not be
// kept waiting by it.
void Donor::wait_ended(ThreadId requester) {
  waiting_.erase(requester);
  active_.erase(requester);
  forget_decision(requester);
  if (const auto timer = quantum_timer_.find(requester); timer != quantum_timer_.end()) {
    if (const auto t = timers_.find(timer->second); t != timers_.end()) {
      t->second.use = Timer::Use::idle;
      if (t->second.perf) t->second.perf->disarm();
    }
    quantum_timer_.erase(timer);
  }
  const auto found = deepest_.find(requester);
  if (found == deepest_.end()) return;
  const decide::Donation donation = std::move(found->second);
  deepest_.erase(found);
  if (donation.refusal != decide::Refusal::none) return;
  RecentWaits& recent = recent_[requester];
  const bool again = std::ranges::find(recent.resources, donation.resource) != recent.resources.end();
  if (!again) recent.resources.at(recent.next++ % recent.resources.size()) = donation.resource;
  const MemberThread* member = members_.thread(requester);
  if (!again || member == nullptr || settings_.rules.linger <= Duration::zero()) return;
  if (rank(member->base) < rank(donation.attr)) return;
  end_linger(requester);
  lingering_[requester] = {.donation =
                               donation};  // its timer is armed if the batch does not bring the next wait already
}

void Donor::arm_lingers(Time now) {
  for (auto& [requester, lingering] : lingering_) {
    if (lingering.timer != 0 && timers_.contains(lingering.timer)) continue;
    lingering.timer = timer_for(requester, lingering.donation.path.back(), now);
    Timer& timer = timers_[lingering.timer];
    timer.use = Timer::Use::linger;
    timer.period = settings_.rules.linger;
    if (timer.perf) timer.perf->arm(timer.period);
    timer.wall_end = now + (timer.perf ? settings_.linger_wall : 2 * settings_.rules.linger);
  }
}

void Donor::end_linger(ThreadId requester) {
  const auto found = lingering_.find(requester);
  if (found == lingering_.end()) return;
  if (const auto timer = timers_.find(found->second.timer); timer != timers_.end()) {
    timer->second.use = Timer::Use::idle;
    if (timer->second.perf) timer->second.perf->disarm();
  }
  lingering_.erase(found);
}

std::uint64_t Donor::timer_for(ThreadId requester, ThreadId thread, Time now) {
  for (auto& [key, timer] : timers_)
    if (timer.requester == requester && timer.thread == thread) {
      timer.last_used = now;
      return key;
    }
  if (timers_.size() >= most_timers) {
    auto oldest = timers_.end();
    for (auto it = timers_.begin(); it != timers_.end(); ++it)
      if (it->second.use == Timer::Use::idle &&
          (oldest == timers_.end() || it->second.last_used < oldest->second.last_used))
        oldest = it;
    if (oldest != timers_.end()) timers_.erase(oldest);
  }
  const std::uint64_t key = next_timer_++;
  Timer& timer = timers_[key];
  timer.requester = requester;
  timer.thread = thread;
  timer.last_used = now;
  if (auto opened = sys::CpuTimer::open(thread.tid)) {
    timer.perf = std::move(opened).value();
    epoll_event event{.events = EPOLLIN, .data = {.u64 = key}};
    if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, timer.perf->fd(), &event) != 0) timer.perf.reset();
  }
  return key;
}

void Donor::drop_timers(ThreadId thread) {
  std::erase_if(timers_, [&](const auto& t) { return t.second.thread == thread || t.second.requester == thread; });
}

void Donor::timer_expired(std::uint64_t key, bool hung_up, Time now) {
  const auto found = timers_.find(key);
  if (found == timers_.end()) return;
  if (hung_up) {  // whoever hears of the end first; the rest follows with `Exited`
    const ThreadId waited_for_by = found->second.requester;
    const bool lingers = found->second.use == Timer::Use::linger;
    if (const auto armed = quantum_timer_.find(waited_for_by); armed != quantum_timer_.end() && armed->second == key)
      quantum_timer_.erase(armed);
    timers_.erase(found);
    if (lingers) end_linger(waited_for_by);
    return;
  }
  Timer& timer = found->second;
  if (timer.perf && !timer.perf->expired()) return;
  const ThreadId requester = timer.requester;
  switch (timer.use) {
    case Timer::Use::idle:
      break;
    case Timer::Use::quantum:
      if (timer.perf) timer.perf->arm(timer.period);
      timer.wall_end = now + timer.period;
      take(QuantumUsed{.time = now, .requester = requester});
      break;
    case Timer::Use::linger:
      linger_over(requester, now);
      break;
  }
}

// Where the requester is waiting again, in silence, it has come back to the same provider: what lingers goes on.
void Donor::linger_over(ThreadId requester, Time now) {
  const auto found = lingering_.find(requester);
  if (found == lingering_.end()) return;
  const auto timer = timers_.find(found->second.timer);
  if (timer == timers_.end() || !observer_.waits_silently(requester)) {
    end_linger(requester);
    return;
  }
  if (timer->second.perf) timer->second.perf->arm(timer->second.period);
  timer->second.wall_end = now + settings_.linger_wall;
}

void Donor::arm_quanta(Time now) {
  for (const decide::Donation& donation : current_) {
    if (!donation.choice || donation.refusal != decide::Refusal::none) continue;
    const std::uint64_t key = timer_for(donation.requester, donation.path.back(), now);
    const auto armed = quantum_timer_.find(donation.requester);
    if (armed != quantum_timer_.end() && armed->second == key) continue;
    if (armed != quantum_timer_.end())
      if (const auto old = timers_.find(armed->second); old != timers_.end()) {
        old->second.use = Timer::Use::idle;
        if (old->second.perf) old->second.perf->disarm();
      }
    quantum_timer_[donation.requester] = key;
    Timer& timer = timers_[key];
    timer.use = Timer::Use::quantum;
    timer.period = donation.quantum;
    timer.wall_end = now + donation.quantum;
    if (timer.perf) timer.perf->arm(donation.quantum);
  }
}

// What each boosted thread has used since the last tick counts against the policy's ceiling.
void Donor::charge_boosts(Time now) {
  if (!settings_.ceiling) return;
  const auto active = actuator_.active();
  std::erase_if(charged_, [&](const auto& c) {
    return std::ranges::none_of(active, [&](const auto& a) { return a.boost.thread == c.first; });
  });
  for (const auto& a : active) {
    Charged& charged = charged_[a.boost.thread];
    if (!charged.clock) {
      if (auto opened = sys::CpuTimer::open(a.boost.thread.tid)) charged.clock = std::move(opened).value();
      continue;
    }
    const Duration used = charged.clock->used();
    actuator_.charge(a.boost.thread, used - charged.seen, now);
    charged.seen = used;
  }
}

}  // namespace swapd::daemon
