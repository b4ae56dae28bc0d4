// When the worker looks at the threads and groups that compete with boosted ones, and that its answers reach the
// actuator. Engine thread.
//
// A look is taken twice a second while anything is boosted; less often where the worker has much to do, because with
// many threads a look takes long; and sooner where one look was not enough to tell.
#pragma once

#include "actuate/actuator.h"
#include "actuate/competitors.h"
#include "base/time.h"
#include "engine/worker.h"

namespace swapd::daemon {

class CompetitorWatch {
 public:
  CompetitorWatch(actuate::Actuator& actuator, Worker& worker) : actuator_(actuator), worker_(worker) {}
  void tick(Time now);
  void take(actuate::Competitors answer, Time now);

 private:
  actuate::Actuator& actuator_;
  Worker& worker_;
  Time next_{};
  Time answered_{};
};

}  // namespace swapd::daemon
