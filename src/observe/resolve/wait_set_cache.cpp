#include "observe/resolve/wait_set_cache.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "observe/resolve/syscall_table.h"

namespace swapd::observe {

namespace {

// The kernel lists the members in an order of its own.
bool same_members(std::vector<Resource> a, std::vector<Resource> b) {
  if (a == b) return true;
  if (a.size() != b.size()) return false;
  std::ranges::sort(a);
  std::ranges::sort(b);
  return a == b;
}

}  // namespace

// Timeouts, signal masks and the room for results change from call to call.
WaitSetCache::Key WaitSetCache::key_of(const CallSite& site) {
  Key key{.tgid = site.tgid, .tid = site.tid, .nr = site.nr, .args = {}};
  switch (call_entry(site.nr).kind) {
    case CallKind::poll:
      key.args = {site.args[0], site.args[1]};
      break;
    case CallKind::ring:
      key.args = {site.args[0], site.args[3]};
      break;
    case CallKind::epoll:
      key.args = {site.args[0]};
      break;
    default:
      key.args = {site.args[0], site.args[1], site.args[2]};
  }
  return key;
}

std::optional<WaitSetCache::Known> WaitSetCache::find(const CallSite& site, Time now) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return std::nullopt;
  const auto found = sets_.find(key_of(site));
  if (found == sets_.end()) return std::nullopt;
  Set& set = found->second;
  set.used = now;
  Known known{.awaited = set.awaited, .until = set.until, .believed = now < set.until};
  // The worker is asked now: waits that begin before it has looked need not ask it again.
  if (!known.believed && set.belief > Duration::zero()) set.until = now + limits_.min_belief;
  return known;
}

std::vector<Resource> WaitSetCache::take(const CallSite& site, Look look, Time began) {
  const std::lock_guard lock(mutex_);
  leave_out_unused(began);
  const auto [at, is_new] = sets_.try_emplace(key_of(site));
  Set& set = at->second;
  const bool same = !is_new && same_members(set.awaited, look.awaited);
  set.looked = set.used = began;
  count_cost(set, look.cost);
  if (!is_new && !same && !look.certain && ++set.doubtful < limits_.max_doubtful) {
    set.until = began + std::max(limits_.min_belief, limits_.pause_of_changing * costs_);
    return set.awaited;
  }
  set.doubtful = 0;
  set.belief = same ? std::clamp(2 * set.belief, limits_.min_belief, limits_.max_belief) : Duration::zero();
  believe(set);
  if (same) return set.awaited;
  resources_ += look.awaited.size();
  resources_ -= set.awaited.size();
  set.awaited = std::move(look.awaited);
  std::vector<Resource> awaited = set.awaited;
  make_room();
  return awaited;
}

void WaitSetCache::believe(Set& set) {
  const bool changing = set.belief == Duration::zero();
  set.until = set.looked + std::max(set.belief, (changing ? limits_.pause_of_changing : limits_.pause) * costs_);
}

void WaitSetCache::doubt(const CallSite& site) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  if (const auto found = sets_.find(key_of(site)); found != sets_.end())
    found->second.until = std::min(found->second.until, found->second.looked + limits_.min_belief);
}

bool WaitSetCache::knows(const CallSite& site) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  return lock && sets_.contains(key_of(site));
}

void WaitSetCache::forget(pid_t tgid) {
  const std::lock_guard lock(mutex_);
  auto at = sets_.lower_bound(Key{.tgid = tgid, .tid = 0, .nr = -1, .args = {}});
  while (at != sets_.end() && at->first.tgid == tgid) at = erase(at);
}

std::size_t WaitSetCache::size() {
  const std::lock_guard lock(mutex_);
  return sets_.size();
}

void WaitSetCache::count_cost(Set& set, Duration cost) {
  costs_ += cost - set.cost;
  set.cost = cost;
}

void WaitSetCache::leave_out_unused(Time now) {
  if (now - counted_ < limits_.in_use) return;
  counted_ = now;
  for (auto& [key, set] : sets_)
    if (now - set.used >= limits_.in_use) count_cost(set, Duration::zero());
}

// The one that has not been used for longest gives way; the newest is in use.
void WaitSetCache::make_room() {
  while (sets_.size() > 1 && (sets_.size() > limits_.max_sets || resources_ > limits_.max_resources))
    erase(std::ranges::min_element(sets_, {}, [](const auto& entry) { return entry.second.used; }));
}

WaitSetCache::Sets::iterator WaitSetCache::erase(Sets::iterator at) {
  resources_ -= at->second.awaited.size();
  count_cost(at->second, Duration::zero());
  return sets_.erase(at);
}

}  // namespace swapd::observe
