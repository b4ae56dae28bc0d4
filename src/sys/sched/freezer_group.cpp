#include "sys/sched/freezer_group.h"

#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

#include "sys/kernel_file.h"
#include "sys/procfs/procfs_path.h"
#include "sys/sched/freezer.h"

namespace swapd::sys {
namespace {

constexpr std::string_view v1_control = "/freezer.state", v2_control = "/cgroup.freeze";
constexpr int max_tries = 10;  // of a group in which programs fork while it is emptied

Status move_to(const std::string& directory, pid_t tgid) {
  return write_text(directory + "/cgroup.procs", std::to_string(tgid));
}

std::string above(const std::string& directory) { return directory.substr(0, directory.rfind('/')); }

bool may_be_own(const std::string& directory) {
  return directory.starts_with('/') && directory.rfind('/') != 0 &&
         (directory + "/").find("/../") == std::string::npos && FreezerGroup::is_own(directory);
}

std::vector<pid_t> processes_in(const std::string& directory) {
  std::vector<pid_t> out;
  const auto text = read_text(directory + "/cgroup.procs");
  if (!text) return out;
  const char* at = text->data();
  const char* const end = at + text->size();
  while (at < end) {
    pid_t pid = 0;
    const auto read = std::from_chars(at, end, pid);
    if (read.ec != std::errc()) break;
    if (pid > 0) out.push_back(pid);  // 0: of another pid namespace
    at = read.ptr + 1;
  }
  return out;
}

// The directory of the group that it is in.
Result<std::string> group_of(pid_t tgid, const std::string& proc_root, const std::string& cgroups) {
  const auto text = read_text(ProcPath(proc_root, tgid, "cgroup").c_str());
  if (!text) return text.error();
  const auto groups = parse::freezer_groups(*text);
  const auto is_group = [](const std::string& directory) {
    return ::access((directory + "/cgroup.procs").c_str(), W_OK) == 0;
  };
  const std::string v1 = cgroups + "/freezer", unified = cgroups + "/unified";
  const bool old = is_group(v1);
  const std::string root = old ? v1 : is_group(unified) ? unified : cgroups;
  const auto& path = old ? groups.v1 : groups.v2;
  if (!path) return Error(ENODEV, "it is in no cgroup that freezes, or in one of another namespace");
  std::string out = root + *path;
  if (!is_group(out)) return Error(ENODEV, "no cgroup freezer at " + out);
  return FreezerGroup::is_own(out) ? above(out) : out;  // its parent's
}

}  // namespace

std::string_view thawed(std::string_view control_file) { return control_file.ends_with(v2_control) ? "0" : "THAWED"; }

FreezerGroup::FreezerGroup(std::string directory)
    : directory_(std::move(directory)), v2_(::access((directory_ + std::string(v2_control)).c_str(), F_OK) == 0) {}

FreezerGroup::FreezerGroup(FreezerGroup&& other) noexcept
    : directory_(std::exchange(other.directory_, {})), v2_(other.v2_) {}

FreezerGroup& FreezerGroup::operator=(FreezerGroup&& other) noexcept {
  std::swap(directory_, other.directory_);
  std::swap(v2_, other.v2_);
  return *this;
}

Result<std::string> FreezerGroup::place_for(pid_t tgid, const std::string& proc_root, const std::string& cgroups) {
  const auto parent = group_of(tgid, proc_root, cgroups);
  if (!parent) return parent.error();
  std::uint64_t number = 0;  // so that no user who may make groups there has it already
  if (::getrandom(&number, sizeof number, 0) != sizeof number) return errno_error("getrandom");
  std::array<char, 17> hex{};
  std::snprintf(hex.data(), hex.size(), "%016llx", static_cast<unsigned long long>(number));
  return *parent + "/" + std::string(prefix) + std::to_string(tgid) + "-" + hex.data();
}

Result<FreezerGroup> FreezerGroup::make(const std::string& directory, pid_t tgid) {
  if (!may_be_own(directory)) return Error(EINVAL, directory);
  if (::mkdir(directory.c_str(), 0755) != 0) return errno_error(directory);
  // As the one above: a user who may see and divide that may do so here.
  struct stat above_it {};
  if (::stat(above(directory).c_str(), &above_it) == 0) {
    (void)::chmod(directory.c_str(), above_it.st_mode & 0777U);
    (void)!::chown(directory.c_str(), above_it.st_uid, above_it.st_gid);
  }
  FreezerGroup group(directory);  // from here on it goes again where something fails
  if (::access(group.control_file().c_str(), W_OK) != 0) return Error(ENODEV, "no cgroup freezer at " + directory);
  if (Status clear = group.thaw(); !clear) return clear.error();
  if (Status moved = move_to(directory, tgid); !moved) return moved.error();
  return group;
}

Result<FreezerGroup> FreezerGroup::found(const std::string& directory) {
  if (!may_be_own(directory)) return Error(EINVAL, directory);
  if (::access((directory + "/cgroup.procs").c_str(), W_OK) != 0) return errno_error(directory);
  return FreezerGroup(directory);
}

bool FreezerGroup::is_own(std::string_view path) {
  const std::size_t last = path.rfind('/');
  return last != std::string_view::npos && path.substr(last + 1).starts_with(prefix);
}

bool FreezerGroup::dissolve() {
  if (directory_.empty()) return true;
  (void)thaw();
  (void)keep_only(0);
  if (::rmdir(directory_.c_str()) != 0 && errno != ENOENT) return false;
  directory_.clear();
  return true;
}

FreezerGroup::~FreezerGroup() {
  for (int i = 0; i < max_tries && !dissolve(); ++i) continue;
}

bool FreezerGroup::has_groups() const {
  struct stat st {};
  return ::stat(directory_.c_str(), &st) == 0 && st.st_nlink > 2;
}

Status FreezerGroup::freeze() const { return write_text(control_file(), v2_ ? "1" : "FROZEN"); }
Status FreezerGroup::thaw() const { return write_text(control_file(), thawed(control_file())); }

bool FreezerGroup::keep_only(pid_t tgid) const {
  bool kept = false;
  for (const pid_t other : processes_in(directory_)) {
    if (other == tgid)
      kept = true;
    else
      (void)move_to(above(directory_), other);
  }
  return kept;
}

std::string FreezerGroup::control_file() const { return directory_ + std::string(v2_ ? v2_control : v1_control); }

}  // namespace swapd::sys
