#include "decide/shaping/held_threads.h"

namespace swapd::decide {

HeldThreads::Favoured HeldThreads::favour(pid_t tid, bool favoured) {
  if (!favoured) {
    favoured_.erase(tid);
    return {};
  }
  favoured_.insert(tid);
  return {.held = held_.contains(tid), .frozen = frozen_.contains(tid)};
}

void HeldThreads::hold(const std::shared_ptr<const PendingCall>& call) {
  held_[call->tid] = call;
  ++total_;
}

void HeldThreads::end(const PendingCall& call) {
  const auto found = held_.find(call.tid);
  if (found != held_.end() && found->second.get() == &call) held_.erase(found);
}

void HeldThreads::freeze(std::span<const pid_t> threads, const Frozen& frozen) {
  for (const pid_t tid : threads) frozen_[tid] = frozen;
}

void HeldThreads::thaw(std::span<const pid_t> threads) {
  for (const pid_t tid : threads) frozen_.erase(tid);
}

bool HeldThreads::would_run(pid_t tid) const {
  if (const auto held = held_.find(tid); held != held_.end() && !held->second->favoured_wait) return true;
  const auto frozen = frozen_.find(tid);
  return frozen != frozen_.end() && !frozen->second.favoured_wait;
}

std::vector<std::pair<pid_t, Time>> HeldThreads::would_run() const {
  std::vector<std::pair<pid_t, Time>> out;
  for (const auto& [tid, call] : held_)
    if (!call->favoured_wait) out.emplace_back(tid, call->since);
  for (const auto& [tid, frozen] : frozen_)
    if (!frozen.favoured_wait) out.emplace_back(tid, frozen.since);
  return out;
}

std::unordered_map<pid_t, HeldThreads::Delay> HeldThreads::delays() const {
  std::unordered_map<pid_t, Delay> out;
  for (const auto& [tid, call] : held_)
    out.try_emplace(tid, Delay{.since = call->since,
                               .share = call->reservation.rest() > 0 ? call->asked : 0,
                               .debt = call->debts ? call->debts->rest() : 0});
  for (const auto& [tid, frozen] : frozen_)
    out.try_emplace(tid, Delay{.since = frozen.since, .share = 0, .debt = frozen.debts ? frozen.debts->rest() : 0});
  return out;
}

}  // namespace swapd::decide
