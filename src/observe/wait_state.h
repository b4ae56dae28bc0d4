// The known state of a watched thread's wait, for either observer.
//
// A wait is told at once with what one descriptor says; the worker is asked for the rest, and its answer comes as
// another `Blocked` of the same wait. Until then what the same call was found to wait for the last time is the guess.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "observe/observer.h"

namespace swapd::observe {

struct WaitState {
  Member member;
  bool blocked = false;
  Time since{};                       // of the present wait, or of the last one
  std::uint64_t generation = 0;       // changes with each wait and wake
  CallSite site;                      // of the wait …
  std::vector<Resource> awaited;      // … and what was said that it awaits
  Time believed_until = Time::max();  // then the worker is asked, if the wait still lasts; max: it need not be
  bool look_due = false;              // the teller has noted when to look at it
  CallSite resolved;                  // the last call that needed the worker …
  std::vector<Resource> resources;    // … and what it was found to wait for
};

class WaitTeller {
 public:
  WaitTeller(Resolver& resolver, const Observer::Hooks& hooks) : resolver_(resolver), hooks_(hooks) {}

  void block(WaitState& state, Time now, const CallSite& site, std::vector<Event>& out);
  // Nothing where it was awake.
  void wake(WaitState& state, Time now, std::vector<Event>& out) const;
  void resolve_again(const WaitState& state) const;
  void answer(WaitState& state, const WaitAnswer& answer, std::vector<Event>& out);

  // Waits that were told by what was found in their sets before, and when the first of them is looked at.
  [[nodiscard]] std::optional<Time> next_look() const;
  // Asks the worker for those that still last. find: null: the thread is not watched any more.
  void ask_due(Time now, const std::function<WaitState*(ThreadId)>& find);

 private:
  void believe(WaitState& state, const Wait& wait);
  void look_later(WaitState& state);
  void name_owners(const WaitState& state, const Wait& wait, std::vector<Event>& out) const;

  struct LookDue {
    Time due;
    ThreadId thread;
  };

  Resolver& resolver_;
  const Observer::Hooks& hooks_;
  std::vector<LookDue> looks_;  // a heap, the earliest first; one for each thread
};

[[nodiscard]] inline bool same_call(const CallSite& a, const CallSite& b) { return a.nr == b.nr && a.args == b.args; }

}  // namespace swapd::observe
