#include "sys/procfs/block_devices.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>

#include "base/fd.h"
#include "sys/procfs/procfs_path.h"
#include "sys/procfs/procfs_read.h"

namespace swapd::sys {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t longest_chain = 16;

std::optional<dev_t> parse_number(std::string_view text) {
  unsigned major = 0, minor = 0;
  const char* end = text.data() + text.size();
  auto read = std::from_chars(text.data(), end, major);
  if (read.ec != std::errc() || read.ptr == end || *read.ptr != ':') return std::nullopt;
  read = std::from_chars(read.ptr + 1, end, minor);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return ::makedev(major, minor);
}

std::string first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

std::string number_text(dev_t device) {
  return std::to_string(::major(device)) + ":" + std::to_string(::minor(device));
}

}  // namespace

BlockDevices::BlockDevices(std::string sys_root, std::string proc_root)
    : sys_root_(std::move(sys_root)), proc_root_(std::move(proc_root)) {}

std::string BlockDevices::directory(dev_t device) const { return sys_root_ + "/dev/block/" + number_text(device); }

bool BlockDevices::is_partition(dev_t device) const {
  std::error_code none;
  return fs::exists(directory(device) + "/partition", none);
}

std::string BlockDevices::name(dev_t device) const {
  std::error_code none;
  const fs::path link = fs::read_symlink(directory(device), none);
  return none ? number_text(device) : link.filename().string();
}

namespace {

// File systems without a disk of this machine.
bool has_no_disk(std::string_view type) {
  constexpr std::string_view none[] = {"tmpfs",    "ramfs",  "proc",       "sysfs",    "devtmpfs",   "devpts", "cgroup",
                                       "cgroup2",  "mqueue", "hugetlbfs",  "nfs",      "nfs4",       "cifs",   "smb3",
                                       "9p",       "ceph",   "debugfs",    "tracefs",  "securityfs", "bpf",    "pstore",
                                       "virtiofs", "autofs", "rpc_pipefs", "configfs", "binfmt_misc"};
  return std::ranges::find(none, type) != std::end(none) || type == "fuse" || type.starts_with("fuse.");
}

}  // namespace

Result<MountEntry> BlockDevices::mount_of(dev_t device) const {
  const auto text = read_all((proc_root_ + "/self/mountinfo").c_str());
  for (const MountEntry& entry : parse_mountinfo(text ? std::string_view(*text) : ""))
    if (entry.dev == device) return entry;
  return Error(ENOENT, "no mount of device " + number_text(device));
}

std::vector<dev_t> BlockDevices::below(const MountEntry& mount, dev_t device) const {
  struct stat found {};
  if (const std::string upper = mount_option(mount.options, "upperdir"); !upper.empty()) {
    if (::stat(upper.c_str(), &found) == 0 && found.st_dev != device) return {found.st_dev};
  } else if (mount.source.starts_with('/') && ::stat(mount.source.c_str(), &found) == 0 && S_ISBLK(found.st_mode)) {
    return {found.st_rdev};
  }
  return {};
}

BlockDevices::Opened BlockDevices::opened(pid_t tid, int fd) const {
  Opened out;
  struct statx st {};
  if (::statx(AT_FDCWD, ProcPath(proc_root_, tid, "fd/", fd).c_str(), AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT,
              STATX_MNT_ID, &st) != 0 ||
      (st.stx_mask & STATX_MNT_ID) == 0)
    return out;
  const auto text = read_all(ProcPath(proc_root_, tid, "mountinfo").c_str());
  for (const MountEntry& entry : parse_mountinfo(text ? std::string_view(*text) : "")) {
    if (entry.id != st.stx_mnt_id) continue;
    out.on_disk = !has_no_disk(entry.type);
    for (const dev_t one : below(entry, 0))
      for (const dev_t each : chain(one)) out.devices.push_back(each);
    break;
  }
  return out;
}

std::vector<dev_t> BlockDevices::below(dev_t device) const {
  std::vector<dev_t> out;
  std::error_code none;
  const fs::path here = directory(device);
  if (::major(device) == 0 || !fs::exists(here, none)) {  // a file system's own number
    const auto mount = mount_of(device);
    if (!mount) return out;
    return below(*mount, device);
  }
  if (fs::exists(here / "partition", none)) {
    if (const auto disk = parse_number(first_line(here / ".." / "dev"))) out.push_back(*disk);
  }
  for (const auto& slave : fs::directory_iterator(here / "slaves", none))
    if (const auto number = parse_number(first_line(slave.path() / "dev"))) out.push_back(*number);
  if (const std::string file = first_line(here / "loop" / "backing_file"); !file.empty()) {
    struct stat found {};
    if (::stat(file.c_str(), &found) == 0) out.push_back(S_ISBLK(found.st_mode) ? found.st_rdev : found.st_dev);
  }
  return out;
}

std::vector<dev_t> BlockDevices::chain(dev_t device) const {
  std::vector<dev_t> out;
  std::error_code none;
  const auto is_disk = [&](dev_t one) { return ::major(one) != 0 && fs::exists(directory(one), none); };
  std::vector<dev_t> open = {device};
  for (std::size_t i = 0; i < open.size() && open.size() < longest_chain; ++i)
    for (const dev_t one : below(open[i]))
      if (std::ranges::find(open, one) == open.end()) open.push_back(one);
  std::ranges::copy_if(open, std::back_inserter(out), is_disk);
  return out;
}

Result<dev_t> BlockDevices::find(const std::string& text) const {
  std::error_code none;
  if (const auto number = parse_number(text)) {
    if (fs::exists(directory(*number), none)) return *number;
    return Error(ENOENT, "no disk " + text);
  }
  if (!text.starts_with('/')) return Error(EINVAL, "'" + text + "' is neither an absolute path nor MAJOR:MINOR");
  struct stat found {};
  if (::stat(text.c_str(), &found) != 0) return errno_error(text);
  if (S_ISBLK(found.st_mode)) return found.st_rdev;
  const auto devices = chain(found.st_dev);
  if (!devices.empty()) return devices.front();
  const Fd file(::open(text.c_str(), O_PATH | O_CLOEXEC));
  if (const Opened there = opened(::getpid(), file.get()); file && !there.devices.empty()) return there.devices.front();
  const auto mount = mount_of(found.st_dev);
  return Error(ENODEV, text + " is on no disk" + (mount ? " (" + mount->type + ")" : std::string()));
}

}  // namespace swapd::sys
