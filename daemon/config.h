// From policy values to the settings of model, decider, actuator and observer.
#pragma once

#include <string>

#include "base/result.h"
#include "engine.h"
#include "options.h"
#include "policy/policy.h"

namespace swapd::daemon {

// Reads and validates the file; an empty name: the default one where it exists, else the built-in defaults.
[[nodiscard]] Result<policy::Policy> load_policy(const std::string& file);
// The file that load_policy() reads; empty: none.
[[nodiscard]] std::string config_file(const std::string& file);
[[nodiscard]] Engine::Options engine_options(const policy::Policy& policy, const Options& options);

}  // namespace swapd::daemon
