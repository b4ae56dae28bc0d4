// What is lent for a user's waiters, for the user's quota.
#include "donation/donor.h"

namespace swapd::daemon {

// Quotas are for the others' sake: who is alone has none, and neither has root.
std::uint32_t Donor::charged_user(ThreadId requester) const {
  if (!settings_.quota || members_.users() < 2) return 0;
  const model::ManagedThread* member = members_.thread(requester);
  const model::ManagedProcess* process = member == nullptr ? nullptr : members_.process(member->tgid);
  return process == nullptr ? 0 : process->uid;
}

// From a loan's begin to its end, however short it is; in between the ticks charge.
void Donor::follow_user_loans(const std::vector<actuate::Boost>& boosts, Time now) {
  ++user_rounds_;
  for (const actuate::Boost& boost : boosts) {
    if (boost.user == 0) continue;
    const auto [place, is_new] = user_loans_.try_emplace(boost.thread);
    UserBoost& loan = place->second;
    if (is_new)
      loan = {.user = boost.user, .seen = lent_cpu_time(boost.thread, now), .looked = now};
    else if (loan.user != boost.user)
      charge(boost.thread, loan, now);
    loan.user = boost.user;
    loan.round = user_rounds_;
  }
  for (auto it = user_loans_.begin(); it != user_loans_.end();) {
    if (it->second.round == user_rounds_) {
      ++it;
      continue;
    }
    charge(it->first, it->second, now);
    it = user_loans_.erase(it);
  }
}

std::optional<Duration> Donor::lent_cpu_time(ThreadId thread, Time now) const {
  if (observer_.counts_cpu()) return observer_.cpu_time(thread, now);
  const auto used = procfs_.cpu_time(thread.tid);
  return used ? std::optional(*used) : std::nullopt;
}

void Donor::charge_user_loans(Time now) {
  for (auto& [thread, loan] : user_loans_) charge(thread, loan, now);
}

// Of a thread that has ended meanwhile nothing is known but the time.
void Donor::charge(ThreadId thread, UserBoost& loan, Time now) {
  const auto used = lent_cpu_time(thread, now);
  actuator_.charge_user(loan.user, used && loan.seen ? *used - *loan.seen : now - loan.looked, now);
  loan.seen = used;
  loan.looked = now;
}

}  // namespace swapd::daemon
