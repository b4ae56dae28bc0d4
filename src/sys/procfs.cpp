#include "sys/procfs.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>
#include <span>

#include "sys/procfs_parse.h"
#include "sys/procfs_path.h"

namespace swapd::sys {

namespace {

// An error without allocation: contexts here fit the small string buffer.
Error failed(const char* what) { return {errno, what}; }

constexpr std::size_t largest_file = 4U << 20;  // a target can make its fdinfo long; nothing honest comes near this

// Reads the start of a file into the buffer. procfs makes the text anew for each read from offset 0, and hands out all
// of a text of one record at once (seq_file, single_open()).
Result<std::string_view> read_start(int fd, std::span<char> buffer) {
  for (;;) {
    const ssize_t got = ::pread(fd, buffer.data(), buffer.size(), 0);
    if (got >= 0) return std::string_view(buffer.data(), static_cast<std::size_t>(got));
    if (errno != EINTR) return failed("read");
  }
}

Result<Fd> open_file(const char* path) {
  Fd fd(::open(path, O_RDONLY | O_CLOEXEC));
  if (!fd) return failed("open");
  return fd;
}

Result<std::string_view> read_start(const char* path, std::span<char> buffer) {
  const auto fd = open_file(path);
  if (!fd) return fd.error();
  return read_start(fd->get(), buffer);
}

Result<std::string> read_all(const char* path) {
  const auto fd = open_file(path);
  if (!fd) return fd.error();
  std::string out;
  std::size_t used = 0;
  while (used < largest_file) {
    out.resize(used + 16384);
    const ssize_t got = ::read(fd->get(), out.data() + used, out.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed("read");
    if (got == 0) break;
    used += static_cast<std::size_t>(got);
  }
  out.resize(used);
  return out;
}

FdIdentity identity(const struct statx& st) {
  return {.mode = st.stx_mode,
          .dev = makedev(st.stx_dev_major, st.stx_dev_minor),
          .ino = st.stx_ino,
          .rdev = makedev(st.stx_rdev_major, st.stx_rdev_minor),
          .size = static_cast<std::int64_t>(st.stx_size)};
}

// What the kernel has in memory (AT_STATX_DONT_SYNC): a file on a dead server or a stuck FUSE daemon must not hold us.
Result<struct statx> stat_cached(int dir, const char* path, int flags) {
  struct statx st {};
  if (::statx(dir, path, flags | AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE | STATX_INO | STATX_SIZE, &st) != 0)
    return failed("statx");
  return st;
}

template <typename Number>
std::vector<Number> numbered_entries(const char* path, int& error, std::size_t most = SIZE_MAX) {
  std::vector<Number> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(path), &::closedir);
  error = dir ? 0 : errno;
  if (!dir) return out;
  while (const dirent* entry = out.size() < most ? ::readdir(dir.get()) : nullptr) {
    Number number{};
    const std::string_view name(entry->d_name);
    const auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (bad == std::errc{} && end == name.data() + name.size()) out.push_back(number);
  }
  return out;
}

}  // namespace

Procfs::Procfs(std::string root) : root_(std::move(root)) {}

Result<ProcStat> Procfs::stat(pid_t tid) const {
  std::array<char, 1024> buffer;
  const auto text = read_start(ProcPath::of_thread(root_, tid, "stat").c_str(), buffer);
  if (!text) return text.error();
  const auto out = parse::stat(*text);
  if (!out) return Error(EPROTO, "stat");
  return *out;
}

Result<Duration> Procfs::cpu_time(pid_t tid) const {
  std::array<char, 128> buffer;
  const auto text = read_start(ProcPath::of_thread(root_, tid, "schedstat").c_str(), buffer);
  if (!text) return text.error();
  std::int64_t ns = 0;
  if (std::from_chars(text->data(), text->data() + text->size(), ns).ec != std::errc{})
    return Error(EPROTO, "schedstat");
  return Duration(ns);
}

Result<Fd> Procfs::open_syscall(pid_t tid) const { return open_file(ProcPath(root_, tid, "syscall").c_str()); }

Result<SyscallState> Procfs::syscall(pid_t tid) const {
  const auto file = open_syscall(tid);
  if (!file) return file.error();
  return syscall(*file);
}

Result<SyscallState> Procfs::syscall(const Fd& file) {
  std::array<char, 256> buffer;
  const auto text = read_start(file.get(), buffer);
  if (!text) return text.error();
  const auto out = parse::syscall(*text);
  if (!out) return Error(EPROTO, "syscall");
  return *out;
}

Result<FdIdentity> Procfs::fd_identity(pid_t tid, int fd) const {
  if (fd < 0) return Error(EBADF, "fd");
  const auto st = stat_cached(AT_FDCWD, ProcPath(root_, tid, "fd/", fd).c_str(), 0);
  if (!st) return st.error();
  return identity(*st);
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

bool Procfs::sleeps_in(pid_t tid, std::initializer_list<std::string_view> functions) const {
  std::array<char, 128> buffer;
  const auto where = read_start(ProcPath(root_, tid, "wchan").c_str(), buffer);
  return where.ok() && std::ranges::any_of(functions, [&](std::string_view function) {
           return where->find(function) != std::string_view::npos;
         });
}

bool Procfs::stopped_by_signal(pid_t tid) const { return sleeps_in(tid, {"signal_stop"}); }

// The wait is made in seccomp_do_user_notification(), or in what the compiler inlined it into.
bool Procfs::held_by_seccomp(pid_t tid) const { return sleeps_in(tid, {"seccomp"}); }

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

Result<std::vector<pid_t>> Procfs::threads(pid_t pid) const {
  int error = 0;
  auto out = numbered_entries<pid_t>(ProcPath(root_, pid, "task").c_str(), error);
  if (error != 0) return Error(error, "opendir");
  return out;
}

// A directory has as many links as it has directories in it, and two.
Result<std::size_t> Procfs::thread_count(pid_t pid) const {
  struct stat st {};
  if (::stat(ProcPath(root_, pid, "task").c_str(), &st) != 0) return failed("stat");
  return st.st_nlink < 2 ? 0 : static_cast<std::size_t>(st.st_nlink) - 2;
}

std::vector<pid_t> Procfs::processes() const {
  int error = 0;
  return numbered_entries<pid_t>(root_.c_str(), error);
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

Result<Mapping> Procfs::find_mapping(pid_t pid, const std::function<bool(const Mapping&)>& wanted) const {
  const auto text = read_all(ProcPath(root_, pid, "maps").c_str());
  if (!text) return text.error();
  for (std::string_view left = *text; !left.empty();) {
    const std::size_t end = std::min(left.find('\n'), left.size());
    if (const auto found = parse::mapping(left.substr(0, end)); found && wanted(*found)) return *found;
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return Error(ENOENT, "maps");
}

Result<Mapping> Procfs::mapping(pid_t pid, std::uint64_t address) const {
  return find_mapping(pid, [&](const Mapping& m) { return address >= m.start && address < m.end; });
}

void Procfs::each_mapping(pid_t pid, const std::function<bool(const Mapping&)>& see) const {
  (void)find_mapping(pid, [&](const Mapping& m) { return !see(m); });
}

bool Procfs::maps_file(pid_t pid, std::uint64_t dev, std::uint64_t ino) const {
  return find_mapping(pid, [&](const Mapping& m) { return m.shared && m.dev == dev && m.ino == ino; }).ok();
}

Result<std::vector<pid_t>> Procfs::namespace_pids(pid_t tid) const {
  const auto text = read_all(ProcPath(root_, tid, "status").c_str());
  if (!text) return text.error();
  std::vector<pid_t> out;
  for (const std::int64_t number : parse::status_numbers(*text, "NSpid")) out.push_back(static_cast<pid_t>(number));
  return out;
}

Result<std::vector<pid_t>> Procfs::children(pid_t pid) const {
  const auto tids = threads(pid);
  if (!tids) return tids.error();
  std::vector<pid_t> out;
  for (const pid_t tid : *tids) {
    std::array<char, 32> name{};
    std::snprintf(name.data(), name.size(), "task/%d/children", tid);
    const auto list = read_all(ProcPath(root_, pid, name.data()).c_str());
    if (list) {
      const std::vector<pid_t> some = parse::pids(*list);
      out.insert(out.end(), some.begin(), some.end());
    } else if (list.error().code() == ENOENT && ::access(ProcPath(root_, pid, "stat").c_str(), F_OK) == 0) {
      // A kernel without CONFIG_PROC_CHILDREN, or this thread has just gone: ask everybody for the parent.
      out.clear();
      for (const pid_t other : processes()) {
        const auto st = stat(other);
        if (st && st->ppid == pid) out.push_back(other);
      }
      break;
    }
  }
  return out;
}

Result<ThreadId> Procfs::thread_id(pid_t tid) const {
  const auto st = stat(tid);
  if (!st) return st.error();
  return ThreadId{tid, st->start_time};
}

Result<pid_t> Procfs::tgid(pid_t tid) const {
  const auto numbers = status_numbers(tid, "Tgid");
  if (!numbers) return numbers.error();
  return static_cast<pid_t>(numbers->front());
}

Result<std::vector<std::int64_t>> Procfs::status_numbers(pid_t tid, std::string_view key) const {
  const auto text = read_all(ProcPath(root_, tid, "status").c_str());
  if (!text) return text.error();
  auto numbers = parse::status_numbers(*text, key);
  if (numbers.empty()) return Error(EPROTO, "status");
  return numbers;
}

bool Procfs::has_seccomp_filters(pid_t tid) const {
  constexpr std::int64_t filters = 2;  // SECCOMP_MODE_FILTER
  const auto mode = status_numbers(tid, "Seccomp");
  return mode && mode->front() == filters;
}

Result<Interruption> Procfs::interruption(pid_t tid) const {
  std::array<char, 4096> buffer;
  const auto text = read_start(ProcPath(root_, tid, "status").c_str(), buffer);
  if (!text) return text.error();
  const auto found = parse::interruption(*text);
  if (!found) return Error(EPROTO, "status");
  return *found;
}

Result<std::uint64_t> Procfs::capabilities(pid_t tid) const {
  const auto text = read_all(ProcPath(root_, tid, "status").c_str());
  if (!text) return text.error();
  const auto found = parse::capabilities(*text);
  if (!found) return Error(EPROTO, "status");
  return *found;
}

Result<std::string> Procfs::comm(pid_t tid) const {
  auto text = read_all(ProcPath(root_, tid, "comm").c_str());
  if (text && text->ends_with('\n')) text->pop_back();
  return text;
}

Result<std::vector<std::string>> Procfs::cmdline(pid_t pid) const {
  const auto text = read_all(ProcPath(root_, pid, "cmdline").c_str());
  if (!text) return text.error();
  std::vector<std::string> out;
  for (std::string_view left = *text; !left.empty();) {
    const std::size_t end = std::min(left.find('\0'), left.size());
    out.emplace_back(left.substr(0, end));
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return out;
}

Result<std::string> Procfs::cgroup(pid_t pid) const {
  const ProcPath path(root_, pid, "cgroup");
  const auto text = read_all(path.c_str());
  if (!text) return text.error();
  if (auto found = parse::unit_cgroup(*text); !found.empty()) return found;
  return Error(ENOENT, path.c_str());
}

std::vector<LockLine> Procfs::locks() const {
  const auto text = read_all((root_ + "/locks").c_str());
  return text ? parse::locks(*text) : std::vector<LockLine>{};
}

Result<Procfs::Autogroup> Procfs::autogroup(pid_t pid) const {
  std::array<char, 128> buffer;
  const auto text = read_start(ProcPath(root_, pid, "autogroup").c_str(), buffer);
  if (!text) return text.error();
  const auto out = parse::autogroup(*text);
  if (!out) return Error(ENOENT, "autogroup");
  return *out;
}

Status Procfs::read_memory(pid_t pid, std::uint64_t address, void* out, std::size_t size) {
  const iovec local{out, size};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address over there
  const iovec remote{reinterpret_cast<void*>(address), size};
  const ssize_t got = ::process_vm_readv(pid, &local, 1, &remote, 1, 0);
  if (got < 0) return failed("vm_readv");
  if (static_cast<std::size_t>(got) != size) return Error(EFAULT, "vm_readv");
  return Done{};
}

}  // namespace swapd::sys
