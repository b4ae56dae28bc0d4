// On which device it is that a process moves what it does not name: pages of mapped files, and what a ring is told to
// do. A guess, by what it has open.
#pragma once

#include <sys/types.h>

#include <optional>
#include <unordered_map>

#include "base/time.h"
#include "decide/shaping/shaping.h"
#include "observe/io/io_target.h"
#include "sys/procfs/block_devices.h"
#include "sys/procfs/procfs.h"

namespace swapd::daemon {

// The nearest device under a file that the class names, else the whole disk it is on.
[[nodiscard]] decide::Device disk_of(const observe::IoTarget& target, const decide::ClassLimits& limits);

// That of the largest files that it has mapped; nothing: none is on a disk. Looks at the first 4096 mappings.
[[nodiscard]] std::optional<decide::Device> disk_of_mappings(const sys::Procfs& procfs, const sys::BlockDevices& disks,
                                                             pid_t tgid, const decide::ClassLimits& limits);

// Those of most of its open files and connections, before them those that the class names; nothing: it has none open.
// Looks at the first 128 descriptors, and at the links of eight sockets.
struct FileDevices {
  std::optional<decide::Device> disk, link;
};
[[nodiscard]] FileDevices devices_of_files(const sys::Procfs& procfs, observe::IoTargets& targets, pid_t tid,
                                           const decide::ClassLimits& limits, Time now);

// The disk of the directories and inodes that the process looks at: a disk that the class names, if the process has
// something open on it; else that of its working directory; else the one that most of its open files are on.
[[nodiscard]] std::optional<decide::Device> disk_of_directories(const sys::Procfs& procfs,
                                                                const sys::BlockDevices& disks,
                                                                observe::IoTargets& targets, pid_t tgid,
                                                                const decide::ClassLimits& limits, Time now);

// All of these, each looked for once a second at most. One thread.
class LikelyDevices {
 public:
  LikelyDevices(const sys::Procfs& procfs, const sys::BlockDevices& disks, observe::IoTargets& targets)
      : procfs_(procfs), disks_(disks), targets_(targets) {}

  [[nodiscard]] std::optional<decide::Device> pages(pid_t tgid, const decide::ClassLimits& limits, Time now);
  [[nodiscard]] FileDevices files(pid_t tgid, pid_t tid, const decide::ClassLimits& limits, Time now);
  [[nodiscard]] std::optional<decide::Device> directories(pid_t tgid, const decide::ClassLimits& limits, Time now);
  [[nodiscard]] FileDevices known(pid_t tgid) const;  // what `files` said last

 private:
  struct Process {
    std::optional<decide::Device> pages, directories;
    FileDevices files;
    Time met{}, pages_sought{}, directories_sought{}, files_sought{};
  };
  Process& process(pid_t tgid);

  const sys::Procfs& procfs_;
  const sys::BlockDevices& disks_;
  observe::IoTargets& targets_;
  std::unordered_map<pid_t, Process> processes_;
};

}  // namespace swapd::daemon
