#include "decide/donation/inquiry.h"

#include <algorithm>

namespace swapd::decide {

namespace {
constexpr int age_parts = 4;  // of a wait's age: the pause before it is asked about again …
constexpr Duration max_pause = std::chrono::seconds(5);  // … and at most
constexpr int overdue_pauses = 4;                        // where the worker has no rest
constexpr std::size_t min_remembered = 4096;             // resources; more where more are awaited
}  // namespace

Duration Inquiry::pause(const model::ThreadView& waiter, Time now) const {
  if (std::ranges::any_of(waiter.awaited, is_lock, &Resource::kind)) return rescan_;
  return std::max(rescan_, std::min<Duration>((now - waiter.since) / age_parts, max_pause));
}

bool Inquiry::due(const Resource& resource, const model::ThreadView& waiter, Time now, Duration fresh) const {
  const auto scanned = scanned_.find(resource);
  if (scanned == scanned_.end()) return true;
  if (scanned->second >= waiter.since && now - scanned->second < fresh) return false;
  return is_lock(resource.kind) || now - scanned->second >= rescan_ / 10;
}

void Inquiry::ask(const model::Model& model, ThreadId requester, Time now, Why why, Attention& attention, Plan& plan) {
  const bool begins = why == Why::begins;
  const auto unprovided = begins ? model.unprovided(requester) : Vector<Resource>{};
  Vector<ThreadId> tree = model.wait_tree(requester);
  tree.push_back(requester);
  for (const ThreadId id : tree) {
    const auto view = model.thread(id);
    if (!view) continue;
    // A thread that sleeps until it gets a signal may just have nothing to do; one that others wait for has. That its
    // own turn has come says nothing about theirs.
    const auto is_own_signal = [&](const Resource& one) { return one.kind == ResourceKind::signal && id == requester; };
    if (!view->awaited.empty() && std::ranges::all_of(view->awaited, is_own_signal)) continue;
    const Duration pause = this->pause(*view, now);
    if (!begins) {
      Time* asked = attention.asked(id);
      if (asked == nullptr) continue;
      if (now - std::max(*asked, view->since) < (why == Why::overdue ? overdue_pauses * pause : pause)) continue;
      *asked = now;
      plan.looks.push_back({.thread = id, .at = Look::At::awaited});
    }
    std::vector<Resource> wanted;
    for (const Resource& resource : view->awaited) {
      if (is_own_signal(resource)) continue;
      if (begins && !is_lock(resource.kind) && std::ranges::find(unprovided, resource) == unprovided.end()) continue;
      if (!due(resource, *view, now, begins ? pause : rescan_)) continue;
      scanned_[resource] = now;
      wanted.push_back(resource);
    }
    if (!wanted.empty()) plan.questions.push_back({id, std::move(wanted), !begins});
  }
  sweep(now);
}

void Inquiry::sweep(Time now) {
  if (scanned_.size() <= max_scanned_) return;
  std::erase_if(scanned_, [&](const auto& one) { return now - one.second > max_pause; });
  max_scanned_ = std::max(min_remembered, 2 * scanned_.size());
}

void Inquiry::ask_for_another(const model::Model& model, ThreadId requester, Time now, Attention& attention,
                              Plan& plan) {
  Time* asked = attention.asked(requester);
  const auto view = model.thread(requester);
  if (asked == nullptr || !view || now - *asked < rescan_ / 5) return;
  *asked = now;
  plan.looks.push_back({.thread = requester, .at = Look::At::awaited});
  for (const Resource& resource : view->awaited) scanned_[resource] = now;
  plan.questions.push_back({requester, {view->awaited.begin(), view->awaited.end()}, false});
}

void Inquiry::provider_left(const model::Model& model, ThreadId provider) {
  for (const ThreadId waiter : model.waiters_on(provider))
    if (const auto view = model.thread(waiter))
      for (const Resource& resource : view->awaited) scanned_.erase(resource);
}

}  // namespace swapd::decide
