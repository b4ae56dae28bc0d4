// procfs: what one thread is doing, what a process holds. The /proc root is a parameter.
// Source: proc(5), proc_pid_stat(5), proc_pid_syscall, Documentation/filesystems/proc.rst.
//
// Every byte from /proc is untrusted (comm may hold newlines and brackets). A target that is gone is an
// Error with gone() true. Nothing here allocates beyond what it returns; the calls marked [hot] are made by the
// real-time engine thread: no allocation, a fixed number of system calls.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/thread_id.h"
#include "base/time.h"

namespace swapd::sys {

// Reasons why a thread's blocking call ends, or is kept from going on.
struct Interruption {
  std::uint64_t signals = 0;  // that wait for it, or for any of its process, and that it does not block: bit n-1
  std::uint64_t pending = 0;  // with those that it blocks
  pid_t tracer = 0;           // a process; 0: none
};

struct ProcStat {
  std::array<char, 16> comm{};  // zero-terminated, raw
  char state = '?';             // R S D T t Z X I
  pid_t ppid = 0;
  pid_t group = 0;  // of processes
  pid_t session = 0;
  std::int32_t terminal = 0;  // that controls it, as a device number; 0: none
  pid_t foreground = 0;       // … the group in the foreground there
  bool exiting = false;       // past the start of do_exit(), though not a zombie yet
  bool kernel = false;        // a kernel thread; the workers of io_uring and vhost are the program's own
  bool ring_worker = false;   // one of io_uring's
  std::uint64_t major_faults = 0;
  std::uint64_t start_time = 0;  // in ticks since boot (sys/procfs/ticks.h)
  int processor = -1;            // last CPU

  [[nodiscard]] bool alive() const { return state != 'Z' && state != 'X' && !exiting; }
};

// Contents of /proc/TID/syscall. running: on a run queue (the other fields are void). in_call: blocked in call nr with
// these arguments; neither: blocked outside a system call (page fault), nr -1.
struct SyscallState {
  bool running = false;
  bool in_call = false;
  std::int32_t nr = -1;
  std::array<std::uint64_t, 6> args{};
  bool compat = false;  // its stack is where a 32-bit program's is, whose calls have other numbers
};

// A descriptor's identity. mode, dev, ino, rdev, size as stat(2) through /proc/PID/fd/N has them.
struct FdIdentity {
  std::uint32_t mode = 0;
  std::uint64_t dev = 0;
  std::uint64_t ino = 0;
  std::uint64_t rdev = 0;
  std::int64_t size = 0;
};

struct LockLine {  // a "lock:" line of fdinfo, or a line of /proc/locks
  enum class Type : std::uint8_t { flock, posix, ofd, lease, other } type = Type::other;
  bool write = false;
  bool waiting = false;  // a "->" line
  pid_t pid = 0;
  std::uint64_t dev = 0, ino = 0;
  std::uint64_t first = 0, last = UINT64_MAX;
};

// A member of an epoll set. fd is the number it was added under, in the table of the process that added it; dev and ino
// tell whether that number still is the same file.
struct EpollTarget {
  int fd = -1;
  std::uint32_t events = 0;  // EPOLLIN …
  std::uint64_t dev = 0;     // as st_dev
  std::uint64_t ino = 0;
};

struct FdInfo {
  std::uint64_t pos = 0;
  std::uint32_t flags = 0;  // open flags (octal in the file)
  std::int64_t eventfd_id = -1;
  std::int64_t tty_index = -1;  // of a pty's master
  pid_t pid = -1;               // of a pidfd
  bool signalfd = false;
  std::vector<EpollTarget> epoll;
  std::vector<LockLine> locks;
};

// The few numbers that tell special descriptors apart, read without allocation. -1: not of that kind.
struct FdNumbers {
  std::int64_t eventfd_id = -1;
  std::int64_t tty_index = -1;
  pid_t pid = -1;
  bool signalfd = false;
  std::int64_t fuse_connection = -1;  // of a FUSE daemon's /dev/fuse: the minor number of its file system (6.17)
};

// A line of /proc/PID/maps.
struct Mapping {
  std::uint64_t start = 0, end = 0, offset = 0;
  std::uint64_t dev = 0, ino = 0;
  bool shared = false, writable = false;
};

class Procfs {
 public:
  explicit Procfs(std::string root = "/proc");

  [[nodiscard]] Result<ProcStat> stat(pid_t tid) const;  // [hot]
  // CPU time, as of the last tick while it has a CPU: the first field of schedstat (kernel documentation,
  // scheduler/sched-stats).
  [[nodiscard]] Result<Duration> cpu_time(pid_t tid) const;
  // All of schedstat: besides that, how long the thread has waited for a CPU, as of its last turn on one, and how many
  // turns it has had.
  struct SchedStat {
    Duration cpu{}, waited{};
    std::uint64_t turns = 0;
  };
  [[nodiscard]] Result<SchedStat> schedstat(pid_t tid) const;
  [[nodiscard]] Result<SyscallState> syscall(pid_t tid) const;  // [hot]
  // [hot] From a file kept open it costs a quarter, and never is of another thread that has the same id.
  [[nodiscard]] static Result<SyscallState> syscall(const Fd& file);
  [[nodiscard]] Result<Fd> open_syscall(pid_t tid) const;
  [[nodiscard]] Result<FdIdentity> fd_identity(pid_t tid, int fd) const;  // [hot] stat(2) of /proc/TID/fd/N
  // [hot] The same from /proc/TID/fd kept open: half of it. ENOENT also where the thread has ended.
  [[nodiscard]] static Result<FdIdentity> identity_in(const Fd& table, int fd);
  [[nodiscard]] Result<Fd> fd_table(pid_t tid) const;
  // [hot] Whether the kernel's function that it sleeps in (proc_pid_wchan(5)) has one of these in its name; false too
  // where it is not told.
  [[nodiscard]] bool sleeps_in(pid_t tid, std::initializer_list<std::string_view> functions) const;
  // The kernel functions in which the thread sleeps, or was preempted, the innermost first, a line each
  // (CAP_SYS_ADMIN). Without a line while it has a CPU, or is in user space.
  [[nodiscard]] Result<std::string> kernel_stack(pid_t tid) const;
  // The mounts as the process sees them (proc_pid_mountinfo(5)), and its working directory.
  [[nodiscard]] Result<std::string> mountinfo(pid_t pid) const;
  [[nodiscard]] Result<std::string> cwd(pid_t pid) const;
  // Also where it is frozen as well, and its state is D. False where the kernel's compiler hides it.
  [[nodiscard]] bool stopped_by_signal(pid_t tid) const;
  // [hot] true while the thread stands in a seccomp user notification that has not been answered.
  [[nodiscard]] bool held_by_seccomp(pid_t tid) const;
  // The link text of /proc/PID/fd/N ("anon_inode:[eventpoll]").
  [[nodiscard]] Result<std::string> fd_link(pid_t tid, int fd) const;
  [[nodiscard]] Result<FdInfo> fdinfo(pid_t tid, int fd) const;
  // [hot] Up to the first 1 KiB of fdinfo. Meant for eventfds, pidfds, signalfds and pty masters, whose fdinfo is
  // short.
  [[nodiscard]] Result<FdNumbers> fd_numbers(pid_t tid, int fd) const;
  // [hot] The start of the link text, in the caller's buffer; empty: gone.
  [[nodiscard]] std::string_view fd_link(pid_t tid, int fd, std::span<char> buffer) const;
  // How the descriptor is open: O_RDONLY, O_WRONLY or O_RDWR (the permission bits of the link).
  [[nodiscard]] Result<int> fd_access(pid_t tid, int fd) const;
  [[nodiscard]] Result<std::uint64_t> fd_size(pid_t tid, int fd) const;                      // st_size
  [[nodiscard]] Result<std::vector<int>> fds(pid_t pid, std::size_t most = SIZE_MAX) const;  // open descriptor numbers
  // The file that `path` means to this process (its root, its working directory), from the kernel's cache of names
  // alone, so that a hanging file system cannot hold the caller.
  [[nodiscard]] Result<FdIdentity> path_identity(pid_t pid, const std::string& path) const;
  // [hot] The devpts mount of the process: st_dev of its /dev/pts.
  [[nodiscard]] Result<std::uint64_t> devpts(pid_t tid) const;
  [[nodiscard]] Result<Mapping> mapping(pid_t pid, std::uint64_t address) const;
  // Until `see` says false.
  // file: its path; empty, or in brackets: none.
  void each_mapping(pid_t pid, const std::function<bool(const Mapping&, std::string_view file)>& see) const;
  [[nodiscard]] bool maps_file(pid_t pid, std::uint64_t dev, std::uint64_t ino) const;  // shared, anywhere
  // The ids of a thread from our pid namespace inwards (NSpid of status); the last is the one it knows itself.
  [[nodiscard]] Result<std::vector<pid_t>> namespace_pids(pid_t tid) const;
  [[nodiscard]] Result<std::vector<pid_t>> threads(pid_t pid) const;
  [[nodiscard]] Result<std::size_t> thread_count(pid_t pid) const;  // without a list of them
  [[nodiscard]] std::vector<pid_t> processes() const;
  [[nodiscard]] Result<std::vector<pid_t>> children(pid_t pid) const;  // of all its threads
  [[nodiscard]] Result<ThreadId> thread_id(pid_t tid) const;
  // A line of status, which has numbers ("TracerPid", "Seccomp", "Uid"). EPROTO: there is no such line.
  [[nodiscard]] Result<std::vector<std::int64_t>> status_numbers(pid_t tid, std::string_view key) const;
  [[nodiscard]] bool has_seccomp_filters(pid_t tid) const;
  [[nodiscard]] Result<Interruption> interruption(pid_t tid) const;
  [[nodiscard]] Result<std::uint64_t> capabilities(pid_t tid) const;  // effective, bit by bit
  [[nodiscard]] Result<pid_t> tgid(pid_t tid) const;
  [[nodiscard]] Result<std::uint32_t> uid(pid_t tid) const;  // effective
  [[nodiscard]] Result<std::uint32_t> real_uid(pid_t tid) const;
  [[nodiscard]] Result<std::uint64_t> namespace_inode(pid_t tid, const char* ns) const;  // [hot] "ipc", "pid", "net"
  [[nodiscard]] Result<std::string> comm(pid_t tid) const;
  [[nodiscard]] Result<std::vector<std::string>> cmdline(pid_t pid) const;
  // The program's file, as the process's own root has it, also where it has been deleted or replaced. own_exe: ours.
  [[nodiscard]] Result<std::string> exe(pid_t pid) const;
  [[nodiscard]] Result<std::string> own_exe() const;
  [[nodiscard]] Result<FdIdentity> exe_identity(pid_t pid) const;  // of the program's file
  // Its place in the cgroups that systemd goes by: those of its own v1 hierarchy, else those of v2. ENOENT: in none.
  [[nodiscard]] Result<std::string> cgroup(pid_t pid) const;
  [[nodiscard]] std::vector<LockLine> locks() const;  // /proc/locks
  // The kernel's id of the autogroup ("/autogroup-52 nice 0" → 52) and its nice; ENOENT where there is none.
  struct Autogroup {
    std::int64_t id = -1;
    int nice = 0;
  };
  [[nodiscard]] Result<Autogroup> autogroup(pid_t pid) const;
  // Reads target memory (process_vm_readv); short reads are errors. The caller brackets this where a notification is
  // open.
  [[nodiscard]] static Status read_memory(pid_t pid, std::uint64_t address, void* out, std::size_t size);

  [[nodiscard]] const std::string& root() const { return root_; }

 private:
  [[nodiscard]] Result<std::uint32_t> user(pid_t tid, std::size_t which) const;  // of status's Uid line
  [[nodiscard]] Result<Mapping> find_mapping(pid_t pid,
                                             const std::function<bool(const Mapping&, std::string_view)>& wanted) const;

  std::string root_;
};

}  // namespace swapd::sys
