#include "oci_profile_file.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iostream>

#include "config.h"
#include "observe/io/io_calls.h"
#include "observe/resolve/syscall_table.h"
#include "oci_profile.h"
#include "sys/seccomp/own_listener.h"

namespace swapd::daemon {
namespace {

constexpr std::string_view usual_socket = "/run/swapd/seccomp-agent.sock";

int bad_profile(const std::string& what) {
  std::cerr << "swapd: " << what << '\n';
  return 2;
}

std::vector<sys::TrapRule> rules_of(const Options& options, const policy::Policy& policy,
                                    const policy::IoRules* class_io) {
  std::vector<sys::TrapRule> rules;
  if (options.oci_profile->limits)
    rules = observe::io_rules({.rings = class_io == nullptr || class_io->io_uring,
                               .entries = class_io != nullptr && class_io->counts_operations()});
  if (options.observe == "seccomp") {
    const auto history =
        policy.observe.history == policy::History::calls ? observe::History::calls : observe::History::holders;
    for (sys::TrapRule& rule : observe::observe_rules(history, policy.observe.trap_kill))
      if (std::ranges::find(rules, rule.nr, &sys::TrapRule::nr) == rules.end()) rules.push_back(std::move(rule));
  }
  rules.push_back(sys::own_listener_rule());
  return rules;
}

}  // namespace

int print_oci_profile(const Options& options) {
  const Options::OciProfile& asked = *options.oci_profile;
  const auto loaded = load_policy(options.config);
  if (!loaded) return bad_profile(loaded.error().context());
  const policy::IoRules* class_io = nullptr;
  if (!asked.class_name.empty()) {
    const auto found = loaded->policy.classes.find(asked.class_name);
    if (found == loaded->policy.classes.end())
      return bad_profile("--oci-class " + asked.class_name + ": the policy has no [class." + asked.class_name + "]");
    class_io = &found->second.io;
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
  const auto profile = oci_profile(rules_of(options, loaded->policy, class_io), profile_options, base);
  if (!profile) return bad_profile("--oci-profile " + asked.base + ": " + profile.error().context());
  std::cout << profile->dump(2) << '\n';
  return std::cout.flush() ? 0 : 1;
}

}  // namespace swapd::daemon
