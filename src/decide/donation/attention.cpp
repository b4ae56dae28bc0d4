#include "decide/donation/attention.h"

#include <algorithm>
#include <utility>

namespace swapd::decide {

namespace {
constexpr std::size_t max_looked_at = 1024;                         // in one tick
constexpr Duration max_unreported = std::chrono::milliseconds(20);  // a tick knows when such a wait began
constexpr Duration child_expected = std::chrono::seconds(1);        // how long a child is a new one
constexpr Duration stays_urgent = std::chrono::milliseconds(600);   // more than a round of looks at all waits
}  // namespace

Attention::Watch& Attention::add(ThreadId thread, pid_t tgid, Time now) {
  const auto [at, is_new] = table_.try_emplace(thread);
  Watch& watch = at->second;
  watch.last_needed = now;
  if (!is_new) return watch;
  watch.wants = {
      .thread = thread, .tgid = tgid, .watch = Interest::Watch::provider, .urgent = true, .patience = patience_};
  changed(thread);
  return watch;
}

void Attention::watch_requester(ThreadId thread, pid_t tgid, Time now) {
  Watch& watch = add(thread, tgid, now);
  if (watch.wants.watch == Interest::Watch::requester && watch.wants.urgent) return;
  watch.wants.watch = Interest::Watch::requester;
  watch.wants.urgent = true;
  changed(thread);
}

void Attention::watch_provider(ThreadId thread, pid_t tgid, Time now) {
  Watch& watch = add(thread, tgid, now);
  if (watch.wants.watch == Interest::Watch::provider) list_as_other(thread, watch);
}

void Attention::list_as_other(ThreadId thread, Watch& watch) {
  if (!std::exchange(watch.provides, true)) others_.push_back(thread);
  if (watch.wants.urgent) urgent_.push_back(thread);
}

void Attention::demote(ThreadId thread) {
  const auto found = table_.find(thread);
  if (found == table_.end() || found->second.wants.watch != Interest::Watch::requester) return;
  found->second.wants.watch = Interest::Watch::provider;
  list_as_other(thread, found->second);
  changed(thread);
}

bool Attention::need(ThreadId thread, Time now) {
  const auto found = table_.find(thread);
  if (found == table_.end()) return false;
  found->second.last_needed = now;
  if (found->second.wants.urgent) return true;
  found->second.wants.urgent = true;
  urgent_.push_back(thread);
  changed(thread);
  return true;
}

bool Attention::keep(ThreadId thread, Time now) {
  const auto found = table_.find(thread);
  if (found == table_.end()) return false;
  found->second.last_needed = now;
  return true;
}

void Attention::set_patience(Duration patience) {
  if (std::exchange(patience_, patience) == patience) return;
  for (auto& [thread, watch] : table_) {
    watch.wants.patience = patience;
    changed(thread);
  }
}

void Attention::trace_wakes(ThreadId thread) {
  const auto found = table_.find(thread);
  if (found == table_.end() || found->second.wants.wakes == Interest::Wakes::told) return;
  found->second.wants.wakes = Interest::Wakes::told;
  changed(thread);
}

ThreadId Attention::expected(ThreadId waiter) const {
  const auto found = table_.find(waiter);
  return found == table_.end() ? ThreadId{} : found->second.wants.expected;
}

void Attention::list_as_expecting(ThreadId thread, Watch& watch) {
  if (!std::exchange(watch.listed, true)) expecting_.push_back(thread);
}

void Attention::expect(ThreadId waiter, ThreadId provider) {
  const auto found = table_.find(waiter);
  if (found == table_.end() || found->second.wants.expected == provider) return;
  list_as_expecting(waiter, found->second);
  found->second.wants.expected = provider;
  changed(waiter);
}

void Attention::forked(ThreadId parent, Time now) {
  const auto found = table_.find(parent);
  if (found == table_.end()) return;
  found->second.forked = now;
  list_as_expecting(parent, found->second);
  if (!std::exchange(found->second.wants.new_child, true)) changed(parent);
}

void Attention::look_at_unreported(Time now, std::vector<Look>& out) {
  std::erase_if(expecting_, [&](ThreadId thread) {
    const auto watch = table_.find(thread);
    if (watch == table_.end()) return true;
    if (watch->second.wants.expected.valid() || now - watch->second.forked < child_expected) return false;
    watch->second.listed = false;
    if (std::exchange(watch->second.wants.new_child, false)) changed(thread);
    return true;
  });
  for (std::size_t i = 0; i < std::min(expecting_.size(), max_looked_at); ++i)
    out.push_back({.thread = expecting_[next_expecting_++ % expecting_.size()],
                   .at = Look::At::unreported,
                   .since = now - max_unreported});
}

void Attention::calm(Time now) {
  std::erase_if(urgent_, [&](ThreadId thread) {
    const auto watch = table_.find(thread);
    if (watch == table_.end() || watch->second.wants.watch == Interest::Watch::requester) return true;
    if (now - watch->second.last_needed < stays_urgent) return false;
    watch->second.wants.urgent = false;
    changed(thread);
    return true;
  });
}

void Attention::unwatch_idle(Time now, Duration keep, Vector<ThreadId>& unwatched) {
  std::erase_if(others_, [&](ThreadId thread) {
    const auto watch = table_.find(thread);
    if (watch == table_.end()) return true;
    if (watch->second.wants.watch == Interest::Watch::requester) {
      watch->second.provides = false;
      return true;
    }
    if (now - watch->second.last_needed <= keep) return false;
    table_.erase(watch);
    changed(thread);
    unwatched.push_back(thread);
    return true;
  });
}

void Attention::forget(ThreadId thread) {
  table_.erase(thread);
  for (const ThreadId waiter : expecting_)  // expect() adds none that is there already
    if (expected(waiter) == thread) expect(waiter, {});
}

Time* Attention::asked(ThreadId thread) {
  const auto found = table_.find(thread);
  return found == table_.end() ? nullptr : &found->second.asked;
}

void Attention::add_interests(std::vector<Interest>& out) {
  std::ranges::sort(changed_);
  changed_.erase(std::unique(changed_.begin(), changed_.end()), changed_.end());
  for (const ThreadId thread : changed_) {
    const auto found = table_.find(thread);
    out.push_back(found == table_.end() ? Interest{.thread = thread} : found->second.wants);
  }
  changed_.clear();
}

}  // namespace swapd::decide
