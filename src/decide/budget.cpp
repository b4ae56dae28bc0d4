#include "decide/budget.h"

#include <algorithm>
#include <utility>

namespace swapd::decide {

bool BudgetConfig::limits_requesters() const {
  const auto limits = [](const Ceiling& one) { return one.share < 1; };
  return limits(ceiling) || std::ranges::any_of(classes, limits);
}

CpuBudgets::CpuBudgets(BudgetConfig config) { set_config(std::move(config)); }

void CpuBudgets::set_config(BudgetConfig config) {
  config_ = std::move(config);
  longest_window_ = std::max(config_.ceiling.window, config_.user_window);
  for (const BudgetConfig::Ceiling& one : config_.classes) longest_window_ = std::max(longest_window_, one.window);
  restored();
}

void CpuBudgets::restored() {
  const auto may_last = [this](const auto& uses) {
    for (const auto& [who, use] : uses)
      if (use.since != never) rest_until_ = std::max(rest_until_, use.since + longest_window_);
  };
  may_last(requesters_);
  may_last(users_);
}

CpuBudgets::Limit CpuBudgets::limit_of(ClassId requester_class) const {
  const BudgetConfig::Ceiling& ceiling = config_.of(requester_class);
  if (ceiling.share >= 1) return {};
  return {std::chrono::duration_cast<Duration>(ceiling.window * ceiling.share), ceiling.window};
}

// A thread uses no more CPU time than there was: its window began that long ago at the latest.
void CpuBudgets::add(Use& use, const Limit& limit, Duration cpu, Time now) {
  if (use.since == never) use.since = now - cpu;
  if (now - use.since >= limit.window) use = {std::max(use.since + limit.window, now - cpu), Duration{}};
  use.cpu += cpu;
  if (use.cpu >= limit.max) rest_until_ = std::max(rest_until_, use.since + limit.window);
}

std::optional<Time> CpuBudgets::rests(const Use& use, const Limit& limit, Time now) {
  if (now - use.since >= limit.window || use.cpu < limit.max) return std::nullopt;
  return use.since + limit.window;
}

std::optional<Duration> CpuBudgets::use(ThreadId requester, ClassId requester_class, Duration cpu, Time now) {
  const Limit limit = limit_of(requester_class);
  if (limit.max <= Duration::zero()) return std::nullopt;
  if (requesters_.size() >= max_uses)
    std::erase_if(requesters_, [&](const auto& one) { return now - one.second.since >= longest_window_; });
  Use& use = requesters_[requester];
  add(use, limit, cpu, now);
  return limit.max - use.cpu;
}

void CpuBudgets::use(std::uint32_t user, Duration cpu, Time now) {
  const Limit limit = user_limit();
  if (user == 0 || limit.max <= Duration::zero()) return;
  if (users_.size() >= max_uses)
    std::erase_if(users_, [&](const auto& one) { return now - one.second.since >= longest_window_; });
  add(users_[user], limit, cpu, now);
}

std::optional<Time> CpuBudgets::rests_until(ThreadId requester, ClassId requester_class, Time now) const {
  const Limit limit = limit_of(requester_class);
  const auto use = requesters_.find(requester);
  if (limit.max <= Duration::zero() || use == requesters_.end()) return std::nullopt;
  return rests(use->second, limit, now);
}

std::optional<Time> CpuBudgets::rests_until(std::uint32_t user, Time now) const {
  const Limit limit = user_limit();
  const auto use = users_.find(user);
  if (limit.max <= Duration::zero() || use == users_.end()) return std::nullopt;
  return rests(use->second, limit, now);
}

std::optional<Duration> CpuBudgets::use(const BudgetUsed& used) {
  if (used.requester.valid()) return use(used.requester, used.requester_class, used.cpu, used.time);
  use(used.user, used.cpu, used.time);
  return std::nullopt;
}

void CpuBudgets::forget(ThreadId requester) { requesters_.erase(requester); }

}  // namespace swapd::decide
