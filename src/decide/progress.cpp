#include "decide/progress.h"

#include <algorithm>

namespace swapd::decide {

void SpinJudge::add(std::uint64_t state, bool in_user) {
  if (!in_user) {
    ++in_calls_;
    return;
  }
  if (in_calls_ > max_in_calls) seen_ = 0;  // it was in calls all the time
  in_calls_ = 0;
  states_[seen_++ % window] = state;
}

SpinJudge::Verdict SpinJudge::verdict() const {
  if (in_calls_ > max_in_calls) return Verdict::computes;
  if (seen_ < enough) return Verdict::unknown;
  auto states = states_;
  const auto end = states.begin() + static_cast<std::ptrdiff_t>(std::min(seen_, window));
  std::sort(states.begin(), end);
  const auto different = static_cast<std::size_t>(std::unique(states.begin(), end) - states.begin());
  const std::size_t seen = std::min(seen_, window);
  if (different * 8 <= seen * max_of_a_spin) return Verdict::spins;
  return different * 8 > seen * min_of_a_computation ? Verdict::computes : Verdict::unknown;
}

void Progress::lent(ThreadId requester, const Resource& resource, bool choice, Time since, Time now) {
  const auto [at, is_new] = waits_.try_emplace(requester);
  Wait& wait = at->second;
  if (is_new || wait.begun != since) wait = {.begun = since, .since = now};
  wait.resource = resource;
  wait.choice = wait.choice || choice;
}

void Progress::used(ThreadId requester, ThreadId thread, Duration cpu) {
  const auto at = waits_.find(requester);
  if (at == waits_.end() || cpu <= Duration::zero()) return;
  at->second.used[thread] += cpu;
  at->second.spent += cpu;
}

void Progress::blocked(ThreadId thread) {
  spinners_.erase(thread);
  delivered(thread);
}

void Progress::delivered(ThreadId thread) {
  for (auto& [requester, wait] : waits_) {
    const auto own = wait.used.find(thread);
    if (own == wait.used.end()) continue;
    wait.spent -= own->second;
    wait.used.erase(own);
  }
}

void Progress::ended(ThreadId requester, std::optional<ThreadId> by) {
  const auto at = waits_.find(requester);
  if (at == waits_.end()) return;
  const Wait wait = std::move(at->second);
  waits_.erase(at);
  if (!by) return;
  const auto winner = wait.used.find(*by);
  const Duration useful = winner == wait.used.end() ? Duration::zero() : winner->second;
  const Duration in_vain = wait.spent - useful;
  if (by->valid()) remember(threads_, *by, true);
  if (in_vain < rules_.waste || in_vain <= useful) {
    if (useful == Duration::zero()) return;  // nothing was guessed
    remember(resources_, wait.resource, true);
    remember(requesters_, requester, true);
    return;
  }
  remember(resources_, wait.resource, false);
  remember(requesters_, requester, false);
  for (const auto& [thread, cpu] : wait.used)
    if (thread != *by && cpu >= rules_.waste) remember(threads_, thread, false);
}

template <typename Key>
void Progress::remember(HashMap<Key, int>& scores, const Key& key, bool right) const {
  if (scores.size() >= rules_.max_remembered) scores.clear();
  int& one = scores[key];
  if (right)
    one = std::min(std::max(one, -1) + 1, rules_.right_again);
  else
    one = std::max(std::min(one, 0) - 1, rules_.wrong);
}

void Progress::judged(ThreadId thread, SpinJudge::Verdict verdict) {
  if (verdict == SpinJudge::Verdict::computes) {
    spinners_.erase(thread);
    suspects_.erase(thread);
  }
  if (verdict != SpinJudge::Verdict::spins) return;
  const bool again = !suspects_.insert(thread).second;
  const auto [at, is_new] = spinners_.try_emplace(thread, again ? Step::none : Step::less);
  if (!is_new) at->second = Step::none;
}

void Progress::forget(ThreadId thread) {
  waits_.erase(thread);
  threads_.erase(thread);
  requesters_.erase(thread);
  spinners_.erase(thread);
  suspects_.erase(thread);
  for (auto& [requester, wait] : waits_) wait.used.erase(thread);
}

const ProgressRules::Allowance* Progress::allowance(ThreadId requester, const Wait& wait, ThreadId thread) const {
  const auto score = [](const auto& table, const auto& key) {
    const auto at = table.find(key);
    return at == table.end() ? 0 : at->second;
  };
  const int of_resource = score(resources_, wait.resource);
  const int of_thread = score(threads_, thread);
  if (of_thread > 1 || (of_thread > 0 && of_resource >= 0)) return nullptr;
  // Another one was guessed the last time, and this one it was: unless it is another one each time.
  if (of_thread > 0 && of_resource == -1) return &rules_.choice;
  if (score(requesters_, requester) < -1) return &rules_.doubtful;
  // For another resource than the one that it was wrong about.
  if (of_resource < 0 || of_thread < (wait.choice ? 0 : -1)) return &rules_.doubtful;
  return wait.choice ? &rules_.choice : &rules_.alone;
}

Step Progress::step(ThreadId requester, ThreadId thread, Time now) const {
  if (const auto spinner = spinners_.find(thread); spinner != spinners_.end()) return spinner->second;
  const auto at = waits_.find(requester);
  if (at == waits_.end()) return Step::full;
  const Wait& wait = at->second;
  const ProgressRules::Allowance* allowed = allowance(requester, wait, thread);
  if (allowed == nullptr || wait.spent < allowed->free) return Step::full;
  const Duration shared = now - wait.since - allowed->free - allowed->rest;  // the time of which they have a share
  const auto share = std::chrono::duration_cast<Duration>(std::max(shared, Duration::zero()) * allowed->share);
  return wait.spent + rules_.grain <= allowed->free + share ? Step::full : Step::none;
}

}  // namespace swapd::decide
