// The device that a descriptor of another process moves data to and from: its disk, or its network link. Looked at anew
// at each call, because a number may be another file's by then; the way from the file to its device is kept for a
// moment. One thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/time.h"
#include "sys/netlink/socket_route.h"
#include "sys/procfs/block_devices.h"
#include "sys/procfs/procfs.h"

namespace swapd::observe {

struct IoTarget {
  enum class Kind : std::uint8_t { other, disk, network } kind = Kind::other;
  // disk: the devices under the file, nearest first; the numbers are MAJOR << 32 | MINOR. network: one, the link with
  // its namespace above; 0: not known.
  std::span<const std::uint64_t> devices;
  std::uint64_t device = 0;  // which of them is meant where none is named: the nearest that is no partition
  std::int64_t size = -1;    // of a regular file; -1: not known
};

[[nodiscard]] std::uint64_t disk_number(dev_t device);
[[nodiscard]] dev_t disk_of_number(std::uint64_t number);
[[nodiscard]] std::uint64_t link_number(std::uint64_t network_namespace, std::uint32_t index);

class IoTargets {
 public:
  IoTargets(const sys::Procfs& procfs, const sys::BlockDevices& disks) : procfs_(procfs), disks_(disks) {}

  // to: where an unconnected socket sends. The answer holds until the next call. An error: no such descriptor.
  [[nodiscard]] Result<IoTarget> find(pid_t tid, int fd, std::span<const std::byte> to, Time now);

  // Bytes in a pipe, and its size (FIONREAD, F_GETPIPE_SZ). EINVAL: it is no pipe.
  struct Pipe {
    std::int64_t holds = 0, room_in_all = 0;
  };
  [[nodiscard]] Result<Pipe> pipe(pid_t tid, int fd) const;
  // Bytes that a socket that does not wait takes at once (SO_SNDBUF without SIOCOUTQ), at least 4 KiB; nothing: it
  // waits, or is no socket. does_not_wait: the call says so.
  [[nodiscard]] std::optional<std::int64_t> takes_at_once(pid_t tid, int fd, bool does_not_wait) const;
  // The position of a descriptor in its file; 0 if it cannot be told.
  [[nodiscard]] std::int64_t position(pid_t tid, int fd) const;
  // So many bytes of this part of a file are in the page cache (mincore(2)); 0 where that cannot be told.
  [[nodiscard]] std::int64_t cached(pid_t tid, int fd, std::int64_t from, std::int64_t bytes) const;

 private:
  // Mounts and routes change.
  static constexpr Duration believed = std::chrono::seconds(1);
  static constexpr std::size_t max_kept = 1024, max_tables = 64;
  struct Disk {
    std::vector<std::uint64_t> devices;
    std::uint64_t whole = 0;
    bool unknown = false;  // on some disk
    Time seen;
  };
  struct Link {
    bool inet = false;
    std::uint64_t number = 0;
    Time seen;
  };
  [[nodiscard]] Result<sys::FdIdentity> look(pid_t tid, int fd);
  [[nodiscard]] Result<Fd> duplicate(pid_t tid, int fd) const;
  const Disk& disk(dev_t device, pid_t tid, int fd, Time now);
  const Link* link(pid_t tid, int fd, std::uint64_t inode, std::span<const std::byte> to, Time now);

  const sys::Procfs& procfs_;
  const sys::BlockDevices& disks_;
  std::unordered_map<pid_t, Fd> tables_;  // of threads that came last: their /proc/TID/fd
  std::unordered_map<dev_t, Disk> by_device_;
  std::unordered_map<std::uint64_t, Link> by_inode_;
};

}  // namespace swapd::observe
