#include "observe/io_target.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <utility>

#include "sys/pidfd.h"

namespace swapd::observe {

std::uint64_t disk_number(dev_t device) { return std::uint64_t{::major(device)} << 32 | ::minor(device); }

dev_t disk_of_number(std::uint64_t number) {
  return ::makedev(static_cast<unsigned>(number >> 32), static_cast<unsigned>(number));
}

std::uint64_t link_number(std::uint64_t network_namespace, std::uint32_t index) {
  return index == 0 ? 0 : network_namespace << 32 | index;
}

const IoTargets::Disk& IoTargets::disk(dev_t device, pid_t tid, int fd, Time now) {
  if (by_device_.size() >= most_kept) by_device_.clear();
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

const IoTargets::Link* IoTargets::link(pid_t tid, int fd, std::uint64_t inode, std::span<const std::byte> to,
                                       Time now) {
  if (by_inode_.size() >= most_kept) by_inode_.clear();
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
  if (tables_.size() >= most_tables) tables_.clear();
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
