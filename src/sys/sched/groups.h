// The groups that share the CPU before threads do: autogroups (one a session, sched(7)) and cpu cgroups, v1 and v2
// (cgroups(7), Documentation/admin-guide/cgroup-v2.rst).
//
// A nice value divides a group's share among the group's own members and means nothing outside it, so a nice boost
// needs the groups. Shapes: group paths are as /proc/TID/cgroup has them, seen from the root of the mounted hierarchy,
// "/" for its root; weights are in the file's own unit (WeightedGroup::nice_0_weight). Gone (ESRCH, ENOENT) is a normal
// answer.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace swapd::sys {

struct Autogroup {
  std::int64_t id = -1;
  int nice = 0;
  pid_t leader = 0;  // of the session that it belongs to, whether it still lives or not; 0: unknown
};

struct WeightedGroup {
  std::uint64_t weight = 0;
  std::uint64_t nice_0_weight = 1024;  // cpu.shares; 100: cpu.weight
  std::uint64_t max_weight = 262144;   // cpu.shares; 10000: cpu.weight
  double quota = 0;                    // CPUs, from cpu.cfs_quota_us or cpu.max; 0: no limit
  std::int64_t rt_runtime_us = -1;     // cpu.rt_runtime_us; -1: no such limit
  bool of_devices = false;             // single disks have weights of their own
  bool idle = false;       // cpu.idle: against other groups its threads are SCHED_IDLE, and `weight` is not its own
  bool delegated = false;  // another user than root and swapd's own may set it
};

class Groups {
 public:
  Groups() = default;
  Groups(const Groups&) = delete;
  Groups& operator=(const Groups&) = delete;
  virtual ~Groups() = default;
  // Whether threads of the root cpu group are divided into autogroups at all.
  [[nodiscard]] virtual bool autogroups() const = 0;
  // The autogroup of a process or thread. In force only where autogroups() and its cpu group is "/". ENOENT: the kernel
  // has none.
  [[nodiscard]] virtual Result<Autogroup> autogroup(pid_t pid) const = 0;
  [[nodiscard]] virtual Status set_autogroup_nice(pid_t pid, int nice) const = 0;
  // Some process of that autogroup, by a scan of /proc: only where no member is known any more.
  [[nodiscard]] virtual std::optional<pid_t> autogroup_member(std::int64_t id) const = 0;
  // The cpu group that counts for the thread: its own, or the nearest above that has the controller (v2).
  [[nodiscard]] virtual Result<std::string> group_of(pid_t tid) const = 0;
  // Not for "/".
  [[nodiscard]] virtual Result<WeightedGroup> look(const std::string& group) const = 0;
  [[nodiscard]] virtual Status set_weight(const std::string& group, std::uint64_t weight) const = 0;
  // cpu.idle (Linux 5.15). Set to 0 the group has the usual weight. Not for "/".
  [[nodiscard]] virtual Status set_idle(const std::string& group, bool idle) const = 0;
  // How many of the group's periods had threads that its CPU quota held back (nr_throttled of cpu.stat). Not for "/".
  [[nodiscard]] virtual Result<std::uint64_t> throttled_periods(const std::string& group) const = 0;
};

// The mount of the cpu controller, from a mountinfo text (proc_pid_mountinfo(5)): v1 if it is there, else v2.
struct GroupMount {
  enum class Version : std::uint8_t { none, v1, v2 } version = Version::none;
  std::string point;  // where
  std::string root;   // which part of the hierarchy: paths below it are relative to it
};
// controller: as v1 names it.
[[nodiscard]] GroupMount find_group_mount(std::string_view mountinfo, std::string_view controller = "cpu");
// The path of the hierarchy's line in a /proc/TID/cgroup text; empty where there is none.
[[nodiscard]] std::string group_path(std::string_view cgroup, GroupMount::Version version,
                                     std::string_view controller = "cpu");
// "/autogroup-52 nice -3\n", without the leader; empty where it is something else.
[[nodiscard]] std::optional<Autogroup> parse_autogroup(std::string_view text);

// Places and scales of weights. No name: that version has none.
struct WeightFiles {
  std::string_view controller;  // as v1 names it
  const char *v1 = nullptr, *v1_of_devices = nullptr, *v2 = nullptr;
  WeightedGroup v1_scale, v2_scale;
};
inline constexpr WeightFiles cpu_weights{.controller = "cpu",
                                         .v1 = "cpu.shares",
                                         .v2 = "cpu.weight",
                                         .v1_scale = {.nice_0_weight = 1024, .max_weight = 262144},
                                         .v2_scale = {.nice_0_weight = 100, .max_weight = 10000}};

class LinuxGroups : public Groups {
 public:
  // The mounts are looked up once, in PROC_ROOT/self/mountinfo.
  explicit LinuxGroups(std::string proc_root = "/proc") : LinuxGroups(std::move(proc_root), cpu_weights) {}

  [[nodiscard]] bool autogroups() const override;
  [[nodiscard]] Result<Autogroup> autogroup(pid_t pid) const override;
  [[nodiscard]] Status set_autogroup_nice(pid_t pid, int nice) const override;
  [[nodiscard]] std::optional<pid_t> autogroup_member(std::int64_t id) const override;
  [[nodiscard]] Result<std::string> group_of(pid_t tid) const override;
  [[nodiscard]] Result<WeightedGroup> look(const std::string& group) const override;
  [[nodiscard]] Status set_weight(const std::string& group, std::uint64_t weight) const override;
  [[nodiscard]] Status set_idle(const std::string& group, bool idle) const override;
  [[nodiscard]] Result<std::uint64_t> throttled_periods(const std::string& group) const override;

  [[nodiscard]] const GroupMount& mount() const { return mount_; }

 protected:
  LinuxGroups(std::string proc_root, const WeightFiles& files);

 private:
  [[nodiscard]] bool is_v1() const { return mount_.version == GroupMount::Version::v1; }
  [[nodiscard]] const char* weight_file() const { return is_v1() ? files_.v1 : files_.v2; }
  [[nodiscard]] std::string file(const std::string& group, const char* name) const;
  [[nodiscard]] bool has_weight(const std::string& group) const;
  void look_at_quota(const std::string& group, WeightedGroup& seen) const;

  std::string proc_;
  WeightFiles files_;
  GroupMount mount_;
};

}  // namespace swapd::sys
