// The known state of a watched thread's wait, for either observer.
//
// A wait is told at once with what one descriptor says; the worker is asked for the rest, and its answer comes as
// another `Blocked` of the same wait. Until then what the same call was found to wait for the last time is the guess.
#pragma once

#include <vector>

#include "observe/observer.h"

namespace swapd::observe {

struct WaitState {
  Member member;
  bool blocked = false;
  Time since{};                     // of the present wait, or of the last one
  std::uint64_t generation = 0;     // changes with each wait and wake
  CallSite site;                    // of the wait …
  std::vector<Resource> awaited;    // … and what was said that it awaits
  CallSite resolved;                // the last call that needed the worker …
  std::vector<Resource> resources;  // … and what it was found to wait for
};

class WaitTeller {
 public:
  WaitTeller(Resolver& resolver, const Observer::Hooks& hooks) : resolver_(resolver), hooks_(hooks) {}

  void block(WaitState& state, Time now, const CallSite& site, std::vector<Event>& out) const;
  // Nothing where it was awake.
  void wake(WaitState& state, Time now, std::vector<Event>& out) const;
  void resolve_again(const WaitState& state) const;
  void answer(WaitState& state, const WaitAnswer& answer, std::vector<Event>& out) const;

 private:
  void name_owners(const WaitState& state, const Wait& wait, std::vector<Event>& out) const;

  Resolver& resolver_;
  const Observer::Hooks& hooks_;
};

[[nodiscard]] inline bool same_call(const CallSite& a, const CallSite& b) { return a.nr == b.nr && a.args == b.args; }

}  // namespace swapd::observe
