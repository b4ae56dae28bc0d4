#include "decide/donation/inquiry.h"

#include <algorithm>

namespace swapd::decide {

namespace {
constexpr int age_parts = 4;  // of a wait's age: the pause before it is asked about again …
constexpr Duration max_pause = std::chrono::seconds(5);  // … and at most
constexpr int overdue_pauses = 4;                        // where the worker has no rest
constexpr std::size_t min_remembered = 4096;             // resources; more where more are awaited

bool is_signal(const Resource& resource) { return resource.kind == ResourceKind::signal; }

// A thread that sleeps until it gets a signal may just have nothing to do; one that others wait for has. That its own
// turn has come says nothing about theirs.
bool may_be_idle(const model::ThreadView& waiter, bool own) {
  return own && !waiter.awaited.empty() && std::ranges::all_of(waiter.awaited, is_signal);
}
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
  if (why == Why::begins) return ask_together(model, {&requester, 1}, now, plan);
  Vector<ThreadId> tree = model.wait_tree(requester);
  tree.push_back(requester);
  for (const ThreadId id : tree) {
    const auto view = model.thread(id);
    if (!view || may_be_idle(*view, id == requester)) continue;
    Time* asked = attention.asked(id);
    if (asked == nullptr) continue;
    if (now - std::max(*asked, view->since) < (why == Why::overdue ? overdue_pauses : 1) * pause(*view, now)) continue;
    *asked = now;
    plan.looks.push_back({.thread = id, .at = Look::At::awaited});
    put(*view, id == requester, nullptr, now, plan);
  }
  sweep(now);
}

// A requester that waits for a signal goes alone. Its signals are asked about only where another requester waits for
// it, and trees that are walked together leave the requesters themselves out.
void Inquiry::ask_at_begin(const model::Model& model, std::span<const ThreadId> requesters, Time now, Plan& plan) {
  Vector<ThreadId> together;
  for (const ThreadId requester : requesters) {
    const auto view = model.thread(requester);
    if (view && std::ranges::any_of(view->awaited, is_signal))
      ask_together(model, {&requester, 1}, now, plan);
    else
      together.push_back(requester);
  }
  ask_together(model, together, now, plan);
}

void Inquiry::ask_together(const model::Model& model, std::span<const ThreadId> requesters, Time now, Plan& plan) {
  const Vector<Resource> unprovided = model.unprovided(requesters);
  const auto ask = [&](ThreadId id, bool own) {
    const auto view = model.thread(id);
    if (view && !may_be_idle(*view, own)) put(*view, own, &unprovided, now, plan);
  };
  const auto trees = model.wait_trees(requesters);
  auto next = trees.begin();
  for (const ThreadId requester : requesters) {
    for (; next != trees.end() && next->requester == requester; ++next) ask(next->thread, false);
    ask(requester, true);
  }
  sweep(now);
}

void Inquiry::put(const model::ThreadView& waiter, bool own, const Vector<Resource>* unprovided, Time now, Plan& plan) {
  const Duration fresh = unprovided != nullptr ? pause(waiter, now) : rescan_;
  std::vector<Resource> wanted;
  for (const Resource& resource : waiter.awaited) {
    if (own && is_signal(resource)) continue;
    if (unprovided != nullptr && !is_lock(resource.kind) && !std::ranges::binary_search(*unprovided, resource))
      continue;
    if (!due(resource, waiter, now, fresh)) continue;
    scanned_[resource] = now;
    wanted.push_back(resource);
  }
  if (!wanted.empty()) plan.questions.push_back({waiter.id, std::move(wanted), unprovided == nullptr});
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
