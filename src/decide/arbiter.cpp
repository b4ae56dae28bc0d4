#include "decide/arbiter.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace swapd::decide {

Grant Arbiter::weigh(const RunAs& run, Time now) const {
  return {.run = run,
          .ceiling_until = budgets_.rests_until(run.cause.on_behalf_of, run.payer.requester_class, now),
          .quota_until = run.payer.user == 0 ? std::nullopt : budgets_.rests_until(run.payer.user, now)};
}

bool Arbiter::rests(const Grant& grant) {
  return grant.run.withheld || (grant.run.attr.realtime() && grant.ceiling_until) || grant.quota_until;
}

std::optional<Overruled::Why> Arbiter::better(const Grant& one, const Grant& other) {
  using Why = Overruled::Why;
  // A slice is no reason to keep a thread at the rank that another decider lowers.
  if (one.run.lowers != other.run.lowers && (one.run.slice_only || other.run.slice_only))
    return one.run.lowers ? std::optional(Why::rank) : std::nullopt;
  if (rests(one) != rests(other)) return rests(other) ? std::optional(Why::rests) : std::nullopt;
  if (rank(one.run.attr) != rank(other.run.attr))
    return rank(one.run.attr) > rank(other.run.attr) ? std::optional(Why::rank) : std::nullopt;
  const auto second = [](const Grant& grant) { return grant.run.second_best ? rank(*grant.run.second_best) : -1; };
  if (one.run.second_best && other.run.second_best && second(one) > second(other)) return Why::second_best;
  return std::nullopt;
}

std::span<const Grant> Arbiter::merge(std::span<const Plan> plans, Time now) {
  grants_.clear();
  overruled_.clear();
  weighed_.clear();
  next_resume_.reset();
  // In the order of the demands: the first of equals holds.
  for (const Plan& plan : plans)
    for (const Demand& demand : plan.demands)
      if (const auto* run = std::get_if<RunAs>(&demand)) weighed_.push_back(weigh(*run, now));
  order_.resize(weighed_.size());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  // (A stable sort would take memory.)
  std::ranges::sort(order_, {}, [&](std::size_t place) { return std::pair(weighed_[place].run.thread, place); });
  for (const std::size_t place : order_) {
    const Grant& one = weighed_[place];
    if (grants_.empty() || grants_.back().run.thread != one.run.thread) {
      grants_.push_back(one);
      continue;
    }
    Grant& kept = grants_.back();
    if (const auto why = better(one, kept)) {
      overruled_.push_back({kept.run.thread, kept.run.cause, one.run.cause, *why});
      kept = one;
    } else {
      const auto lost = better(kept, one);
      overruled_.push_back({one.run.thread, one.run.cause, kept.run.cause, lost.value_or(Overruled::Why::rank)});
    }
  }
  for (const Grant& grant : grants_) {
    if (!rests(grant) || grant.run.withheld) continue;
    const Time until = std::max(grant.run.attr.realtime() ? grant.ceiling_until.value_or(Time::min()) : Time::min(),
                                grant.quota_until.value_or(Time::min()));
    next_resume_ = std::min(until, next_resume_.value_or(Time::max()));
  }
  return grants_;
}

}  // namespace swapd::decide
