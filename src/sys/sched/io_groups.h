// The cgroups that share disks, v1 (blkio) and v2 (io): their weights divide a disk between groups before what a
// thread's I/O priority says counts inside of one (Documentation/block/bfq-iosched.rst, section 4; cgroup-v2.rst,
// "IO").
//
// There are two such weights, each of files of its own: the scheduler bfq has one, blk-iocost the other. One counts
// where some disk is shared by it; where none is, no thread's group is told.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "sys/sched/groups.h"

namespace swapd::sys {

inline constexpr WeightFiles bfq_weights{.controller = "blkio",
                                         .v1 = "blkio.bfq.weight",
                                         .v1_of_devices = "blkio.bfq.weight_device",
                                         .v2 = "io.bfq.weight",
                                         .v1_scale = {.nice_0_weight = 100, .max_weight = 1000},
                                         .v2_scale = {.nice_0_weight = 100, .max_weight = 1000}};
inline constexpr WeightFiles iocost_weights{
    .controller = "blkio", .v2 = "io.weight", .v1_scale = {}, .v2_scale = {.nice_0_weight = 100, .max_weight = 10000}};

class LinuxIoGroups final : public LinuxGroups {
 public:
  enum class By : std::uint8_t { bfq, iocost };
  explicit LinuxIoGroups(By by, std::string proc_root = "/proc", std::string sys_root = "/sys");
  // Looks anew whether they count. Any thread.
  void refresh();
  [[nodiscard]] bool count() const { return counts_.load(std::memory_order_relaxed); }

  [[nodiscard]] bool autogroups() const override { return false; }
  [[nodiscard]] Result<Autogroup> autogroup(pid_t) const override { return Error(ENOENT, "autogroup"); }
  // ENOTSUP: they do not count.
  [[nodiscard]] Result<std::string> group_of(pid_t tid) const override;

 private:
  [[nodiscard]] bool bfq_is_in_use() const;
  [[nodiscard]] bool iocost_is_on() const;

  std::string sys_root_;
  By by_;
  std::atomic<bool> counts_{false};
};

}  // namespace swapd::sys
