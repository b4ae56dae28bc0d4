// The calls that a filter of swapd's traps, by what the policy says and what the filter is for.
#pragma once

#include <optional>
#include <vector>

#include "observe/io/io_calls.h"
#include "policy/policy.h"
#include "sys/seccomp/seccomp.h"

namespace swapd::daemon {

// By which the seccomp observer sees.
[[nodiscard]] std::vector<sys::TrapRule> observe_rules(const policy::Policy& policy);
// io: with calls that move bytes, for limits. observes: with those of observe_rules(). And the one that asks for a
// listener, always.
[[nodiscard]] std::vector<sys::TrapRule> filter_rules(const policy::Policy& policy,
                                                      const std::optional<observe::IoTraps>& io, bool observes);

}  // namespace swapd::daemon
