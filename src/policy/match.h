// Programs that a policy speaks of: globs against the facts of a program. Pure.
//
// A glob is compared with the whole text: `*` is any bytes, also none and also slashes, `?` is one byte, all else is
// itself. Of a list of patterns one must fit, and none of those that begin with `!`.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "policy/policy.h"

namespace swapd::policy {

// Facts of a process; those that cannot be told are empty.
struct Program {
  std::string exe;        // its program file
  std::string comm;       // at most 15 bytes
  std::string cmdline;    // its arguments with spaces between
  std::string user;       // name of its real user, whom setuid programs do not change; empty: none
  std::uint32_t uid = 0;  // the same
  std::string cgroup;     // as in /proc/PID/cgroup
  // The names that people gave the container it is in; its id is told from its cgroup.
  std::vector<std::string> container_names{};
  // Names (comm) of the processes that it descends from, its parent first.
  std::vector<std::string> ancestors{};
};

[[nodiscard]] bool fits(std::string_view glob, std::string_view text);

// The units of the system's systemd that a cgroup is in, outermost first: "/system.slice/cron.service/x" →
// system.slice, cron.service (systemd.slice(5)): its slices, and the first service or scope. What is below is named by
// whom that service is: a user's own manager, a container.
[[nodiscard]] std::vector<std::string> units_of(std::string_view cgroup);
// The container of a cgroup: the id or name that docker, podman, containerd, CRI-O, LXC and systemd-nspawn put there,
// the outermost; empty: none, or one that a user runs without any of them.
[[nodiscard]] std::string container_of(std::string_view cgroup);

// Every list of patterns that the rule has fits.
[[nodiscard]] bool fits(const MatchRule& rule, const Program& program);

// Rules in their order. Those for programs of certain names (comm without a glob) are found by these: there may be ten
// thousand names, and a thousand programs a second.
class RuleTable {
 public:
  explicit RuleTable(std::vector<NamedRule> rules);
  [[nodiscard]] const std::vector<NamedRule>& rules() const { return rules_; }
  // The first rule that fits; null: none does. Lives as long as the table.
  [[nodiscard]] const NamedRule* rule_for(const Program& program) const;

 private:
  std::vector<NamedRule> rules_;
  std::unordered_map<std::string, std::vector<std::size_t>> of_comm_;  // places in rules_
  std::vector<std::size_t> of_any_;
};

}  // namespace swapd::policy
