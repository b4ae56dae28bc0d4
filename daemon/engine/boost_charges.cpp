#include "engine/boost_charges.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace swapd::daemon {

namespace {
// How long a boosted thread that can run may have none of the clocks that perf gives.
constexpr auto max_uncharged = std::chrono::milliseconds(20);

decide::BudgetUsed requester_used(const actuate::Boost& boost, Duration cpu, Time now) {
  return {.time = now, .requester = boost.requester, .requester_class = boost.requester_class, .user = 0, .cpu = cpu};
}
}  // namespace

BoostCharges::BoostCharges(const decide::BudgetConfig& config, Charge charge, const actuate::Actuator& actuator,
                           const observe::Observer& observer, const model::Model& model, const sys::Procfs& procfs,
                           ExactTiming& exact)
    : config_(config),
      charge_(std::move(charge)),
      actuator_(actuator),
      observer_(observer),
      model_(model),
      procfs_(procfs),
      exact_(exact) {}

void BoostCharges::note_left(std::optional<Duration> left, Time now) {
  if (left) next_ = std::min(now + std::max(*left, CpuClocks::min_look), next_.value_or(Time::max()));
}

void BoostCharges::charge(Time now) {
  next_.reset();
  if (!config_.limits_requesters()) return;
  ++round_;
  for (const auto& active : actuator_.realtime()) {
    Charged& charged = charged_.try_emplace(active.boost.thread, Charged{.since = now}).first->second;
    charged.round = round_;
    note_left(charge(charged, active, now), now);  // where it cannot be told, the next tick looks again
  }
  std::erase_if(charged_, [&](const auto& one) { return one.second.round != round_; });
  // A switch is timed only where that was asked for before it, so exact timing goes on until the next tick, in case the
  // thread is boosted again.
  std::erase_if(timed_, [&](ThreadId thread) {
    if (charged_.contains(thread)) return false;
    exact_.remove(thread);
    return true;
  });
}

// How much more it may use, where that can be told.
std::optional<Duration> BoostCharges::charge(Charged& charged, const actuate::Actuator::Active& active, Time now) {
  const ThreadId thread = active.boost.thread;
  if (!clocks_->has_clock(thread)) {
    charged.seen.reset();
    // Most that are boosted have a clock, or are blocked.
    const auto view = model_.thread(thread);
    if (now - charged.since >= max_uncharged && view && view->state != model::RunState::blocked)
      (void)clocks_->open_clock(active.boost.requester, thread, now);
  }
  const auto used = clocks_->cpu_time(thread, now);
  if (!used) return std::nullopt;
  const bool same = charged.seen && charged.seen->clock == used->clock;
  const Duration since = same ? used->used - charged.seen->used : Duration::zero();
  const auto left = charge_(requester_used(active.boost, since, now));
  charged.seen = used;
  return left;
}

// Charges threads that are boosted no more, or for another requester. A throttled boost is not charged, and begins
// anew. (With clocks of perf each look is a system call: there the next tick does it.)
void BoostCharges::before_apply(std::span<const decide::Grant> grants, Time now) {
  if (observer_.counts_cpu()) {
    for (auto at = charged_.begin(); at != charged_.end();) {
      const decide::Grant* kept = decide::find(grants, at->first);
      const auto active = actuator_.active(at->first);
      const bool goes_on = kept != nullptr && kept->run.attr.realtime() && active && active->in_force &&
                           active->boost.requester == kept->run.cause.on_behalf_of;
      if (goes_on) {
        ++at;
        continue;
      }
      const auto used =
          active && active->in_force && at->second.seen ? observer_.cpu_time(at->first, now) : std::nullopt;
      if (used && active->lent.realtime())
        (void)charge_(requester_used(active->boost, *used - at->second.seen->used, now));
      at = charged_.erase(at);
    }
  }
  if (!config_.limits_requesters() || !observer_.counts_cpu()) return;
  // The kernel's figure for a thread that has a CPU is as of its own last tick, up to 10 ms ago, and a rest would be
  // shorter by that.
  for (const decide::Grant& grant : grants)
    if (grant.run.attr.realtime() && !grant.run.quiet && timed_.insert(grant.run.thread).second)
      exact_.add(grant.run.thread);
}

// CPU time counts from now on, also if the next tick comes after the end.
void BoostCharges::after_apply(std::span<const decide::Grant> grants, Time now) {
  if (config_.limits_requesters() && observer_.counts_cpu()) {
    for (const decide::Grant& grant : grants) {
      const ThreadId thread = grant.run.thread;
      if (!grant.run.attr.realtime() || grant.run.quiet || charged_.contains(thread)) continue;
      const auto active = actuator_.active(thread);
      if (!active || !active->in_force || !active->lent.realtime()) continue;
      Charged& charged = charged_[thread] = {.since = now, .seen = {}, .round = round_};
      note_left(charge(charged, *active, now), now);
    }
  }
  if (!config_.limits_users()) return;
  ++user_round_;
  for (const decide::Grant& grant : grants) {
    const std::uint32_t user = grant.run.payer.user;
    if (user == 0) continue;
    const auto [place, is_new] = users_.try_emplace(grant.run.thread);
    UserBoost& boost = place->second;
    if (is_new)
      boost = {.user = user, .seen = user_cpu_time(grant.run.thread, now), .looked = now};
    else if (boost.user != user)
      charge(grant.run.thread, boost, now);
    boost.user = user;
    boost.round = user_round_;
  }
  for (auto at = users_.begin(); at != users_.end();) {
    const bool ended = at->second.round != user_round_;
    if (ended) charge(at->first, at->second, now);
    at = ended ? users_.erase(at) : std::next(at);
  }
}

// If several take turns, each for a quantum, the use of each is known to the end of its turn.
void BoostCharges::quantum_begins(ThreadId thread, Time now) {
  if (!config_.limits_requesters() || charged_.contains(thread)) return;
  if (const auto used = clocks_->cpu_time(thread, now)) charged_[thread] = {.since = now, .seen = used};
}

void BoostCharges::quantum_ends(ThreadId thread, Time now) {
  const auto charged = charged_.find(thread);
  if (charged == charged_.end()) return;
  if (const auto active = actuator_.active(thread); active && active->in_force && active->lent.realtime())
    (void)charge(charged->second, *active, now);
}

std::optional<Duration> BoostCharges::user_cpu_time(ThreadId thread, Time now) const {
  if (observer_.counts_cpu()) return observer_.cpu_time(thread, now);
  const auto used = procfs_.cpu_time(thread.tid);
  return used ? std::optional<Duration>(*used) : std::nullopt;
}

// For a thread that has ended meanwhile only the time is known.
void BoostCharges::charge(ThreadId thread, UserBoost& boost, Time now) {
  const auto used = user_cpu_time(thread, now);
  (void)charge_({.time = now,
                 .requester = {},
                 .requester_class = 0,
                 .user = boost.user,
                 .cpu = used && boost.seen ? *used - *boost.seen : now - boost.looked});
  boost.seen = used;
  boost.looked = now;
}

void BoostCharges::charge_users(Time now) {
  for (auto& [thread, boost] : users_) charge(thread, boost, now);
}

void BoostCharges::forget(ThreadId thread) {
  charged_.erase(thread);
  if (timed_.erase(thread) != 0) exact_.remove(thread);
}

}  // namespace swapd::daemon
