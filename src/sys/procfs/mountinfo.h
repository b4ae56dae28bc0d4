// The mounts in the text of /proc/PID/mountinfo (proc_pid_mountinfo(5)).
//
// libmount parses it too; but it and the three libraries it needs would add 1.5 MB to what swapd locks in memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace swapd::sys {

struct MountEntry {
  std::uint64_t id = 0;   // as statx(2) gives it (STATX_MNT_ID)
  std::uint64_t dev = 0;  // st_dev of its files
  std::string root;       // the part of the file system that is mounted
  std::string point;      // where
  std::string type;       // "ext4", "fuse.sshfs"
  std::string source;     // "/dev/sda1"; for some types any text
  std::string options;    // of the file system, with commas between; blanks stay \040
};

// Nothing: the text is no line of the file.
[[nodiscard]] std::optional<MountEntry> parse_mount(std::string_view line);
// In the file's order; other lines are left out. Of two mounts at one point the later covers the earlier.
[[nodiscard]] std::vector<MountEntry> parse_mountinfo(std::string_view text);
// The value of key=value. Empty: the options do not have it.
[[nodiscard]] std::string mount_option(std::string_view options, std::string_view key);

}  // namespace swapd::sys
