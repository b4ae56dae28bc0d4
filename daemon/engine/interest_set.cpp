#include "engine/interest_set.h"

#include <algorithm>

namespace swapd::daemon {

using decide::Interest;

bool InterestSet::apply(std::size_t decider, std::span<const Interest> changed) {
  bool fresh = false;
  for (const Interest& interest : changed) {
    Vector<Wish>& wishes = wishes_[interest.thread];
    std::erase_if(wishes, [&](const Wish& wish) { return wish.first == decider; });
    if (interest.watch != Interest::Watch::none) wishes.emplace_back(decider, interest);
    Interest now = merged(wishes);
    now.thread = interest.thread;
    if (wishes.empty()) wishes_.erase(interest.thread);
    fresh = tell(now) || fresh;
  }
  return fresh;
}

// The closest look that any of them wants. A wait stays untold only if all of them expect the same thread to end it.
Interest InterestSet::merged(std::span<const Wish> wishes) {
  if (wishes.empty()) return {};
  Interest out = wishes.front().second;
  for (const auto& [decider, one] : wishes) {
    out.watch = std::max(out.watch, one.watch);
    out.urgent = out.urgent || one.urgent;
    out.wakes = std::max(out.wakes, one.wakes);
    if (one.expected != out.expected) out.expected = {};
    out.patience = std::min(out.patience, one.patience);
    out.new_child = out.new_child || one.new_child;
  }
  return out;
}

bool InterestSet::tell(const Interest& now) {
  const auto known = told_.find(now.thread);
  if (now.watch == Interest::Watch::none) {
    if (known == told_.end()) return false;
    observer_.untrace_wakes(now.thread);
    observer_.unwatch(now.thread);
    told_.erase(known);
    return false;
  }
  const bool fresh = known == told_.end();
  const Interest before = fresh ? Interest{.thread = now.thread, .urgent = true} : known->second;  // as a watch begins
  told_[now.thread] = now;
  if (now.urgent != before.urgent && !fresh) observer_.set_urgent(now.thread, now.urgent);
  if (now.watch != before.watch) observer_.watch({now.thread, now.tgid}, now.watch == Interest::Watch::requester);
  if (now.urgent != before.urgent && fresh) observer_.set_urgent(now.thread, now.urgent);
  if (now.wakes > before.wakes) observer_.trace_wakes(now.thread);
  if (now.wakes == Interest::Wakes::untold && before.wakes != now.wakes) observer_.untrace_wakes(now.thread);
  // The observer itself expects the end of a child; that ends with the child's being new.
  const bool child_grown = before.new_child && !now.new_child;
  if (now.expected != before.expected || child_grown) observer_.expect(now.thread, now.expected);
  if (now.patience != before.patience) observer_.be_patient(now.thread, now.patience);
  return fresh && now.watch == Interest::Watch::provider;
}

void InterestSet::forget(ThreadId thread) {
  wishes_.erase(thread);
  told_.erase(thread);
}

}  // namespace swapd::daemon
