#include "enroll/program_matcher.h"

#include <pwd.h>

#include <algorithm>
#include <array>

namespace swapd::daemon {
namespace {

constexpr std::size_t max_ancestors = 64;

}  // namespace

ProgramMatcher::ProgramMatcher(const sys::Procfs& procfs, std::vector<policy::NamedRule> rules)
    : procfs_(procfs), rules_(std::move(rules)) {
  for (const auto& [name, rule] : rules_.rules()) {
    by_file_ = by_file_ || !rule.exe.empty();
    by_arguments_ = by_arguments_ || !rule.cmdline.empty();
    by_group_ = by_group_ || !rule.cgroup.empty() || !rule.unit.empty() || !rule.container.empty();
    by_container_ = by_container_ || !rule.container.empty();
    by_user_ = by_user_ || !rule.user.empty();
    if (!rule.parent.empty()) ancestors_ = std::max<std::size_t>(ancestors_, 1);
    if (!rule.descends.empty()) ancestors_ = max_ancestors;
  }
}

policy::Program ProgramMatcher::program_of(pid_t pid, const std::optional<std::string>& cmdline) {
  policy::Program program{.comm = procfs_.comm(pid).value_or(""), .cmdline = cmdline.value_or("")};
  if (by_arguments_ && !cmdline)
    for (const std::string& word : procfs_.cmdline(pid).value_or({}))
      program.cmdline += (program.cmdline.empty() ? "" : " ") + word;
  if (by_user_) program.uid = procfs_.real_uid(pid).value_or(UINT32_MAX);
  complete(pid, program);
  return program;
}

policy::Program ProgramMatcher::program_of(const sys::ExecEvent& event) {
  policy::Program program{.exe = event.path, .comm = event.comm, .cmdline = event.cmdline, .uid = event.uid};
  complete(event.pid, program);
  return program;
}

void ProgramMatcher::complete(pid_t pid, policy::Program& program) {
  if (by_file_) program.exe = procfs_.exe(pid).value_or(program.exe);
  if (by_group_) program.cgroup = procfs_.cgroup(pid).value_or("");
  if (by_container_)
    if (const std::string id = policy::container_of(program.cgroup); !id.empty())
      program.container_names = containers_.of(id);
  if (by_user_) program.user = user(program.uid);
  if (ancestors_ > 0) program.ancestors = ancestors(pid);
}

// A process whose parent has ended has init, or a reaper, for one.
std::vector<std::string> ProgramMatcher::ancestors(pid_t pid) const {
  std::vector<std::string> names;
  while (names.size() < ancestors_) {
    const auto stat = procfs_.stat(pid);
    if (!stat || stat->ppid <= 0) break;
    pid = stat->ppid;
    names.push_back(procfs_.comm(pid).value_or(""));
  }
  return names;
}

std::string ProgramMatcher::user(std::uint32_t uid) {
  const auto look = [uid]() -> std::optional<std::string> {
    std::array<char, 16384> text{};
    passwd entry{};
    passwd* found = nullptr;
    if (::getpwuid_r(uid, &entry, text.data(), text.size(), &found) != 0 || found == nullptr) return std::nullopt;
    return found->pw_name;
  };
  return users_.of(uid, look).value_or("");
}

}  // namespace swapd::daemon
