#include "sys/sched/io_groups.h"

#include <filesystem>
#include <string_view>
#include <utility>

#include "sys/kernel_file.h"

namespace swapd::sys {
namespace {

bool contains(const std::string& file, std::string_view word) {
  const auto text = read_text(file);
  return text.ok() && text->find(word) != std::string::npos;
}

}  // namespace

LinuxIoGroups::LinuxIoGroups(By by, std::string proc_root, std::string sys_root)
    : LinuxGroups(std::move(proc_root), by == By::bfq ? bfq_weights : iocost_weights),
      sys_root_(std::move(sys_root)),
      by_(by) {
  refresh();
}

void LinuxIoGroups::refresh() {
  if (mount().version == GroupMount::Version::none) return;
  counts_.store(by_ == By::bfq ? bfq_is_in_use() : iocost_is_on(), std::memory_order_relaxed);
}

bool LinuxIoGroups::bfq_is_in_use() const {
  std::error_code error;
  std::filesystem::directory_iterator disk(sys_root_ + "/block", error);
  for (; !error && disk != std::filesystem::directory_iterator(); disk.increment(error))
    if (contains(disk->path() / "queue/scheduler", "[bfq]")) return true;
  return false;
}

// One line a disk, in the root group alone.
bool LinuxIoGroups::iocost_is_on() const { return contains(mount().point + "/io.cost.qos", "enable=1"); }

Result<std::string> LinuxIoGroups::group_of(pid_t tid) const {
  if (!count()) return Error(ENOTSUP, "finding the group of thread " + std::to_string(tid) + ": weights do not count");
  return LinuxGroups::group_of(tid);
}

}  // namespace swapd::sys
