// Programs and settings that also change priorities, or that change what a priority means: shown by `status`.
#pragma once

#include <string>
#include <vector>

#include "sys/procfs.h"

namespace swapd::daemon {

[[nodiscard]] std::vector<std::string> find_rivals(const sys::Procfs& procfs);

}  // namespace swapd::daemon
