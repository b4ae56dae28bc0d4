#include "sys/io_groups.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

namespace swapd::sys {
namespace {

bool contains(const std::filesystem::path& file, std::string_view word) {
  std::ifstream in(file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  return text.find(word) != std::string::npos;
}

}  // namespace

LinuxIoGroups::LinuxIoGroups(std::string proc_root, std::string sys_root)
    : LinuxGroups(std::move(proc_root), "blkio"), sys_root_(std::move(sys_root)) {
  refresh();
}

void LinuxIoGroups::refresh() {
  if (mount().version == CpuMount::Version::none) return;
  bool bfq = false;
  std::error_code error;
  for (const auto& disk : std::filesystem::directory_iterator(sys_root_ + "/block", error))
    bfq = bfq || contains(disk.path() / "queue/scheduler", "[bfq]");
  const bool iocost =
      !bfq && mount().version == CpuMount::Version::v2 && contains(file("/", "io.cost.qos"), "enable=1");
  if (bfq || iocost) by_.store(bfq ? By::bfq : By::iocost, std::memory_order_relaxed);
  counts_.store(bfq || iocost, std::memory_order_relaxed);
}

const char* LinuxIoGroups::weight_file() const {
  if (mount().version == CpuMount::Version::v1) return "blkio.bfq.weight";
  return by_.load(std::memory_order_relaxed) == By::bfq ? "io.bfq.weight" : "io.weight";
}

CpuGroup LinuxIoGroups::scale() const {
  CpuGroup out;
  out.nice_0_weight = 100;
  out.max_weight = by_.load(std::memory_order_relaxed) == By::iocost ? 10000 : 1000;
  return out;
}

Result<std::string> LinuxIoGroups::cpu_group(pid_t tid) const {
  if (!count()) return std::string("/");
  return LinuxGroups::cpu_group(tid);
}

}  // namespace swapd::sys
