#include "oci_profile_file.h"

#include <cstring>
#include <fstream>
#include <iostream>

#include "config.h"
#include "enroll/filter_rules.h"
#include "oci_profile.h"

namespace swapd::daemon {
namespace {

constexpr std::string_view usual_socket = "/run/swapd/seccomp-agent.sock";

int bad_profile(const std::string& what) {
  std::cerr << "swapd: " << what << '\n';
  return 2;
}

}  // namespace

int print_oci_profile(const Options& options) {
  const Options::OciProfile& asked = *options.oci_profile;
  const auto loaded = load_policy(options.config);
  if (!loaded) return bad_profile(loaded.error().context());
  const policy::Policy& policy = loaded->policy;
  observe::IoTraps traps;
  if (!asked.class_name.empty()) {
    const auto found = policy.classes.find(asked.class_name);
    if (found == policy.classes.end())
      return bad_profile("--oci-class " + asked.class_name + ": the policy has no [class." + asked.class_name + "]");
    traps = {.rings = found->second.io.io_uring, .entries = found->second.io.counts_operations()};
  }
  std::optional<nlohmann::ordered_json> base;
  if (!asked.base.empty()) {
    std::ifstream in(asked.base);
    if (!in) return bad_profile("--oci-profile " + asked.base + ": " + std::strerror(errno));
    base = nlohmann::ordered_json::parse(in, nullptr, false);
    if (base->is_discarded()) return bad_profile("--oci-profile " + asked.base + ": no JSON");
  }
  const OciProfileOptions profile_options{
      .socket = options.oci_socket.empty() ? std::string(usual_socket) : options.oci_socket,
      .class_name = asked.class_name,
      .limits = asked.limits,
      .observe = options.observe == "seccomp",
      .write_call = asked.runtime != "runc"};
  const auto rules = filter_rules(policy, asked.limits ? std::optional(traps) : std::nullopt, profile_options.observe);
  const auto profile = oci_profile(rules, profile_options, base);
  if (!profile) return bad_profile("--oci-profile " + asked.base + ": " + profile.error().context());
  std::cout << profile->dump(2) << '\n';
  return std::cout.flush() ? 0 : 1;
}

}  // namespace swapd::daemon
