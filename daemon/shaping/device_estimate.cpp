#include "shaping/device_estimate.h"
#include "sys/procfs/procfs_path.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <unordered_map>

namespace swapd::daemon {
namespace {

using decide::Device;

constexpr Duration guess_believed = std::chrono::seconds(1);
constexpr Duration guess_of_new = std::chrono::milliseconds(5);  // as it starts it becomes another, and moves
constexpr std::size_t max_guessed = 1024;
constexpr std::size_t max_files = 128;
constexpr int max_mappings = 4096;
constexpr int max_sockets = 8;  // to ask for a route takes the kernel long

struct Votes {
  std::map<Device, std::size_t> count;
  void add(const Device& device, const decide::ClassLimits& limits) {
    if (device.number != 0) count[device] += limits.devices.contains(device) ? max_files : 1;
  }
  [[nodiscard]] std::optional<Device> most() const {
    const auto found = std::ranges::max_element(count, {}, [](const auto& entry) { return entry.second; });
    return found == count.end() ? std::nullopt : std::optional(found->first);
  }
};

// The nearest that the class names, else the nearest that is no partition.
Device meant_of(std::span<const dev_t> chain, const sys::BlockDevices& disks, const decide::ClassLimits& limits) {
  const auto named = std::ranges::find_if(chain, [&](dev_t one) {
    return limits.devices.contains({Device::Kind::disk, observe::disk_number(one)});
  });
  const auto whole = std::ranges::find_if(chain, [&](dev_t one) { return !disks.is_partition(one); });
  const dev_t meant = named != chain.end() ? *named : whole != chain.end() ? *whole : chain.front();
  return {Device::Kind::disk, observe::disk_number(meant)};
}

}  // namespace

Device disk_of(const observe::IoTarget& target, const decide::ClassLimits& limits) {
  for (const std::uint64_t number : target.devices)
    if (const Device named{Device::Kind::disk, number}; limits.devices.contains(named)) return named;
  return {Device::Kind::disk, target.device};
}

std::optional<Device> disk_of_mappings(const sys::Procfs& procfs, const sys::BlockDevices& disks, pid_t tgid,
                                       const decide::ClassLimits& limits) {
  std::unordered_map<std::uint64_t, std::uint64_t> sizes;  // by device
  int seen = 0;
  procfs.each_mapping(tgid, [&](const sys::Mapping& m, std::string_view) {
    if (m.ino != 0) sizes[m.dev] += m.end - m.start;
    return ++seen < max_mappings;
  });
  std::uint64_t largest = 0;
  std::optional<Device> out;
  for (const auto& [device, size] : sizes) {
    if (size <= largest) continue;
    const auto chain = disks.chain(device);
    if (chain.empty()) continue;
    largest = size;
    out = meant_of(chain, disks, limits);
  }
  return out;
}

FileDevices devices_of_files(const sys::Procfs& procfs, observe::IoTargets& targets, pid_t tid,
                             const decide::ClassLimits& limits, Time now) {
  const auto files = procfs.fds(tid, max_files).value_or({});
  Votes disks, links;
  int sockets = 0;
  for (const int fd : files) {
    const auto identity = procfs.fd_identity(tid, fd);
    if (!identity || (S_ISSOCK(identity->mode) && ++sockets > max_sockets)) continue;
    const auto target = targets.find(tid, fd, {}, now);
    if (!target) continue;
    if (target->kind == observe::IoTarget::Kind::disk) disks.add(disk_of(*target, limits), limits);
    if (target->kind == observe::IoTarget::Kind::network) links.add({Device::Kind::network, target->device}, limits);
  }
  return {.disk = disks.most(), .link = links.most()};
}

std::optional<Device> disk_of_directories(const sys::Procfs& procfs, const sys::BlockDevices& disks,
                                          observe::IoTargets& targets, pid_t tgid, const decide::ClassLimits& limits,
                                          Time now) {
  const auto open = devices_of_files(procfs, targets, tgid, limits, now).disk;
  if (open && limits.devices.contains(*open)) return open;
  const sys::ProcPath path(procfs.root(), tgid, "cwd");
  struct statx directory {};
  if (::statx(AT_FDCWD, path.c_str(), AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE, &directory) == 0) {
    const auto chain = disks.chain(::makedev(directory.stx_dev_major, directory.stx_dev_minor));
    if (!chain.empty()) return meant_of(chain, disks, limits);
  }
  return open;
}

LikelyDevices::Process& LikelyDevices::process(pid_t tgid) {
  if (processes_.size() >= max_guessed && !processes_.contains(tgid)) processes_.clear();
  return processes_[tgid];
}

std::optional<Device> LikelyDevices::pages(pid_t tgid, const decide::ClassLimits& limits, Time now) {
  Process& process = this->process(tgid);
  if (now - process.pages_sought < guess_believed) return process.pages;
  process.pages_sought = now;
  return process.pages = disk_of_mappings(procfs_, disks_, tgid, limits);
}

std::optional<Device> LikelyDevices::directories(pid_t tgid, const decide::ClassLimits& limits, Time now) {
  Process& process = this->process(tgid);
  if (process.met == Time{}) process.met = now;
  const Duration again = now - process.met < guess_believed ? guess_of_new : guess_believed;
  if (now - process.directories_sought < again) return process.directories;
  process.directories_sought = now;
  return process.directories = disk_of_directories(procfs_, disks_, targets_, tgid, limits, now);
}

FileDevices LikelyDevices::files(pid_t tgid, pid_t tid, const decide::ClassLimits& limits, Time now) {
  Process& process = this->process(tgid);
  if (now - process.files_sought < guess_believed) return process.files;
  process.files_sought = now;
  return process.files = devices_of_files(procfs_, targets_, tid, limits, now);
}

FileDevices LikelyDevices::known(pid_t tgid) const {
  const auto found = processes_.find(tgid);
  return found == processes_.end() ? FileDevices{} : found->second.files;
}

}  // namespace swapd::daemon
