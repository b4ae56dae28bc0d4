// A resource: a kind and the integers that identify it ([SWAP04 §3.1]; docs/design.md, Resources).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace swapd {

enum class ResourceKind : std::uint8_t {
  socket,       // inode: one endpoint
  pipe,         // inode, 0 read end | 1 write end
  fifo,         // inode, 0 read end | 1 write end, dev
  sysv_msg,     // ipc namespace inode, id
  sysv_sem,     // ipc namespace inode, id
  posix_mq,     // dev, inode
  flock,        // dev, inode, 0 shared | 1 exclusive
  record_lock,  // dev, inode, first byte, last byte (both included; UINT64_MAX: to the end)
  signal,       // receiver: tgid (or tid for a directed one), start time
  futex,        // shared: dev, inode, offset, 1; private: tgid, address, start time, 0
  eventfd,      // eventfd-id of fdinfo
  pty,          // pts number, 0 the slave's side | 1 the master's side, dev of the devpts mount
  child_exit,   // child: tgid, start time (tgid 0: any child of the process whose tgid and start time are ids 2, 3)
  inotify,      // who waits: tgid, start time, descriptor; an instance has no number of its own
  kernel_work,  // done by a kernel thread: tid, start time
  kernel,       // inside the kernel: dev, inode of a file whose lock it is (inode 0: any file of a FUSE mount), 0, 0;
                // or 0, 0, tgid, start time: a process's memory, or what else its calls need
  unknown,      // a wait whose resource could not be told
};
inline constexpr std::size_t resource_kinds = static_cast<std::size_t>(ResourceKind::unknown) + 1;

struct Resource {
  ResourceKind kind = ResourceKind::unknown;
  std::array<std::uint64_t, 4> ids{};

  auto operator<=>(const Resource&) const = default;
};

// Locks of files: they change hands without a call that is seen.
[[nodiscard]] constexpr bool is_lock(ResourceKind kind) {
  return kind == ResourceKind::flock || kind == ResourceKind::record_lock;
}
[[nodiscard]] constexpr bool is_sysv(ResourceKind kind) {
  return kind == ResourceKind::sysv_msg || kind == ResourceKind::sysv_sem;
}

// "socket", "pipe", "sysv-msg" … : hyphenated, as in the JSON contract and in policies.
[[nodiscard]] std::string_view name(ResourceKind kind);
[[nodiscard]] std::optional<ResourceKind> kind_named(std::string_view name);
// "socket:123", "pipe:77:r", "flock:fe:00:123:exclusive" (dev as major:minor in hex, as /proc/locks has it).
[[nodiscard]] std::string text(const Resource& resource);

}  // namespace swapd

template <>
struct std::hash<swapd::Resource> {
  std::size_t operator()(const swapd::Resource& r) const noexcept {
    std::uint64_t h = static_cast<std::uint64_t>(r.kind);
    for (const std::uint64_t id : r.ids) h = (h ^ id) * 0x9E3779B97F4A7C15ULL + (h >> 32);
    return static_cast<std::size_t>(h);
  }
};
