// When the worker reads how much the CPU groups of managed threads weigh: as a thread comes, as its process is moved to
// another group, and of all once a roster, because the kernel does not tell of a changed weight. Does nothing unless
// the policy has weights count (weight_above). Engine thread.
#pragma once

#include <sys/types.h>

#include <vector>

#include "actuate/actuator.h"
#include "base/event.h"
#include "engine/member_tracker.h"
#include "engine/worker.h"
#include "model/managed_set.h"

namespace swapd::daemon {

class WeightWatch {
 public:
  WeightWatch(bool on, const model::ManagedSet& members, const actuate::Actuator& actuator, Worker& worker)
      : on_(on), members_(members), actuator_(actuator), worker_(worker) {}
  void on_event(const Event& event);
  // The process may be in another group now.
  void moved(pid_t pid);
  void look_at_all();
  // Asks about those that have been noted since.
  void ask();
  void take(const WeightsAnswer& answer, MemberTracker& tracker, Time now);

 private:
  const bool on_;
  const model::ManagedSet& members_;
  const actuate::Actuator& actuator_;
  Worker& worker_;
  std::vector<ThreadId> noted_;
  bool taking_ = false;  // what is enrolled meanwhile has just been weighed
};

}  // namespace swapd::daemon
