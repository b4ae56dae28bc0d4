// Autogroups and cpu cgroups that exist only here.
#pragma once

#include <map>
#include <string>

#include "sys/sched/groups.h"

namespace swapd::fakes {

class FakeGroups final : public sys::Groups {
 public:
  // Who is in which; a pid that is in none is gone.
  mutable std::map<pid_t, std::int64_t> autogroup_of;
  mutable std::map<std::int64_t, int> autogroup_nice;
  std::map<pid_t, pid_t> leader_of;
  std::map<pid_t, std::string> group_of_tid;
  mutable std::map<std::string, sys::WeightedGroup> weighted;
  mutable std::map<std::string, std::uint64_t> throttled;
  bool enabled = true;
  int write_error = 0;
  mutable int scans = 0;
  mutable int reads = 0;

  bool autogroups() const override { return enabled; }
  Result<sys::Autogroup> autogroup(pid_t pid) const override {
    ++reads;
    const auto found = autogroup_of.find(pid);
    if (found == autogroup_of.end()) return Error(ENOENT, "autogroup");
    const auto leader = leader_of.find(pid);
    return sys::Autogroup{found->second, autogroup_nice[found->second], leader == leader_of.end() ? 0 : leader->second};
  }
  Status set_autogroup_nice(pid_t pid, int nice) const override {
    if (write_error != 0) return Error(write_error, "autogroup");
    const auto found = autogroup_of.find(pid);
    if (found == autogroup_of.end()) return Error(ENOENT, "autogroup");
    autogroup_nice[found->second] = nice;
    return Done{};
  }
  std::optional<pid_t> autogroup_member(std::int64_t id) const override {
    ++scans;
    for (const auto& [pid, group] : autogroup_of)
      if (group == id) return pid;
    return std::nullopt;
  }
  Result<std::string> group_of(pid_t tid) const override {
    ++reads;
    const auto found = group_of_tid.find(tid);
    return found == group_of_tid.end() ? std::string("/") : found->second;
  }
  Result<sys::WeightedGroup> look(const std::string& group) const override {
    ++reads;
    const auto found = weighted.find(group);
    if (found == weighted.end()) return Error(ENOENT, group);
    return found->second;
  }
  Status set_weight(const std::string& group, std::uint64_t weight) const override {
    if (write_error != 0) return Error(write_error, group);
    const auto found = weighted.find(group);
    if (found == weighted.end()) return Error(ENOENT, group);
    if (found->second.idle) return Error(EINVAL, group);
    found->second.weight = weight;
    return Done{};
  }
  // As the kernel has it: an idle group's weight is 3 shares, and takes no other.
  Status set_idle(const std::string& group, bool idle) const override {
    if (write_error != 0) return Error(write_error, group);
    const auto found = weighted.find(group);
    if (found == weighted.end()) return Error(ENOENT, group);
    found->second.idle = idle;
    found->second.weight = idle ? 3 : found->second.nice_0_weight;
    return Done{};
  }
  Result<std::uint64_t> throttled_periods(const std::string& group) const override {
    ++reads;
    if (!weighted.contains(group)) return Error(ENOENT, group);
    return throttled[group];
  }
};

}  // namespace swapd::fakes
