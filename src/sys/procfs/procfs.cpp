#include "sys/procfs/procfs.h"

#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>

#include "sys/procfs/procfs_parse.h"
#include "sys/procfs/procfs_path.h"
#include "sys/procfs/procfs_read.h"

namespace swapd::sys {

pid_t looked_up(const std::string& root, pid_t tid) {
  // Another PID namespace's /proc has other numbers.
  static const bool own = [] {
    std::array<char, 16> self{};
    const ssize_t size = ::readlink("/proc/self", self.data(), self.size());
    return size > 0 && std::string_view(self.data(), static_cast<std::size_t>(size)) == std::to_string(::getpid());
  }();
  if (!own || tid <= 0 || root != "/proc") return tid;
  const int error = errno;
  const bool gone = ::kill(tid, 0) != 0 && errno == ESRCH;
  errno = error;
  return gone ? 0 : tid;
}

Procfs::Procfs(std::string root) : root_(std::move(root)) {}

Result<ProcStat> Procfs::stat(pid_t tid) const {
  std::array<char, 1024> buffer;
  const auto text = read_start(ProcPath::of_thread(root_, tid, "stat").c_str(), buffer);
  if (!text) return text.error();
  const auto out = parse::stat(*text);
  if (!out) return Error(EPROTO, "stat");
  return *out;
}

Result<Procfs::SchedStat> Procfs::schedstat(pid_t tid) const {
  std::array<char, 128> buffer;
  const auto text = read_start(ProcPath::of_thread(root_, tid, "schedstat").c_str(), buffer);
  if (!text) return text.error();
  std::array<std::int64_t, 3> numbers{};
  const char* at = text->data();
  const char* const end = text->data() + text->size();
  for (std::int64_t& number : numbers) {
    while (at != end && *at == ' ') ++at;
    const auto read = std::from_chars(at, end, number);
    if (read.ec != std::errc{}) return Error(EPROTO, "schedstat");
    at = read.ptr;
  }
  return SchedStat{
      .cpu = Duration(numbers[0]), .waited = Duration(numbers[1]), .turns = static_cast<std::uint64_t>(numbers[2])};
}

Result<Duration> Procfs::cpu_time(pid_t tid) const {
  const auto all = schedstat(tid);
  if (!all) return all.error();
  return all->cpu;
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

Result<Mapping> Procfs::find_mapping(pid_t pid,
                                     const std::function<bool(const Mapping&, std::string_view)>& wanted) const {
  const auto text = read_all(ProcPath(root_, pid, "maps").c_str());
  if (!text) return text.error();
  for (std::string_view left = *text; !left.empty();) {
    const std::string_view line = left.substr(0, left.find('\n'));
    const std::string_view file = line.substr(std::min(line.find_first_of("/["), line.size()));
    if (const auto found = parse::mapping(line); found && wanted(*found, file)) return *found;
    left.remove_prefix(std::min(line.size() + 1, left.size()));
  }
  return Error(ENOENT, "maps");
}

Result<Mapping> Procfs::mapping(pid_t pid, std::uint64_t address) const {
  return find_mapping(pid, [&](const Mapping& m, std::string_view) { return address >= m.start && address < m.end; });
}

void Procfs::each_mapping(pid_t pid, const std::function<bool(const Mapping&, std::string_view)>& see) const {
  (void)find_mapping(pid, [&](const Mapping& m, std::string_view file) { return !see(m, file); });
}

bool Procfs::maps_file(pid_t pid, std::uint64_t dev, std::uint64_t ino) const {
  return find_mapping(pid, [&](const Mapping& m, std::string_view) { return m.shared && m.dev == dev && m.ino == ino; })
      .ok();
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
      // A kernel without CONFIG_PROC_CHILDREN, or this thread has just gone: ask every process for its parent.
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
