#include "observe/resolve/descriptor.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <string_view>

namespace swapd::observe {

namespace {

using Type = Descriptor::Type;

constexpr unsigned slave_major_first = 136;  // UNIX98_PTY_SLAVE_MAJOR and the seven after it
constexpr unsigned slave_major_last = 143;
const std::uint64_t ptmx = makedev(5, 2);
constexpr std::uint64_t ptmx_of_devpts = 2;  // inode number of the ptmx node in any devpts mount (fs/devpts/inode.c)

std::uint64_t device_of(int fd) {
  struct stat st {};
  return ::fstat(fd, &st) == 0 ? st.st_dev : 0;
}

}  // namespace

Descriptors::Descriptors(const sys::Procfs& procfs) : procfs_(procfs) {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) == 0) {
    const Fd read_end(ends[0]);
    const Fd write_end(ends[1]);
    pipefs_ = device_of(ends[0]);
  }
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket) sockfs_ = device_of(socket.get());
}

Result<Descriptor> Descriptors::look(pid_t tid, int fd) const {
  const auto identity = procfs_.fd_identity(tid, fd);
  if (!identity) return identity.error();
  return look(tid, fd, *identity);
}

Result<Descriptor> Descriptors::look(pid_t tid, int fd, const sys::FdIdentity& identity) const {
  Descriptor out{.type = Type::other, .dev = identity.dev, .ino = identity.ino};
  switch (identity.mode & S_IFMT) {
    case S_IFIFO:
      out.type = identity.dev == pipefs_ ? Type::pipe : Type::fifo;
      return out;
    case S_IFSOCK:
      out.type = Type::socket;
      return out;
    case S_IFREG:
    case S_IFDIR:
    case S_IFBLK:
      out.type = Type::disk;
      return out;
    case S_IFCHR:
      if (major(identity.rdev) >= slave_major_first && major(identity.rdev) <= slave_major_last) {
        out.type = Type::pty_slave;
        out.number = minor(identity.rdev);
      } else if (identity.rdev == ptmx) {
        const auto numbers = procfs_.fd_numbers(tid, fd);
        if (!numbers) return numbers.error();
        if (numbers->tty_index < 0) return out;
        out.type = Type::pty_master;
        out.number = static_cast<std::uint64_t>(numbers->tty_index);
        // /dev/ptmx stands for the devpts beside it; the ptmx inside a devpts mount is of that mount itself.
        const bool inside = identity.ino == ptmx_of_devpts && major(identity.dev) == 0;
        if (!inside) out.dev = procfs_.devpts(tid).value_or(identity.dev);
      }
      return out;
    case 0: {  // anonymous inodes have no file type
      std::array<char, 64> buffer;
      const std::string_view link = procfs_.fd_link(tid, fd, buffer);
      if (link == "anon_inode:[eventpoll]") {
        out.type = Type::epoll;
      } else if (link == "anon_inode:[timerfd]") {
        out.type = Type::timerfd;
      } else if (link == "anon_inode:inotify") {
        out.type = Type::inotify;
        out.number = static_cast<std::uint64_t>(fd);
      } else if (link == "anon_inode:[signalfd]") {
        out.type = Type::signalfd;
      } else if (link == "anon_inode:[eventfd]" || link == "anon_inode:[pidfd]") {
        const auto numbers = procfs_.fd_numbers(tid, fd);
        if (!numbers) return numbers.error();
        if (numbers->eventfd_id >= 0) {
          out.type = Type::eventfd;
          out.number = static_cast<std::uint64_t>(numbers->eventfd_id);
        } else if (numbers->pid > 0) {
          out.type = Type::pidfd;
          out.number = static_cast<std::uint64_t>(numbers->pid);
        }
      }
      return out;
    }
    default:
      return out;
  }
}

std::optional<Descriptor> Descriptors::from_inode(std::uint64_t dev, std::uint64_t ino) const {
  if (dev == pipefs_) return Descriptor{.type = Type::pipe, .dev = dev, .ino = ino};
  if (dev == sockfs_) return Descriptor{.type = Type::socket, .dev = dev, .ino = ino};
  return std::nullopt;
}

std::optional<Resource> other_end(const Descriptor& descriptor, Direction direction) {
  return own_end(descriptor.type == Type::pty_slave ? Descriptor{Type::pty_master, descriptor.dev, 0, descriptor.number}
                 : descriptor.type == Type::pty_master
                     ? Descriptor{Type::pty_slave, descriptor.dev, 0, descriptor.number}
                 : descriptor.type == Type::socket ? Descriptor{}
                                                   : descriptor,
                 descriptor.type == Type::pipe || descriptor.type == Type::fifo
                     ? (direction == Direction::in ? Direction::out : Direction::in)
                     : direction);
}

std::optional<Resource> own_end(const Descriptor& descriptor, Direction direction) {
  const PipeEnd end = direction == Direction::out ? PipeEnd::write : PipeEnd::read;
  switch (descriptor.type) {
    case Type::pipe:
      return pipe_end(descriptor.ino, end);
    case Type::fifo:
      return fifo_end({descriptor.dev, descriptor.ino}, end);
    case Type::socket:
      return socket_endpoint(descriptor.ino);
    case Type::pty_slave:
      return pty_side(descriptor.number, PtySide::slave, descriptor.dev);
    case Type::pty_master:
      return pty_side(descriptor.number, PtySide::master, descriptor.dev);
    case Type::eventfd:
      return event_counter(descriptor.number);
    default:
      return std::nullopt;
  }
}

}  // namespace swapd::observe
