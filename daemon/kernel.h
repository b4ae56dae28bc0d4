// The kernel as the stages see it, handed to them as one: each surface is an interface or has its root as a parameter,
// so that a test can give fakes. The referents outlive all who have them.
#pragma once

#include "base/time.h"
#include "sys/procfs/procfs.h"
#include "sys/sched/groups.h"
#include "sys/sched/scheduler.h"

namespace swapd::daemon {

struct Kernel {
  const sys::Procfs& procfs;
  const sys::Scheduler& scheduler;
  const sys::Groups& groups;
  const Clock& clock;
};

}  // namespace swapd::daemon
