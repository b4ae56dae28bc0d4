// The files behind a process's descriptors and paths.
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "sys/procfs/procfs.h"
#include "sys/procfs/procfs_parse.h"
#include "sys/procfs/procfs_path.h"
#include "sys/procfs/procfs_read.h"

namespace swapd::sys {

namespace {

FdIdentity identity(const struct statx& st) {
  return {.mode = st.stx_mode,
          .dev = makedev(st.stx_dev_major, st.stx_dev_minor),
          .ino = st.stx_ino,
          .rdev = makedev(st.stx_rdev_major, st.stx_rdev_minor),
          .size = static_cast<std::int64_t>(st.stx_size)};
}

// Asks only for what the kernel has in memory (AT_STATX_DONT_SYNC): a file on a dead server or a stuck FUSE daemon must
// not hold us.
Result<struct statx> stat_cached(int dir, const char* path, int flags) {
  struct statx st {};
  if (::statx(dir, path, flags | AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE | STATX_INO | STATX_SIZE, &st) != 0)
    return failed("statx");
  return st;
}
}  // namespace

Result<FdIdentity> Procfs::fd_identity(pid_t tid, int fd) const {
  if (fd < 0) return Error(EBADF, "fd");
  const auto st = stat_cached(AT_FDCWD, ProcPath(root_, tid, "fd/", fd).c_str(), 0);
  if (!st) return st.error();
  return identity(*st);
}

Result<FdIdentity> Procfs::exe_identity(pid_t pid) const {
  const auto st = stat_cached(AT_FDCWD, ProcPath(root_, pid, "exe").c_str(), 0);
  if (!st) return st.error();
  return identity(*st);
}

Result<std::string> Procfs::kernel_stack(pid_t tid) const { return read_all(ProcPath(root_, tid, "stack").c_str()); }

Result<std::string> Procfs::mountinfo(pid_t pid) const { return read_all(ProcPath(root_, pid, "mountinfo").c_str()); }

Result<std::string> Procfs::cwd(pid_t pid) const {
  std::array<char, 4096> buffer;
  const ssize_t size = ::readlink(ProcPath(root_, pid, "cwd").c_str(), buffer.data(), buffer.size());
  if (size < 0) return failed("readlink");
  return std::string(buffer.data(), static_cast<std::size_t>(size));
}

Result<Fd> Procfs::fd_table(pid_t tid) const {
  Fd table(::open(ProcPath(root_, tid, "fd").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!table) return failed("open");
  return table;
}

Result<FdIdentity> Procfs::identity_in(const Fd& table, int fd) {
  if (fd < 0) return Error(EBADF, "fd");
  std::array<char, 12> name{};
  std::to_chars(name.data(), name.data() + name.size() - 1, fd);
  const auto st = stat_cached(table.get(), name.data(), 0);
  if (!st) return st.error();
  return identity(*st);
}

Result<std::string> Procfs::fd_link(pid_t tid, int fd) const {
  std::array<char, 4096> buffer;
  const ssize_t size = ::readlink(ProcPath(root_, tid, "fd/", fd).c_str(), buffer.data(), buffer.size());
  if (size < 0) return failed("readlink");
  return std::string(buffer.data(), static_cast<std::size_t>(size));
}

std::string_view Procfs::fd_link(pid_t tid, int fd, std::span<char> buffer) const {
  const ssize_t size = ::readlink(ProcPath(root_, tid, "fd/", fd).c_str(), buffer.data(), buffer.size());
  return {buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
}

Result<FdNumbers> Procfs::fd_numbers(pid_t tid, int fd) const {
  std::array<char, 1024> buffer;
  const auto text = read_start(ProcPath(root_, tid, "fdinfo/", fd).c_str(), buffer);
  if (!text) return text.error();
  return parse::fd_numbers(*text);
}

Result<FdInfo> Procfs::fdinfo(pid_t tid, int fd) const {
  const auto text = read_all(ProcPath(root_, tid, "fdinfo/", fd).c_str());
  if (!text) return text.error();
  return parse::fdinfo(*text);
}

Result<int> Procfs::fd_access(pid_t tid, int fd) const {
  const auto st = stat_cached(AT_FDCWD, ProcPath(root_, tid, "fd/", fd).c_str(), AT_SYMLINK_NOFOLLOW);
  if (!st) return st.error();
  const bool reads = (st->stx_mode & S_IRUSR) != 0;
  const bool writes = (st->stx_mode & S_IWUSR) != 0;
  if (reads && writes) return O_RDWR;
  return writes ? O_WRONLY : O_RDONLY;
}

Result<std::uint64_t> Procfs::fd_size(pid_t tid, int fd) const {
  const auto st = stat_cached(AT_FDCWD, ProcPath(root_, tid, "fd/", fd).c_str(), 0);
  if (!st) return st.error();
  return std::uint64_t{st->stx_size};
}

Result<std::vector<int>> Procfs::fds(pid_t pid, std::size_t most) const {
  int error = 0;
  auto out = numbered_entries<int>(ProcPath(root_, pid, "fd").c_str(), error, most);
  if (error != 0) return Error(error, "opendir");
  return out;
}

Result<FdIdentity> Procfs::path_identity(pid_t pid, const std::string& path) const {
  const bool absolute = path.starts_with('/');
  const Fd base(::open(ProcPath(root_, pid, absolute ? "root" : "cwd").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!base) return failed("open");
  struct open_how how {};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_CACHED | RESOLVE_NO_MAGICLINKS | (absolute ? RESOLVE_IN_ROOT : 0U);
  const Fd file(static_cast<int>(::syscall(SYS_openat2, base.get(), path.c_str(), &how, sizeof how)));
  if (!file) return failed("openat2");
  const auto st = stat_cached(file.get(), "", AT_EMPTY_PATH);
  if (!st) return st.error();
  return identity(*st);
}

Result<std::uint64_t> Procfs::devpts(pid_t tid) const {
  const auto mounted = path_identity(tid, "/dev/pts");
  if (!mounted) return mounted.error();
  return mounted->dev;
}
}  // namespace swapd::sys
