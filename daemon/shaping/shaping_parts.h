// The parts of shaping share these: the kernel's files, the clock, and the ledger that decides.
#pragma once

#include <functional>

#include "actuate/delays.h"
#include "base/time.h"
#include "shaping/kernel_counters.h"
#include "shaping/shared_ledger.h"
#include "sys/procfs/block_devices.h"
#include "sys/procfs/procfs.h"

namespace swapd::daemon {

// By a major fault, and around it: read_ahead_kb of sysfs, unless it was changed.
inline constexpr decide::Tokens read_by_fault = 128 << 10;

struct ShapingParts {
  const sys::Procfs& procfs;
  const Clock& clock;
  const sys::BlockDevices& disks;
  const SharedLedger& ledger;
  const KernelCounters& counters;
};

}  // namespace swapd::daemon
