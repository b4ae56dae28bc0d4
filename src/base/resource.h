// A resource: a kind and the integers that identify it ([SWAP04 §3.1]; docs/design.md, Resources).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/thread_id.h"

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
  child_exit,   // child: tgid, start time; any child of a process: 0, 0, tgid and start time of the parent
  inotify,      // waiting process: tgid, start time, descriptor; an instance has no number of its own
  kernel_work,  // done by a kernel thread: tid, start time
  kernel,       // inside the kernel: a file's lock: dev, inode; any file of a FUSE mount: dev, 0;
                // a process's memory and what else its calls need: 0, 0, tgid, start time
  unknown,      // a wait whose resource could not be told
};
inline constexpr std::size_t resource_kinds = static_cast<std::size_t>(ResourceKind::unknown) + 1;

struct Resource {
  ResourceKind kind = ResourceKind::unknown;
  std::array<std::uint64_t, 4> ids{};

  auto operator<=>(const Resource&) const = default;
};

// A file, by st_dev and st_ino (inode(7)).
struct FileId {
  std::uint64_t dev = 0;
  std::uint64_t ino = 0;

  auto operator<=>(const FileId&) const = default;
};
enum class PipeEnd : std::uint8_t { read, write };
enum class PtySide : std::uint8_t { slave, master };
enum class LockMode : std::uint8_t { shared, exclusive };

// The identity of each kind. Only these functions and the readers below know what the ids mean.
[[nodiscard]] constexpr std::uint64_t as_id(pid_t pid) { return static_cast<std::uint64_t>(pid); }
[[nodiscard]] constexpr Resource socket_endpoint(std::uint64_t ino) { return {ResourceKind::socket, {ino}}; }
[[nodiscard]] constexpr Resource pipe_end(std::uint64_t ino, PipeEnd end) {
  return {ResourceKind::pipe, {ino, static_cast<std::uint64_t>(end)}};
}
[[nodiscard]] constexpr Resource fifo_end(FileId fifo, PipeEnd end) {
  return {ResourceKind::fifo, {fifo.ino, static_cast<std::uint64_t>(end), fifo.dev}};
}
// ipc_namespace: inode of /proc/PID/ns/ipc; id: msgget(2), semget(2).
[[nodiscard]] constexpr Resource sysv_queue(std::uint64_t ipc_namespace, int id) {
  return {ResourceKind::sysv_msg, {ipc_namespace, static_cast<std::uint32_t>(id)}};
}
[[nodiscard]] constexpr Resource sysv_semaphores(std::uint64_t ipc_namespace, int id) {
  return {ResourceKind::sysv_sem, {ipc_namespace, static_cast<std::uint32_t>(id)}};
}
[[nodiscard]] constexpr Resource message_queue(FileId queue) {
  return {ResourceKind::posix_mq, {queue.dev, queue.ino}};
}
// flock(2)
[[nodiscard]] constexpr Resource file_lock(FileId file, LockMode mode) {
  return {ResourceKind::flock, {file.dev, file.ino, static_cast<std::uint64_t>(mode)}};
}
// fcntl_locking(2). last: included; UINT64_MAX: to the end.
[[nodiscard]] constexpr Resource byte_range_lock(FileId file, std::uint64_t first, std::uint64_t last) {
  return {ResourceKind::record_lock, {file.dev, file.ino, first, last}};
}
// A process, or the thread that a signal is directed to.
[[nodiscard]] constexpr Resource signal_to(ThreadId receiver) {
  return {ResourceKind::signal, {as_id(receiver.tid), receiver.start_time}};
}
[[nodiscard]] constexpr Resource futex_of(ThreadId process, std::uint64_t address) {
  return {ResourceKind::futex, {as_id(process.tid), address, process.start_time, 0}};
}
[[nodiscard]] constexpr Resource futex_in(FileId file, std::uint64_t offset) {
  return {ResourceKind::futex, {file.dev, file.ino, offset, 1}};
}
// id: eventfd-id of /proc/PID/fdinfo.
[[nodiscard]] constexpr Resource event_counter(std::uint64_t id) { return {ResourceKind::eventfd, {id}}; }
// dev: of the devpts mount.
[[nodiscard]] constexpr Resource pty_side(std::uint64_t number, PtySide side, std::uint64_t dev) {
  return {ResourceKind::pty, {number, static_cast<std::uint64_t>(side), dev}};
}
[[nodiscard]] constexpr PtySide side_of(const Resource& pty) { return static_cast<PtySide>(pty.ids[1]); }
[[nodiscard]] constexpr Resource child_exit_of(ThreadId child) {
  return {ResourceKind::child_exit, {as_id(child.tid), child.start_time}};
}
[[nodiscard]] constexpr Resource any_child_of(ThreadId parent) {
  return {ResourceKind::child_exit, {0, 0, as_id(parent.tid), parent.start_time}};
}
// inotify(7): what the process reads from this descriptor.
[[nodiscard]] constexpr Resource file_changes_for(ThreadId process, std::uint64_t descriptor) {
  return {ResourceKind::inotify, {as_id(process.tid), process.start_time, descriptor}};
}
[[nodiscard]] constexpr Resource kernel_work_of(ThreadId kernel_thread) {
  return {ResourceKind::kernel_work, {as_id(kernel_thread.tid), kernel_thread.start_time}};
}
[[nodiscard]] constexpr Resource kernel_lock_of(FileId file) { return {ResourceKind::kernel, {file.dev, file.ino}}; }
// dev: st_dev of the mount's files.
[[nodiscard]] constexpr Resource fuse_files_of(std::uint64_t dev) { return {ResourceKind::kernel, {dev}}; }
[[nodiscard]] constexpr Resource memory_of(ThreadId process) {
  return {ResourceKind::kernel, {0, 0, as_id(process.tid), process.start_time}};
}

// Two kinds and the futex have two forms each.
[[nodiscard]] constexpr bool is_any_child(const Resource& r) {
  return r.kind == ResourceKind::child_exit && r.ids[0] == 0;
}
[[nodiscard]] constexpr bool is_memory(const Resource& r) { return r.kind == ResourceKind::kernel && r.ids[0] == 0; }
[[nodiscard]] constexpr bool is_fuse_files(const Resource& r) {
  return r.kind == ResourceKind::kernel && r.ids[0] != 0 && r.ids[1] == 0;
}
[[nodiscard]] constexpr bool is_shared_futex(const Resource& r) {
  return r.kind == ResourceKind::futex && r.ids[3] == 1;
}
// The process or thread that a resource names: the receiver, child, parent, kernel thread, waiting process, or the
// owner of the memory. Not valid for the other kinds.
[[nodiscard]] constexpr ThreadId thread_of(const Resource& r) {
  switch (r.kind) {
    case ResourceKind::futex:
      return is_shared_futex(r) ? ThreadId{} : ThreadId{static_cast<pid_t>(r.ids[0]), r.ids[2]};
    case ResourceKind::kernel:
      return is_memory(r) ? ThreadId{static_cast<pid_t>(r.ids[2]), r.ids[3]} : ThreadId{};
    case ResourceKind::child_exit:
      if (is_any_child(r)) return {static_cast<pid_t>(r.ids[2]), r.ids[3]};
      return {static_cast<pid_t>(r.ids[0]), r.ids[1]};
    case ResourceKind::signal:
    case ResourceKind::inotify:
    case ResourceKind::kernel_work:
      return {static_cast<pid_t>(r.ids[0]), r.ids[1]};
    default:
      return {};
  }
}
// The file of a lock, a POSIX message queue, a FIFO or a shared futex. {} for the other kinds.
[[nodiscard]] constexpr FileId file_of(const Resource& r) {
  switch (r.kind) {
    case ResourceKind::fifo:
      return {r.ids[2], r.ids[0]};
    case ResourceKind::posix_mq:
    case ResourceKind::flock:
    case ResourceKind::record_lock:
      return {r.ids[0], r.ids[1]};
    case ResourceKind::futex:
      return is_shared_futex(r) ? FileId{r.ids[0], r.ids[1]} : FileId{};
    case ResourceKind::kernel:
      return is_memory(r) ? FileId{} : FileId{r.ids[0], r.ids[1]};
    default:
      return {};
  }
}

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
