// Refuses processes that the machine and swapd itself depend on (docs/design.md, Never managed).
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "sys/procfs/procfs.h"

namespace swapd::daemon {

// EINVAL, with the line for the user: PID 1, a message bus, the journal, a kernel thread, swapd and its helpers, and
// what the policy protects, by comm.
[[nodiscard]] Status may_enroll(const sys::Procfs& procfs, pid_t tgid, std::span<const std::string> never = {});

}  // namespace swapd::daemon
