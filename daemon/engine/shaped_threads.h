// The engine's view of the limits on I/O: threads that the limits of their class hold, and threads that are favoured,
// which are let go. Engine thread.
//
// A held thread is blocked only because swapd holds its call: it counts as one that can run, and if it provides for a
// requester, it is lent to, and let go.
#pragma once

#include <sys/types.h>

#include <unordered_map>
#include <vector>

#include "actuate/actuator.h"
#include "base/event.h"
#include "model/managed_set.h"
#include "shaping/shaper.h"

namespace swapd::daemon {

class ShapedThreads {
 public:
  ShapedThreads(Shaper& shaper, const model::ManagedSet& members) : shaper_(shaper), members_(members) {}

  [[nodiscard]] bool holds(pid_t tid) const { return shaper_.would_run(tid); }
  // The managed threads that are held since the last call, also where one was seen to block before it was held: each
  // can run.
  [[nodiscard]] std::vector<Woken> newly_held(Time now);
  // Favoured also where the boost does nothing for its CPU time.
  void on_outcome(const actuate::Outcome& outcome);

 private:
  Shaper& shaper_;
  const model::ManagedSet& members_;
  std::unordered_map<pid_t, Time> held_before_;  // as of the last newly_held(): since when
};

}  // namespace swapd::daemon
