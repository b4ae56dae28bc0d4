// The disk that a file is on: from st_dev through partitions, device mapper, loop devices and file systems of several
// devices down to the disk (sysfs: Documentation/ABI/testing/sysfs-block; proc_pid_mountinfo(5)). The roots are
// parameters.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "sys/procfs/mountinfo.h"

namespace swapd::sys {

class BlockDevices {
 public:
  explicit BlockDevices(std::string sys_root = "/sys", std::string proc_root = "/proc");

  // The device itself, then what it lies on, nearest first, at most 16: a partition's disk, the parts of a volume, the
  // file of a loop device, the upper layer of an overlay. Empty: on no disk (tmpfs, procfs, network file systems).
  [[nodiscard]] std::vector<dev_t> chain(dev_t device) const;
  // For a file that `chain` knows nothing of (btrfs, a mount of another namespace): by the mount that it was opened on.
  struct Opened {
    bool on_disk = true;         // false: of a kind that has none (tmpfs, proc, nfs …)
    std::vector<dev_t> devices;  // empty, and on_disk: it cannot be told which
  };
  [[nodiscard]] Opened opened(pid_t tid, int fd) const;
  // The disk of a path, of a device's path ("/dev/sda"), or MAJOR:MINOR. ENOENT; ENODEV: on no disk, with the file
  // system's type; EINVAL: not of that form.
  [[nodiscard]] Result<dev_t> find(const std::string& text) const;
  [[nodiscard]] bool is_partition(dev_t device) const;
  // "vda1", or "254:1".
  [[nodiscard]] std::string name(dev_t device) const;

 private:
  [[nodiscard]] std::vector<dev_t> below(dev_t device) const;
  [[nodiscard]] std::string directory(dev_t device) const;
  [[nodiscard]] Result<MountEntry> mount_of(dev_t device) const;
  [[nodiscard]] std::vector<dev_t> below(const MountEntry& mount, dev_t device) const;

  std::string sys_root_, proc_root_;
};

}  // namespace swapd::sys
