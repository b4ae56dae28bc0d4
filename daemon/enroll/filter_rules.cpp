#include "enroll/filter_rules.h"

#include <algorithm>
#include <utility>

#include "observe/resolve/syscall_table.h"
#include "sys/seccomp/own_listener.h"

namespace swapd::daemon {

std::vector<sys::TrapRule> observe_rules(const policy::Policy& policy) {
  const auto history =
      policy.observe.history == policy::History::calls ? observe::History::calls : observe::History::holders;
  return observe::observe_rules(history, policy.observe.trap_kill);
}

std::vector<sys::TrapRule> filter_rules(const policy::Policy& policy, const std::optional<observe::IoTraps>& io,
                                        bool observes) {
  std::vector<sys::TrapRule> rules;
  if (io) rules = observe::io_rules(*io);
  if (observes)
    for (sys::TrapRule& rule : observe_rules(policy))
      if (std::ranges::find(rules, rule.nr, &sys::TrapRule::nr) == rules.end()) rules.push_back(std::move(rule));
  rules.push_back(sys::own_listener_rule());
  return rules;
}

}  // namespace swapd::daemon
