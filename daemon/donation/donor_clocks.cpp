// The donor's clocks: quanta of favoured providers, and lingering donations.

#include <algorithm>
#include <utility>

#include "donation/donor.h"
#include "donation/progress_monitor.h"

namespace swapd::daemon {

namespace {
// How late the CPU time of somebody whose clock does not ring is looked at again.
constexpr auto max_look = std::chrono::milliseconds(4);
constexpr auto longest_move = std::chrono::milliseconds(20);
}  // namespace

void Donor::stop_waiting(ThreadId requester) {
  waiting_.erase(requester);
  active_.erase(requester);
  forget_decision(requester);
  end_quantum(requester);
  if (const auto moved = lingering_.find(requester); moved != lingering_.end() && moved->second.moved)
    end_linger(requester);
}

// The wait is over: the donation ends, or lingers where the requester keeps coming back to the same resource, so that a
// chain of short waits is one donation (DESIGN.md section 6).
void Donor::wait_ended(ThreadId requester) {
  stop_waiting(requester);
  const auto found = deepest_.find(requester);
  if (found == deepest_.end()) return;
  const decide::Donation donation = std::move(found->second);
  deepest_.erase(found);
  if (donation.refusal != decide::Refusal::none) return;
  const bool lingers = may_linger(donation);
  RecentWaits& recent = recent_[requester];
  if (std::ranges::find(recent.resources, donation.resource) == recent.resources.end())
    recent.resources.at(recent.next++ % recent.resources.size()) = donation.resource;
  if (!lingers) return;
  // One that has hardly begun, or was broken off, takes nothing from the way that the last one opened.
  if (const auto before = lingering_.find(requester); before != lingering_.end() &&
                                                      same_wait(before->second.donation, donation) &&
                                                      before->second.donation.path.size() > donation.path.size())
    return;
  end_linger(requester);
  lingering_[requester] = {.donation = donation};  // its timer is armed if the batch does not bring the next wait
}

Duration Donor::linger(ThreadId requester) const { return settings_.rules.of(class_of(requester)).linger; }

// A requester that is lower than what it lends must not be kept waiting by it.
bool Donor::may_linger(const decide::Donation& donation) const {
  const auto recent = recent_.find(donation.requester);
  if (recent == recent_.end() || linger(donation.requester) <= Duration::zero()) return false;
  const auto& resources = recent->second.resources;
  const model::ManagedThread* member = members_.thread(donation.requester);
  return std::ranges::find(resources, donation.resource) != resources.end() && member != nullptr &&
         rank(member->base) >= rank(donation.attr);
}

void Donor::arm_lingers(Time now) {
  for (auto& [requester, lingering] : lingering_) {
    if (lingering.timer != 0 && timers_.contains(lingering.timer)) continue;
    lingering.timer = timer_for(requester, lingering.donation.path.back(), Timer::Use::linger, now);
    Timer& timer = timers_[lingering.timer];
    timer.period = std::max<Duration>(linger(requester), lingering.moved ? longest_move : Duration::zero());
    lingering.first_half = !lingering.moved && lingering.donation.path.size() > 1;
    if (lingering.first_half) timer.period /= 2;
    arm(timer, counted(timer) ? settings_.linger_wall : 2 * linger(requester), now);
  }
}

void Donor::end_linger(ThreadId requester) {
  const auto found = lingering_.find(requester);
  if (found == lingering_.end()) return;
  if (const auto timer = timers_.find(found->second.timer); timer != timers_.end()) disarm(timer->second);
  lingering_.erase(found);
}

void Donor::end_quantum(ThreadId requester) {
  const auto armed = quantum_timer_.find(requester);
  if (armed == quantum_timer_.end()) return;
  if (const auto timer = timers_.find(armed->second); timer != timers_.end()) disarm(timer->second);
  quantum_timer_.erase(armed);
}

std::uint64_t Donor::timer_for(ThreadId requester, ThreadId thread, Timer::Use use, Time now) {
  for (auto& [key, timer] : timers_)
    if (timer.requester == requester && timer.thread == thread && timer.use == use) {
      timer.last_used = now;
      return key;
    }
  if (timers_.size() >= max_timers) {
    auto oldest = timers_.end();
    for (auto it = timers_.begin(); it != timers_.end(); ++it)
      if (!it->second.on && (oldest == timers_.end() || it->second.last_used < oldest->second.last_used)) oldest = it;
    if (oldest != timers_.end()) timers_.erase(oldest);
  }
  const std::uint64_t key = next_timer_++;
  Timer& timer = timers_[key];
  timer.use = use;
  timer.requester = requester;
  timer.thread = thread;
  timer.last_used = now;
  if (observer_.counts_cpu()) return key;
  if (auto opened = sys::CpuTimer::open(thread.tid)) {
    timer.perf = std::move(opened).value();
    auto added = loop_.add(timer.perf->fd(), [this, key](const sys::EventLoop::Ready& ready) {
      timer_expired(key, ready.hung_up, ready.now);
    });
    if (added)
      timer.heard = std::move(added).value();
    else
      timer.perf.reset();
  }
  return key;
}

bool Donor::counted(const Timer& timer) const { return timer.perf || observer_.counts_cpu(); }

// Whose turn it is hangs on quanta, which are told where perf can. A linger may be a tick too long, begins and ends
// with every other message, and to set a clock of perf interrupts the CPU that the thread was on.
bool Donor::rings(const Timer& timer) { return timer.perf && timer.use == Timer::Use::quantum; }

void Donor::arm(Timer& timer, Duration wall, Time now) {
  timer.on = true;
  timer.wall_end = now + wall;
  if (rings(timer)) return timer.perf->arm(timer.period);
  if (!counted(timer)) return;
  timer.armed = now;
  timer.start = cpu_time(timer, now).value_or(Duration::zero());
  timer.used = {};
  if (timer.use == Timer::Use::quantum) observer_.time_exactly(timer.thread, true);
  timer.due = now + timer.period;
  next_due_ = std::min(timer.due, next_due_.value_or(Time::max()));
}

void Donor::disarm(Timer& timer) {
  if (!std::exchange(timer.on, false)) return;
  if (next_due_ == timer.due) next_due_ = earliest_due();
  if (rings(timer)) timer.perf->disarm();
  if (timer.use == Timer::Use::quantum) time_no_more(timer.thread);
}

void Donor::time_no_more(ThreadId thread) {
  if (!observer_.counts_cpu() || charged_.contains(thread) || timed_.contains(thread)) return;
  const auto is_timing = [&](const auto& t) {
    return t.second.thread == thread && t.second.use == Timer::Use::quantum && t.second.on;
  };
  if (std::ranges::none_of(timers_, is_timing)) observer_.time_exactly(thread, false);
}

std::optional<Duration> Donor::cpu_time(const Timer& timer, Time now) const {
  return timer.perf ? std::optional(timer.perf->used()) : observer_.cpu_time(timer.thread, now);
}

Duration Donor::used(const Timer& timer, Time now) const {
  const auto total = cpu_time(timer, now);
  return total ? *total - timer.start : timer.period;  // it is not managed any more
}

bool Donor::looked_at(const Timer& timer) const { return timer.on && counted(timer) && !rings(timer); }

std::optional<Time> Donor::earliest_due() const {
  std::optional<Time> next;
  for (const auto& [key, timer] : timers_)
    if (looked_at(timer)) next = std::min(timer.due, next.value_or(Time::max()));
  return next;
}

void Donor::run_clocks(Time now) {
  if (next_charge_ && now >= *next_charge_) charge_boosts(now);
  progress_->look(now);
  if (!next_due_ || now < *next_due_) return;
  std::vector<std::uint64_t> expired;
  for (auto& [key, timer] : timers_) {
    if (!looked_at(timer) || now < timer.due) continue;
    const Duration before = std::exchange(timer.used, used(timer, now));
    const Duration left = timer.period - timer.used;
    if (left <= Duration::zero()) expired.push_back(key);
    // One that gets no CPU is looked at less and less often.
    timer.due = now + (timer.used > before ? std::max<Duration>(left, min_look)
                                           : std::max(left, std::min<Duration>(now - timer.armed, max_look)));
  }
  for (const std::uint64_t key : expired) expire(key, now);
  next_due_ = earliest_due();
}

void Donor::drop_timers(ThreadId thread) {
  for (auto timer = timers_.begin(); timer != timers_.end();) {
    if (timer->second.thread != thread && timer->second.requester != thread) {
      ++timer;
      continue;
    }
    disarm(timer->second);
    const auto armed = quantum_timer_.find(timer->second.requester);
    if (armed != quantum_timer_.end() && armed->second == timer->first) quantum_timer_.erase(armed);
    timer = timers_.erase(timer);
  }
}

void Donor::timer_expired(std::uint64_t key, bool hung_up, Time now) {
  const auto found = timers_.find(key);
  if (found == timers_.end()) return;
  if (hung_up) {  // whoever hears of the end first; the rest follows with `Exited`
    const ThreadId waited_for_by = found->second.requester;
    const bool lingers = found->second.on && found->second.use == Timer::Use::linger;
    if (const auto armed = quantum_timer_.find(waited_for_by); armed != quantum_timer_.end() && armed->second == key)
      quantum_timer_.erase(armed);
    timers_.erase(found);
    if (lingers) end_linger(waited_for_by);
    return;
  }
  if (found->second.perf && !found->second.perf->expired()) return;
  expire(key, now);
}

void Donor::expire(std::uint64_t key, Time now) {
  const auto found = timers_.find(key);
  if (found == timers_.end()) return;
  Timer& timer = found->second;
  const ThreadId requester = timer.requester;
  if (!timer.on) return;
  if (timer.use == Timer::Use::linger) {
    linger_over(requester, now);
    return;
  }
  arm(timer, timer.period, now);
  settle_charge(timer.thread, now);
  take(QuantumUsed{.time = now, .requester = requester});
}

// Whoever has delivered and goes on keeps the one that it has woken, which has the same priority, from its CPU. Does
// that one sleep again at once, woken in vain, then the help goes on, and nobody lower got in between.
void Donor::let_the_woken_go_first(const Lingering& lingering) {
  const ThreadId requester = lingering.donation.requester;
  const auto now = std::ranges::find(current_, requester, &decide::Donation::requester);
  if (now == current_.end()) return;
  for (const ThreadId thread : lingering.donation.path) {
    const auto view = model_.thread(thread);
    if (!view || view->state == model::RunState::blocked) continue;
    if (std::ranges::find(now->path, thread) != now->path.end()) continue;
    if (const auto lent = actuator_.active(thread); lent && lent->boost.requester == requester)
      actuator_.give_way(thread);
  }
}

// The last one on the present way may be waiting again in silence, for the one whose linger is over.
void Donor::tell_of_the_last(ThreadId requester, Time now) {
  const auto donation = std::ranges::find(current_, requester, &decide::Donation::requester);
  if (donation == current_.end()) return;
  std::vector<Event> events;
  observer_.look_if_unreported(donation->path.back(), now, events);
  for (const Event& event : events) take(event);
}

// Of a chain it is half of the time. Where the requester is waiting again, in silence, it has come back to the same
// provider: what lingers goes on.
void Donor::linger_over(ThreadId requester, Time now) {
  const auto found = lingering_.find(requester);
  if (found == lingering_.end()) return;
  Lingering& lingering = found->second;
  const auto timer = timers_.find(lingering.timer);
  if (timer != timers_.end() && now < timer->second.wall_end && std::exchange(lingering.first_half, false)) {
    if (waiting_.contains(requester)) let_the_woken_go_first(lingering);
    arm(timer->second, timer->second.wall_end - now, now);
    return;
  }
  if (timer == timers_.end() || !observer_.waits_unreported(requester)) {
    end_linger(requester);
    deepest_.erase(requester);  // in a wait that goes on, the way is as long as it is now
    tell_of_the_last(requester, now);
    return;
  }
  arm(timer->second, settings_.linger_wall, now);
}

void Donor::arm_quanta(Time now) {
  for (const decide::Donation& donation : current_) {
    if (!donation.choice || donation.refusal != decide::Refusal::none) continue;
    const ThreadId favoured = donation.path.back();
    const auto armed = quantum_timer_.find(donation.requester);
    const auto running = armed == quantum_timer_.end() ? timers_.end() : timers_.find(armed->second);
    if (running != timers_.end() && running->second.thread == favoured) continue;
    end_quantum(donation.requester);
    const std::uint64_t key = timer_for(donation.requester, favoured, Timer::Use::quantum, now);
    quantum_timer_[donation.requester] = key;
    Timer& timer = timers_[key];
    timer.period = donation.quantum;
    arm(timer, donation.quantum, now);
    begin_charge(favoured, key, now);
  }
}

std::optional<Time> Donor::deadline() const {
  std::optional<Time> next = next_due_;
  for (const std::optional<Time> due : {next_charge_, actuator_.next_resume(), progress_->deadline()})
    if (due) next = std::min(*due, next.value_or(Time::max()));
  return next;
}

}  // namespace swapd::daemon
