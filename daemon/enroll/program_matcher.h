// Programs as the rules of [match.NAME] see them. Reads of a process what the rules ask for and no more, because each
// fact costs a look at /proc. Any thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "enroll/container_names.h"
#include "enroll/remembered.h"
#include "policy/match.h"
#include "sys/bpf/exec_events.h"
#include "sys/procfs/procfs.h"

namespace swapd::daemon {

class ProgramMatcher {
 public:
  ProgramMatcher(const sys::Procfs& procfs, std::vector<policy::NamedRule> rules);

  [[nodiscard]] std::size_t rules() const { return rules_.rules().size(); }
  // The process as it is now. cmdline: as it was started, if that is known.
  [[nodiscard]] policy::Program program_of(pid_t pid, const std::optional<std::string>& cmdline);
  // A program that has ended meanwhile is known by what it was started as.
  [[nodiscard]] policy::Program program_of(const sys::ExecEvent& event);
  // Null: none fits. Lives as long as the matcher.
  [[nodiscard]] const policy::NamedRule* rule_for(const policy::Program& program) const {
    return rules_.rule_for(program);
  }

 private:
  void complete(pid_t pid, policy::Program& program);
  [[nodiscard]] std::string user(std::uint32_t uid);
  [[nodiscard]] std::vector<std::string> ancestors(pid_t pid) const;

  const sys::Procfs& procfs_;
  const policy::RuleTable rules_;
  // Facts that cost a look. Ancestors: how many of them, at most.
  bool by_file_ = false, by_arguments_ = false, by_group_ = false, by_user_ = false, by_container_ = false;
  std::size_t ancestors_ = 0;
  ContainerNames containers_;
  Remembered<std::uint32_t, std::string> users_;
};

}  // namespace swapd::daemon
