// The cgroups that share a disk, v1 (blkio) and v2 (io): their weights divide it between groups before what a thread's
// I/O priority says counts inside of one (Documentation/block/bfq-iosched.rst, section 4; cgroup-v2.rst, "IO").
//
// A weight counts where a disk's scheduler is bfq, or blk-iocost is on; where neither is, every thread is said to be in
// the root, of which nothing can be changed.
#pragma once

#include <atomic>
#include <string>

#include "sys/groups.h"

namespace swapd::sys {

class LinuxIoGroups final : public LinuxGroups {
 public:
  explicit LinuxIoGroups(std::string proc_root = "/proc", std::string sys_root = "/sys");
  // Looks anew whether weights count. Any thread.
  void refresh();
  [[nodiscard]] bool count() const { return counts_.load(std::memory_order_relaxed); }

  [[nodiscard]] bool autogroups() const override { return false; }
  [[nodiscard]] Result<Autogroup> autogroup(pid_t) const override { return Error(ENOENT, "autogroup"); }
  [[nodiscard]] Result<std::string> cpu_group(pid_t tid) const override;

 private:
  enum class By : std::uint8_t { bfq, iocost };
  [[nodiscard]] const char* weight_file() const override;
  [[nodiscard]] CpuGroup scale() const override;

  std::string sys_root_;
  std::atomic<bool> counts_{false};
  std::atomic<By> by_{By::bfq};  // stays when they do not count any more: what was changed is given back
};

}  // namespace swapd::sys
