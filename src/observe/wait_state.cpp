#include "observe/wait_state.h"

#include <sys/syscall.h>

namespace swapd::observe {

void WaitTeller::block(WaitState& state, Time now, const CallSite& site, std::vector<Event>& out) const {
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

void WaitTeller::answer(WaitState& state, const WaitAnswer& answer, std::vector<Event>& out) const {
  state.resolved = answer.question.site;
  state.resources = answer.wait.awaited;
  if (!state.blocked || state.generation != answer.question.generation) return;
  const bool kernels = !state.awaited.empty() && state.awaited.front().kind == ResourceKind::kernel_work;
  if (kernels && answer.wait.awaited.empty()) return;  // the worker knows of nobody else
  if (state.awaited != answer.wait.awaited) {
    state.awaited = answer.wait.awaited;
    out.emplace_back(
        Blocked{.time = state.since, .thread = state.member.id, .call = state.site.nr, .awaited = state.awaited});
  }
  name_owners(state, answer.wait, out);
}

void WaitTeller::name_owners(const WaitState& state, const Wait& wait, std::vector<Event>& out) const {
  if (wait.owners.empty() || wait.awaited.empty()) return;
  swapd::Holders holders{.time = state.since, .resource = wait.awaited.front(), .evidence = Evidence::owner};
  for (const pid_t tid : wait.owners)
    if (const auto owner = hooks_.identify(tid)) holders.threads.push_back(owner->id);
  out.emplace_back(std::move(holders));
}

}  // namespace swapd::observe
