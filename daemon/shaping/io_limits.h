// A policy's limits for a class (names of devices) as what the shaper goes by (their numbers).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "decide/shaping/shaping.h"
#include "policy/policy.h"
#include "sys/procfs/block_devices.h"

namespace swapd::daemon {

struct ResolvedLimits {
  decide::ClassLimits limits;
  std::map<std::string, std::string> unknown;  // devices that are not there, and the reason, a line
};
[[nodiscard]] ResolvedLimits resolve_limits(const policy::IoRules& rules, const sys::BlockDevices& disks);

}  // namespace swapd::daemon
