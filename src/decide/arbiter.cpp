#include "decide/arbiter.h"

#include <algorithm>
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
  next_resume_.reset();
  // In the order of the demands: the first of equals holds.
  for (const Plan& plan : plans)
    for (const Demand& demand : plan.demands)
      if (const auto* run = std::get_if<RunAs>(&demand)) grants_.push_back(weigh(*run, now));
  std::ranges::stable_sort(grants_, {}, [](const Grant& grant) { return grant.run.thread; });
  auto kept = grants_.begin();
  for (auto at = grants_.begin(); at != grants_.end(); ++at) {
    if (at == grants_.begin()) continue;
    if (at->run.thread != kept->run.thread) {
      *++kept = *at;
      continue;
    }
    if (const auto why = better(*at, *kept)) {
      overruled_.push_back({kept->run.thread, kept->run.cause, at->run.cause, *why});
      *kept = *at;
    } else {
      const auto lost = better(*kept, *at);
      overruled_.push_back({at->run.thread, at->run.cause, kept->run.cause, lost.value_or(Overruled::Why::rank)});
    }
  }
  if (!grants_.empty()) grants_.erase(kept + 1, grants_.end());
  for (const Grant& grant : grants_) {
    if (!rests(grant) || grant.run.withheld) continue;
    const Time until = std::max(grant.run.attr.realtime() ? grant.ceiling_until.value_or(Time::min()) : Time::min(),
                                grant.quota_until.value_or(Time::min()));
    next_resume_ = std::min(until, next_resume_.value_or(Time::max()));
  }
  return grants_;
}

}  // namespace swapd::decide
