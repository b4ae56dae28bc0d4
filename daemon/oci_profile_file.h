// `swapd --oci-profile [BASE]`: no engine, no kernel surface, no root.
#pragma once

#include "options.h"

namespace swapd::daemon {

// Prints the profile that the options ask for (oci_profile.h), with the calls that the policy's class needs. The exit
// status: 0 done; 1 it cannot be written; 2 the policy, the class or the base is no good, which is said in one line.
[[nodiscard]] int print_oci_profile(const Options& options);

}  // namespace swapd::daemon
