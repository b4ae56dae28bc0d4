#include "sys/sched/groups.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <utility>
#include <vector>

#include "sys/kernel_file.h"
#include "sys/procfs/mountinfo.h"
#include "sys/procfs/procfs_path.h"

namespace swapd::sys {
namespace {

template <typename Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

// The text before the next separator; the view moves on behind it.
std::string_view cut(std::string_view& text, char separator) {
  const std::size_t at = text.find(separator);
  const std::string_view head = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return head;
}

bool lists(std::string_view list, std::string_view word) {
  while (!list.empty())
    if (cut(list, ',') == word) return true;
  return false;
}

constexpr std::string_view of_all_devices = "default ";

// Weights of disks: "default 100", or in v1 "100" in a file of its own, and then a line "8:0 200" for each.
bool names_devices(std::string_view weights) {
  while (!weights.empty())
    if (cut(weights, '\n').find(':') != std::string_view::npos) return true;
  return false;
}

std::string parent(const std::string& group) {
  const std::size_t slash = group.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : group.substr(0, slash);
}

}  // namespace

GroupMount find_group_mount(std::string_view mountinfo, std::string_view controller) {
  GroupMount found;
  for (MountEntry& mount : parse_mountinfo(mountinfo)) {
    const bool v1 = mount.type == "cgroup" && lists(mount.options, controller);
    const bool v2 = mount.type == "cgroup2" && found.version == GroupMount::Version::none;
    if (!v1 && !v2) continue;
    found = {.version = v1 ? GroupMount::Version::v1 : GroupMount::Version::v2,
             .point = std::move(mount.point),
             .root = std::move(mount.root)};
    if (v1) return found;  // a controller that is mounted as v1 is not in v2
  }
  return found;
}

std::string group_path(std::string_view cgroup, GroupMount::Version version, std::string_view controller) {
  while (!cgroup.empty()) {
    std::string_view line = cut(cgroup, '\n');  // ID:CONTROLLERS:PATH, in v2 0::PATH
    const std::string_view id = cut(line, ':');
    const std::string_view controllers = cut(line, ':');
    const bool wanted =
        version == GroupMount::Version::v1 ? lists(controllers, controller) : id == "0" && controllers.empty();
    if (wanted) return std::string(line);
  }
  return {};
}

std::optional<Autogroup> parse_autogroup(std::string_view text) {
  constexpr std::string_view prefix = "/autogroup-";
  constexpr std::string_view middle = "nice ";
  if (!text.starts_with(prefix)) return std::nullopt;
  text.remove_prefix(prefix.size());
  const auto id = number<std::int64_t>(cut(text, ' '));
  if (!id || !text.starts_with(middle)) return std::nullopt;
  const auto nice = number<int>(text.substr(middle.size()));
  if (!nice) return std::nullopt;
  return Autogroup{*id, *nice, 0};
}

LinuxGroups::LinuxGroups(std::string proc_root, const WeightFiles& files) : proc_(std::move(proc_root)), files_(files) {
  if (const auto text = read_text(proc_ + "/self/mountinfo"); text.ok())
    mount_ = find_group_mount(*text, files_.controller);
  if (weight_file() == nullptr) mount_ = {};
}

bool LinuxGroups::autogroups() const {
  const auto text = read_text(proc_ + "/sys/kernel/sched_autogroup_enabled");
  return text.ok() && text->starts_with('1');
}

Result<Autogroup> LinuxGroups::autogroup(pid_t pid) const {
  const std::string path = ProcPath(proc_, pid, "autogroup").c_str();
  auto text = read_text(path);
  if (!text.ok()) return std::move(text).error();
  std::optional<Autogroup> group = parse_autogroup(*text);
  if (!group) return Error(text->empty() ? ENOENT : EINVAL, "understanding " + path);
  group->leader = std::max<pid_t>(::getsid(pid), 0);
  return *group;
}

Status LinuxGroups::set_autogroup_nice(pid_t pid, int nice) const {
  return write_text(ProcPath(proc_, pid, "autogroup").c_str(), std::to_string(nice));
}

std::optional<pid_t> LinuxGroups::autogroup_member(std::int64_t id) const {
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(proc_.c_str()), ::closedir);
  if (!dir) return std::nullopt;
  while (const dirent* entry = ::readdir(dir.get())) {
    const auto pid = number<pid_t>(entry->d_name);
    if (!pid) continue;
    if (const auto group = autogroup(*pid); group.ok() && group->id == id) return pid;
  }
  return std::nullopt;
}

std::string LinuxGroups::file(const std::string& group, const char* name) const {
  return mount_.point + (group == "/" ? "" : group) + "/" + name;
}

bool LinuxGroups::has_weight(const std::string& group) const {
  return ::access(file(group, weight_file()).c_str(), F_OK) == 0;
}

Result<std::string> LinuxGroups::group_of(pid_t tid) const {
  if (mount_.version == GroupMount::Version::none) return std::string("/");
  auto text = read_text(ProcPath(proc_, tid, "cgroup").c_str());
  if (!text.ok()) return std::move(text).error();
  std::string group = group_path(*text, mount_.version, files_.controller);
  if (group.empty()) return std::string("/");
  // Outside what is mounted here (another cgroup namespace): it cannot be reached, and nothing can be said of it.
  if (group.starts_with("/..")) return Error(EXDEV, "finding the cpu group of thread " + std::to_string(tid));
  if (mount_.root != "/") {
    const bool inside =
        group.starts_with(mount_.root) && (group.size() == mount_.root.size() || group[mount_.root.size()] == '/');
    if (!inside) return Error(EXDEV, "finding the cpu group of thread " + std::to_string(tid));
    group.erase(0, mount_.root.size());
    if (group.empty()) group = "/";
  }
  if (mount_.version == GroupMount::Version::v2)
    while (group != "/" && !has_weight(group)) group = parent(group);
  return group;
}

Result<WeightedGroup> LinuxGroups::look(const std::string& group) const {
  auto weight = read_text(file(group, weight_file()));
  if (!weight.ok())
    return std::move(weight).error().in("looking at " + std::string(files_.controller) + " group " + group);
  WeightedGroup seen = is_v1() ? files_.v1_scale : files_.v2_scale;
  std::string_view value = *weight;
  if (value.starts_with(of_all_devices)) value.remove_prefix(of_all_devices.size());
  seen.weight = number<std::uint64_t>(value).value_or(0);
  struct stat info {};
  if (::stat(file(group, weight_file()).c_str(), &info) == 0) {
    const bool trusted = info.st_uid == 0 || info.st_uid == ::geteuid();
    seen.delegated = !trusted || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  }
  if (!is_v1()) seen.of_devices = names_devices(*weight);
  if (is_v1() && files_.v1_of_devices != nullptr)
    if (const auto text = read_text(file(group, files_.v1_of_devices)); text.ok())
      seen.of_devices = names_devices(*text);
  if (files_.controller != cpu_weights.controller) return seen;
  if (const auto idle = read_text(file(group, "cpu.idle")); idle.ok()) seen.idle = idle->starts_with('1');
  look_at_quota(group, seen);
  return seen;
}

void LinuxGroups::look_at_quota(const std::string& group, WeightedGroup& seen) const {
  if (!is_v1()) {
    if (const auto max = read_text(file(group, "cpu.max")); max.ok()) {  // "max 100000" or "50000 100000"
      std::string_view rest = *max;
      const auto quota = number<double>(cut(rest, ' '));
      const auto period = number<double>(rest);
      if (quota && period && *period > 0) seen.quota = *quota / *period;
    }
    return;
  }
  const auto quota = read_text(file(group, "cpu.cfs_quota_us"));
  const auto period = read_text(file(group, "cpu.cfs_period_us"));
  if (quota.ok() && period.ok()) {
    const double us = number<double>(*quota).value_or(-1);
    const double per = number<double>(*period).value_or(0);
    if (us > 0 && per > 0) seen.quota = us / per;
  }
  if (const auto runtime = read_text(file(group, "cpu.rt_runtime_us")); runtime.ok())
    seen.rt_runtime_us = number<std::int64_t>(*runtime).value_or(-1);
}

Status LinuxGroups::set_idle(const std::string& group, bool idle) const {
  return write_text(file(group, "cpu.idle"), idle ? "1" : "0");
}

Result<std::uint64_t> LinuxGroups::throttled_periods(const std::string& group) const {
  auto text = read_text(file(group, "cpu.stat"));
  if (!text.ok()) return std::move(text).error();
  constexpr std::string_view key = "nr_throttled";
  for (std::string_view rest = *text; !rest.empty();) {
    std::string_view line = cut(rest, '\n');
    if (cut(line, ' ') == key) return number<std::uint64_t>(line).value_or(0);
  }
  return Error(ENOENT, "finding " + std::string(key) + " of " + group);  // v2 without the controller
}

// bfq forgets those of single disks with that.
Status LinuxGroups::set_weight(const std::string& group, std::uint64_t weight) const {
  const char* of_devices = is_v1() ? files_.v1_of_devices : files_.v2;
  std::string kept;
  if (of_devices != nullptr) kept = read_text(file(group, of_devices)).value_or("");
  auto written = write_text(file(group, weight_file()), std::to_string(weight));
  for (std::string_view rest = kept; written.ok() && !rest.empty();)
    if (const std::string_view line = cut(rest, '\n'); names_devices(line))
      (void)write_text(file(group, of_devices), std::string(line));
  return written;
}

}  // namespace swapd::sys
