// From policy values to the settings of model, decider, actuator and observer.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "options.h"
#include "policy/origins.h"
#include "policy/policy.h"

namespace swapd::daemon {

// The files of the policy, unless the command line names one.
struct PolicyPlaces {
  std::vector<std::string> folders = {"/usr/lib/swapd/policies.d", "/usr/local/lib/swapd/policies.d",
                                      "/etc/swapd/policies.d"};
  std::string file = "/etc/swapd/swapd.toml";
};
// The files that make the policy, each of which overrides what those before it say: `file` alone, where it is not
// empty; else NAME.toml of all folders in the order of their names, where that of a later folder stands for one of the
// same name of an earlier folder, and then the places' own file. Only those that are there; names that begin with a dot
// are left out (editors' locks).
[[nodiscard]] Result<std::vector<std::string>> policy_files(const std::string& file, const PolicyPlaces& places = {});
struct LoadedPolicy {
  policy::Policy policy;
  std::vector<policy::Setting> settings;  // each value, with where it stands
};
// Reads and validates them; without any: the built-in defaults. EINVAL, EACCES …: the context is the whole line.
[[nodiscard]] Result<LoadedPolicy> load_policy(const std::string& file, const PolicyPlaces& places = {});
[[nodiscard]] Engine::Options engine_options(const policy::Policy& policy, const Options& options);

}  // namespace swapd::daemon
