#include "observe/io/io_target.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "sys/process/pidfd.h"

namespace swapd::observe {

std::uint64_t disk_number(dev_t device) { return std::uint64_t{::major(device)} << 32 | ::minor(device); }

dev_t disk_of_number(std::uint64_t number) {
  return ::makedev(static_cast<unsigned>(number >> 32), static_cast<unsigned>(number));
}

std::uint64_t link_number(std::uint64_t network_namespace, std::uint32_t index) {
  return index == 0 ? 0 : network_namespace << 32 | index;
}

const IoTargets::Disk& IoTargets::disk(dev_t device, pid_t tid, int fd, Time now) {
  if (by_device_.size() >= max_kept) by_device_.clear();
  const auto [at, is_new] = by_device_.try_emplace(device);
  Disk& disk = at->second;
  if (!is_new && now - disk.seen < believed) return disk;
  disk = {.devices = {}, .whole = 0, .unknown = false, .seen = now};
  std::vector<dev_t> chain = disks_.chain(device);
  if (chain.empty()) {
    const sys::BlockDevices::Opened opened = disks_.opened(tid, fd);
    chain = opened.devices;
    disk.unknown = chain.empty() && opened.on_disk;
  }
  for (const dev_t one : chain) {
    disk.devices.push_back(disk_number(one));
    if (disk.whole == 0 && !disks_.is_partition(one)) disk.whole = disk.devices.back();
  }
  if (disk.whole == 0 && !disk.devices.empty()) disk.whole = disk.devices.back();
  return disk;
}

Result<Fd> IoTargets::duplicate(pid_t tid, int fd) const {
  const auto tgid = procfs_.tgid(tid);
  if (!tgid) return tgid.error();
  const auto process = sys::open_pidfd(*tgid);
  if (!process) return process.error();
  return sys::take_fd(process->get(), fd);
}

Result<IoTargets::Pipe> IoTargets::pipe(pid_t tid, int fd) const {
  const auto file = procfs_.fd_identity(tid, fd);
  if (!file) return file.error();
  if (!S_ISFIFO(file->mode)) return Error(EINVAL, "no pipe");
  const auto pipe = duplicate(tid, fd);
  if (!pipe) return pipe.error();
  int holds = 0;
  const int room = ::fcntl(pipe->get(), F_GETPIPE_SZ);
  if (room < 0 || ::ioctl(pipe->get(), FIONREAD, &holds) != 0) return errno_error("pipe");
  return Pipe{.holds = holds, .room_in_all = room};
}

std::optional<std::int64_t> IoTargets::takes_at_once(pid_t tid, int fd, bool does_not_wait) const {
  const auto socket = duplicate(tid, fd);
  if (!socket) return std::nullopt;
  if (!does_not_wait && (::fcntl(socket->get(), F_GETFL) & O_NONBLOCK) == 0) return std::nullopt;
  int room = 0, waiting = 0;
  socklen_t size = sizeof room;
  if (::getsockopt(socket->get(), SOL_SOCKET, SO_SNDBUF, &room, &size) != 0) return std::nullopt;
  if (::ioctl(socket->get(), SIOCOUTQ, &waiting) != 0) waiting = 0;
  return std::max(room - waiting, 4096);
}

std::int64_t IoTargets::position(pid_t tid, int fd) const {
  const auto info = procfs_.fdinfo(tid, fd);
  return info && info->pos <= INT64_MAX ? static_cast<std::int64_t>(info->pos) : 0;
}

std::int64_t IoTargets::cached(pid_t tid, int fd, std::int64_t from, std::int64_t bytes) const {
  const auto file = duplicate(tid, fd);
  if (!file) return 0;
  static const std::int64_t page = ::sysconf(_SC_PAGESIZE);
  constexpr std::int64_t most = std::int64_t{1} << 28;  // a part is mapped at a time
  std::vector<unsigned char> pages(static_cast<std::size_t>(std::min(bytes, most) / page + 2));
  std::int64_t in_memory = 0;
  const std::int64_t end = from + bytes;
  for (std::int64_t at = from / page * page; at < end; at += most) {
    const auto size = static_cast<std::size_t>(std::min(end - at, most));
    void* const mapped = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file->get(), at);
    if (mapped == MAP_FAILED) break;
    if (::mincore(mapped, size, pages.data()) == 0)
      in_memory +=
          page * std::count_if(pages.begin(),
                               pages.begin() + static_cast<std::ptrdiff_t>((size + static_cast<std::size_t>(page) - 1) /
                                                                           static_cast<std::size_t>(page)),
                               [](unsigned char one) { return (one & 1U) != 0; });
    ::munmap(mapped, size);
  }
  return std::min(in_memory, bytes);
}

const IoTargets::Link* IoTargets::link(pid_t tid, int fd, std::uint64_t inode, std::span<const std::byte> to,
                                       Time now) {
  if (by_inode_.size() >= max_kept) by_inode_.clear();
  const auto found = by_inode_.find(inode);
  if (found != by_inode_.end() && now - found->second.seen < believed) return &found->second;
  const auto socket = duplicate(tid, fd);
  if (!socket) return nullptr;
  const auto link = sys::link_of(socket->get(), to);
  if (!link) return nullptr;
  // A thread with a table of its own may have had another file there.
  struct stat st {};
  if (::fstat(socket->get(), &st) != 0 || st.st_ino != inode) return nullptr;
  Link& kept = by_inode_[inode];
  kept = {.inet = link->inet,
          .number = link_number(link->network_namespace, link->index),
          .seen = link->connected || !link->inet ? now : Time{}};
  return &kept;
}

// Anew each time, but from the thread's own directory on: the way there takes as long again.
Result<sys::FdIdentity> IoTargets::look(pid_t tid, int fd) {
  const auto known = tables_.find(tid);
  if (known != tables_.end()) {
    auto file = sys::Procfs::identity_in(known->second, fd);
    if (file) return file;
    tables_.erase(known);  // there is none, or the id is another thread's by now
  }
  auto file = procfs_.fd_identity(tid, fd);
  if (!file) return file;
  if (tables_.size() >= max_tables) tables_.clear();
  if (auto table = procfs_.fd_table(tid)) tables_.emplace(tid, std::move(table).value());
  return file;
}

Result<IoTarget> IoTargets::find(pid_t tid, int fd, std::span<const std::byte> to, Time now) {
  const auto file = look(tid, fd);
  if (!file) return file.error();
  IoTarget out;
  const bool is_file = S_ISREG(file->mode) || S_ISDIR(file->mode);
  if (is_file || S_ISBLK(file->mode)) {
    const Disk& found = disk(is_file ? file->dev : file->rdev, tid, fd, now);
    if (found.devices.empty() && !found.unknown) return out;  // else device 0: what is said of each disk
    out.kind = IoTarget::Kind::disk;
    out.devices = found.devices;
    out.device = found.whole;
    if (S_ISREG(file->mode)) out.size = file->size;
  } else if (S_ISSOCK(file->mode)) {
    const Link* found = link(tid, fd, file->ino, to, now);
    if (found == nullptr || !found->inet) return out;
    out.kind = IoTarget::Kind::network;
    out.device = found->number;
  }
  return out;
}

}  // namespace swapd::observe
