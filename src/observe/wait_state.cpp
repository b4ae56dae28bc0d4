#include "observe/wait_state.h"

#include <sys/syscall.h>

#include <algorithm>
#include <functional>

namespace swapd::observe {

void WaitTeller::block(WaitState& state, Time now, const CallSite& site, std::vector<Event>& out) {
  state.blocked = true;
  state.since = now;
  state.site = site;
  ++state.generation;
  Blocked event{.time = now, .thread = state.member.id, .call = site.nr};
  Wait wait;
  if (site.nr >= 0) {
    wait = resolver_.quick(site);
    event.awaited = std::move(wait.awaited);
    if (!wait.complete) {
      // What the same call was found to wait for the last time is the best guess until the worker has looked. Of a
      // record lock it is a bad one: the range is in the thread's memory, and changes where the call does not.
      if (same_call(site, state.resolved) && site.nr != SYS_fcntl) event.awaited = state.resources;
      hooks_.ask(WaitQuestion{.thread = state.member.id, .site = site, .generation = state.generation});
    }
  }
  believe(state, wait);
  state.awaited = event.awaited;
  out.emplace_back(std::move(event));
  name_owners(state, wait, out);
}

void WaitTeller::wake(WaitState& state, Time now, std::vector<Event>& out) const {
  if (!state.blocked) return;
  state.blocked = false;
  ++state.generation;
  out.emplace_back(Woken{.time = now, .thread = state.member.id});
}

void WaitTeller::resolve_again(const WaitState& state) const {
  if (!state.blocked || state.site.nr < 0) return;
  hooks_.ask(WaitQuestion{.thread = state.member.id, .site = state.site, .generation = state.generation});
}

void WaitTeller::answer(WaitState& state, const WaitAnswer& answer, std::vector<Event>& out) {
  state.resolved = answer.question.site;
  state.resources = answer.wait.awaited;
  if (!state.blocked || state.generation != answer.question.generation) return;
  believe(state, answer.wait);
  const bool kernels = !state.awaited.empty() && state.awaited.front().kind == ResourceKind::kernel_work;
  if (kernels && answer.wait.awaited.empty()) return;  // the worker knows of nobody else
  if (state.awaited != answer.wait.awaited) {
    state.awaited = answer.wait.awaited;
    out.emplace_back(
        Blocked{.time = state.since, .thread = state.member.id, .call = state.site.nr, .awaited = state.awaited});
  }
  name_owners(state, answer.wait, out);
}

std::optional<Time> WaitTeller::next_look() const {
  return looks_.empty() ? std::nullopt : std::optional(looks_.front().due);
}

void WaitTeller::believe(WaitState& state, const Wait& wait) {
  state.believed_until = wait.believed_until;
  if (!state.look_due && state.believed_until != Time::max()) look_later(state);
}

void WaitTeller::look_later(WaitState& state) {
  state.look_due = true;
  looks_.push_back({state.believed_until, state.member.id});
  std::ranges::push_heap(looks_, std::greater(), &LookDue::due);
}

void WaitTeller::ask_due(Time now, const std::function<WaitState*(ThreadId)>& find) {
  while (!looks_.empty() && looks_.front().due <= now) {
    std::ranges::pop_heap(looks_, std::greater(), &LookDue::due);
    WaitState* state = find(looks_.back().thread);
    looks_.pop_back();
    if (state == nullptr) continue;
    state->look_due = false;
    if (!state->blocked || state->believed_until == Time::max()) continue;
    if (state->believed_until > now) {  // another wait than the one it was noted for
      look_later(*state);
      continue;
    }
    state->believed_until = Time::max();
    resolve_again(*state);
  }
}

void WaitTeller::name_owners(const WaitState& state, const Wait& wait, std::vector<Event>& out) const {
  if (wait.owners.empty() || wait.awaited.empty()) return;
  swapd::Holders holders{.time = state.since, .resource = wait.awaited.front(), .evidence = Evidence::owner};
  for (const pid_t tid : wait.owners)
    if (const auto owner = hooks_.identify(tid)) holders.threads.push_back(owner->id);
  out.emplace_back(std::move(holders));
}

}  // namespace swapd::observe
