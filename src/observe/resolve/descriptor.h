// Kind and identity of a descriptor of another process, and which resource waiting on it or serving it concerns
// (docs/design.md, Resources).
//
// Looked at anew on each use, since close, dup, SCM_RIGHTS and fork are not trapped: a number says nothing by itself.
#pragma once

#include <optional>

#include "base/resource.h"
#include "observe/resolve/syscall_table.h"
#include "sys/procfs/procfs.h"

namespace swapd::observe {

struct Descriptor {
  enum class Type : std::uint8_t {
    other,  // a device, fanotify, … : something that cannot be told
    disk,   // regular files, directories, block devices
    pipe,
    fifo,
    socket,
    pty_slave,
    pty_master,
    eventfd,
    epoll,
    signalfd,
    pidfd,
    timerfd,
    inotify,
  } type = Type::other;
  std::uint64_t dev = 0;  // of a pty: of its devpts mount
  std::uint64_t ino = 0;
  std::uint64_t number = 0;  // pts number, eventfd-id, the pid of a pidfd, the descriptor of an inotify

  auto operator<=>(const Descriptor&) const = default;
};

class Descriptors {
 public:
  explicit Descriptors(const sys::Procfs& procfs);

  // [hot] One stat; for what has no inode of its own and for the master of a pty also its link and the start of its
  // fdinfo.
  [[nodiscard]] Result<Descriptor> look(pid_t tid, int fd) const;
  // The same where the identity is known already.
  [[nodiscard]] Result<Descriptor> look(pid_t tid, int fd, const sys::FdIdentity& identity) const;
  // From device and inode alone, without a system call: a pipe or a socket.
  [[nodiscard]] std::optional<Descriptor> from_inode(std::uint64_t dev, std::uint64_t ino) const;

 private:
  const sys::Procfs& procfs_;
  std::uint64_t pipefs_ = 0;  // st_dev of all pipes
  std::uint64_t sockfs_ = 0;  // st_dev of all sockets
};

// The resource that a thread blocked on the descriptor in this direction awaits: the other end. Empty for those that
// need more than the descriptor (sockets, signalfds, pidfds, inotify, epoll) and for those that no thread provides.
[[nodiscard]] std::optional<Resource> other_end(const Descriptor& descriptor, Direction direction);
// The resource that a thread provides by a call on the descriptor: its own end.
[[nodiscard]] std::optional<Resource> own_end(const Descriptor& descriptor, Direction direction);

}  // namespace swapd::observe
