// Whether a thread is to stand still by its cgroup: the freezer controller of v1 (freezer.state) or cgroup.freeze of v2
// (Documentation/admin-guide/cgroup-v1/freezer-subsystem.rst, cgroup-v2.rst). Nothing of /proc says so.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace swapd::sys {

class Freezer {
 public:
  // cgroups: the directory where hierarchies are mounted; in tests another one.
  explicit Freezer(std::string proc_root = "/proc", std::string cgroups = "/sys/fs/cgroup");

  // True if the thread is frozen, or on its way there, by another program than swapd (sys/sched/freezer_group.h). A
  // group is looked at once until forget().
  [[nodiscard]] bool freezes(pid_t tid);
  void forget() { known_.clear(); }

 private:
  [[nodiscard]] bool group_freezes(const std::string& directory, bool v2);

  std::string proc_root_, v1_, v2_;
  std::map<std::string, bool> known_;  // by directory
};

namespace parse {
// The thread's groups, from /proc/TID/cgroup. Empty: the root. Nothing: there is no such hierarchy, or the group is of
// another cgroup namespace, and has no name here.
struct FreezerGroups {
  std::optional<std::string> v1, v2;
};
[[nodiscard]] FreezerGroups freezer_groups(std::string_view text);
}  // namespace parse

}  // namespace swapd::sys
