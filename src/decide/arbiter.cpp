#include "decide/arbiter.h"

#include <algorithm>
#include <utility>

#include "decide/lasting_demands.h"

namespace swapd::decide {

namespace {
constexpr std::size_t usual_claims = 64;
}  // namespace

const Grant* find(std::span<const Grant> grants, ThreadId thread) {
  const auto found = std::ranges::lower_bound(grants, thread, {}, [](const Grant& grant) { return grant.run.thread; });
  return found == grants.end() || found->run.thread != thread ? nullptr : &*found;
}

Grant Arbiter::weigh(const RunAs& run, Time now) const {
  return {.run = run,
          .ceiling_until = budgets_.rests_until(run.cause.on_behalf_of, run.payer.requester_class, now),
          .quota_until = run.payer.user == 0 ? std::nullopt : budgets_.rests_until(run.payer.user, now)};
}

bool Arbiter::rests(const Grant& grant) {
  return grant.run.withheld || (grant.run.attr.realtime() && grant.ceiling_until) || grant.quota_until;
}

bool Arbiter::better(const Grant& one, const Grant& other) {
  // A slice is no reason to keep a thread at the rank that another decider lowers.
  if (one.run.lowers != other.run.lowers && (one.run.slice_only || other.run.slice_only)) return one.run.lowers;
  if (rests(one) != rests(other)) return rests(other);
  if (rank(one.run.attr) != rank(other.run.attr)) return rank(one.run.attr) > rank(other.run.attr);
  const auto second = [](const Grant& grant) { return grant.run.second_best ? rank(*grant.run.second_best) : -1; };
  return one.run.second_best && other.run.second_best && second(one) > second(other);
}

void Arbiter::find_claims(std::span<const Plan> plans) {
  claims_.clear();
  for (std::size_t plan = 0; plan < plans.size(); ++plan)
    for (const Demand& demand : plans[plan].demands)
      if (const auto* run = std::get_if<RunAs>(&demand)) claims_.push_back({run->thread, plan, claims_.size(), run});
  // (A stable sort would take memory.)
  std::ranges::sort(claims_, {}, [](const Claim& claim) { return std::pair(claim.thread, claim.place); });
}

void Arbiter::find_touched(std::span<const Plan> plans, bool all) {
  touched_.clear();
  touched_.reserve(usual_claims);  // it may be one more than ever before in any merge
  claimed_.reserve(usual_claims);
  for (const Claim& claim : claims_) touched_.push_back(claim.thread);
  const std::size_t claimed = touched_.size();
  touched_.insert(touched_.end(), claimed_.begin(), claimed_.end());
  claimed_.assign(touched_.begin(), touched_.begin() + static_cast<std::ptrdiff_t>(claimed));
  if (all)
    for (const Grant& grant : grants_) touched_.push_back(grant.run.thread);
  for (const Plan& plan : plans) {
    if (plan.lasting == nullptr) continue;
    const auto changed = plan.lasting->changed();
    touched_.insert(touched_.end(), changed.begin(), changed.end());
    if (all)
      for (const RunAs& run : plan.lasting->all()) touched_.push_back(run.thread);
  }
  std::ranges::sort(touched_);
  touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
}

void Arbiter::weigh_in(std::optional<Grant>& kept, const RunAs& run, Time now) {
  const Grant one = weigh(run, now);
  if (!kept || better(one, *kept)) kept = one;
}

// In the order of the demands: the first of equals holds.
std::optional<Grant> Arbiter::fold(ThreadId thread, std::span<const Plan> plans, Time now) {
  std::optional<Grant> kept;
  auto claim = std::ranges::lower_bound(claims_, thread, {}, &Claim::thread);
  const auto is_of = [&](std::size_t plan) {
    return claim != claims_.end() && claim->thread == thread && claim->plan == plan;
  };
  for (std::size_t plan = 0; plan < plans.size(); ++plan) {
    for (; is_of(plan); ++claim) weigh_in(kept, *claim->run, now);
    if (plans[plan].lasting == nullptr) continue;
    for (const RunAs& run : plans[plan].lasting->of(thread)) weigh_in(kept, run, now);
  }
  return kept;
}

std::span<const Grant> Arbiter::merge(std::span<const Plan> plans, Time now) {
  next_resume_.reset();
  find_claims(plans);
  const bool rests_now = budgets_.may_rest(now);
  const bool rested = std::exchange(rested_, rests_now);
  find_touched(plans, std::exchange(anew_, false) || rests_now || rested);
  merged_.clear();
  auto before = grants_.cbegin();
  for (const ThreadId thread : touched_) {
    for (; before != grants_.cend() && before->run.thread < thread; ++before) merged_.push_back(*before);
    if (before != grants_.cend() && before->run.thread == thread) ++before;
    if (const auto grant = fold(thread, plans, now)) merged_.push_back(*grant);
  }
  merged_.insert(merged_.end(), before, grants_.cend());
  std::swap(grants_, merged_);
  if (!rests_now) return grants_;
  for (const Grant& grant : grants_) {
    if (!rests(grant) || grant.run.withheld) continue;
    const Time until = std::max(grant.run.attr.realtime() ? grant.ceiling_until.value_or(Time::min()) : Time::min(),
                                grant.quota_until.value_or(Time::min()));
    next_resume_ = std::min(until, next_resume_.value_or(Time::max()));
  }
  return grants_;
}

}  // namespace swapd::decide
