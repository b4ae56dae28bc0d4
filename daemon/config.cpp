#include "config.h"

#include <fstream>
#include <iterator>

#include "observe/syscall_table.h"

namespace swapd::daemon {

namespace {

constexpr const char* default_file = "/etc/swapd/swapd.toml";

model::KindSettings kind_settings(const policy::ModelRules& rules) {
  return {.base_confidence = rules.confidence,
          .quantum = rules.quantum,
          .max_providers = rules.providers,
          .feedback = rules.feedback == policy::Feedback::paper ? model::Feedback::paper : model::Feedback::wait,
          .counts = rules.counts};
}

}  // namespace

Result<policy::Policy> load_policy(const std::string& file) {
  const std::string name = file.empty() ? default_file : file;
  std::ifstream in(name, std::ios::binary);
  if (!in) {
    if (file.empty()) return policy::parse("", "built-in defaults");
    return Error(ENOENT, name + ": cannot be read");
  }
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  return policy::parse(text, name);
}

Engine::Options engine_options(const policy::Policy& policy, const Options& options) {
  Engine::Options out;
  for (std::size_t i = 0; i < resource_kinds; ++i) {
    const auto own = policy.kinds.find(static_cast<ResourceKind>(i));
    out.model.kinds.at(i) = kind_settings(own == policy.kinds.end() ? policy.model : own->second);
  }
  const policy::DonationPolicy& d = policy.donation;
  out.donor.rules = {.lending = {.rt_ceiling = d.ceiling, .realtime_allowed = d.realtime, .strict = d.strict},
                     .cross_user = d.cross_user,
                     .linger = d.linger};
  out.donor.ceiling = d.ceiling_share < 1.0;
  out.observe.watch.poll_period = policy.observe.poll_period;
  out.observe.watch.perf = policy.observe.watch != policy::WatchMethod::poll;
  const auto history =
      policy.observe.history == policy::History::calls ? observe::History::calls : observe::History::holders;
  for (const sys::TrapRule& rule : observe::observe_rules(history, policy.observe.trap_kill))
    out.observe.trapped.push_back(rule.nr);
  out.actuate.state_dir = options.state_dir;
  out.actuate.dry_run = options.dry_run;
  out.actuate.rules = {
      .group_action = d.group_action, .ceiling_share = d.ceiling_share, .ceiling_window = d.ceiling_window};
  return out;
}

}  // namespace swapd::daemon
