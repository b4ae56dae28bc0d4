#include "observe/resolve/syscall_table.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>

namespace swapd::observe {

namespace {

using K = CallKind;
using D = Direction;

constexpr auto entries = std::to_array<CallEntry>({
    {SYS_read, "read", K::transfer, D::in},
    {SYS_readv, "readv", K::transfer, D::in},
    {SYS_pread64, "pread64", K::transfer, D::in},
    {SYS_preadv, "preadv", K::transfer, D::in},
    {SYS_preadv2, "preadv2", K::transfer, D::in},
    {SYS_recvfrom, "recvfrom", K::transfer, D::in},
    {SYS_recvmsg, "recvmsg", K::transfer, D::in},
    {SYS_recvmmsg, "recvmmsg", K::transfer, D::in},
    {SYS_write, "write", K::transfer, D::out},
    {SYS_writev, "writev", K::transfer, D::out},
    {SYS_pwrite64, "pwrite64", K::transfer, D::out},
    {SYS_pwritev, "pwritev", K::transfer, D::out},
    {SYS_pwritev2, "pwritev2", K::transfer, D::out},
    {SYS_sendto, "sendto", K::transfer, D::out, 0, 0, 4},
    {SYS_sendmsg, "sendmsg", K::transfer, D::out},
    {SYS_sendmmsg, "sendmmsg", K::transfer, D::out},
    {SYS_sendfile, "sendfile", K::copy, D::none, 0, 1},
    {SYS_splice, "splice", K::copy, D::none, 2, 0},
    {SYS_accept, "accept", K::accept, D::in},
    {SYS_accept4, "accept4", K::accept, D::in},
    {SYS_connect, "connect", K::connect, D::out, 0, 0, 1},
    {SYS_poll, "poll", K::poll},
    {SYS_ppoll, "ppoll", K::poll},
    {SYS_select, "select", K::select},
    {SYS_pselect6, "pselect6", K::select},
    {SYS_epoll_wait, "epoll_wait", K::epoll},
    {SYS_epoll_pwait, "epoll_pwait", K::epoll},
    {SYS_epoll_pwait2, "epoll_pwait2", K::epoll},
    {SYS_msgsnd, "msgsnd", K::sysv_msg, D::out},
    {SYS_msgrcv, "msgrcv", K::sysv_msg, D::in},
    {SYS_semop, "semop", K::sysv_sem},
    {SYS_semtimedop, "semtimedop", K::sysv_sem},
    {SYS_mq_timedsend, "mq_timedsend", K::posix_mq, D::out},
    {SYS_mq_timedreceive, "mq_timedreceive", K::posix_mq, D::in},
    {SYS_flock, "flock", K::flock},
    {SYS_fcntl, "fcntl", K::fcntl},
    {SYS_pause, "pause", K::signal_wait},
    {SYS_rt_sigsuspend, "rt_sigsuspend", K::signal_wait},
    {SYS_rt_sigtimedwait, "rt_sigtimedwait", K::signal_wait},
    {SYS_kill, "kill", K::kill},
    {SYS_tkill, "tkill", K::kill},
    {SYS_tgkill, "tgkill", K::kill},
    {SYS_rt_sigqueueinfo, "rt_sigqueueinfo", K::kill},
    {SYS_rt_tgsigqueueinfo, "rt_tgsigqueueinfo", K::kill},
    {SYS_pidfd_send_signal, "pidfd_send_signal", K::kill},
    {SYS_wait4, "wait4", K::child_wait},
    {SYS_waitid, "waitid", K::child_wait},
    {SYS_futex, "futex", K::futex},
    {SYS_futex_waitv, "futex_waitv", K::futex},
    {SYS_nanosleep, "nanosleep", K::timer},
    {SYS_clock_nanosleep, "clock_nanosleep", K::timer},
    {SYS_sched_yield, "sched_yield", K::timer},
    {SYS_open, "open", K::unknown},  // a FIFO without its other end, a device, a lease
    {SYS_openat, "openat", K::unknown},
    {SYS_io_uring_enter, "io_uring_enter", K::ring},
    {SYS_io_getevents, "io_getevents", K::disk},
    {SYS_fsync, "fsync", K::disk},
    {SYS_fdatasync, "fdatasync", K::disk},
    {SYS_sync, "sync", K::disk},
    {SYS_syncfs, "syncfs", K::disk},
    {SYS_sync_file_range, "sync_file_range", K::disk},
    {SYS_msync, "msync", K::disk},
    {SYS_fallocate, "fallocate", K::disk},
    {SYS_ftruncate, "ftruncate", K::disk},
    {SYS_stat, "stat", K::disk},
    {SYS_lstat, "lstat", K::disk},
    {SYS_newfstatat, "newfstatat", K::disk},
    {SYS_statx, "statx", K::disk},
    {SYS_getdents64, "getdents64", K::disk},
    {SYS_unlink, "unlink", K::disk},
    {SYS_unlinkat, "unlinkat", K::disk},
    {SYS_rename, "rename", K::disk},
    {SYS_mkdir, "mkdir", K::disk},
    {SYS_restart_syscall, "restart_syscall", K::unknown},
    {SYS_vfork, "vfork", K::unknown},
    {SYS_clone, "clone", K::unknown},
    {SYS_clone3, "clone3", K::unknown},
    {SYS_execve, "execve", K::disk},
    {SYS_mmap, "mmap", K::disk},
    {SYS_munmap, "munmap", K::disk},
});

constexpr std::int32_t largest = 512;

// Index of the entry by call number, made at compile time: looked up once a notification.
constexpr auto by_number = [] {
  std::array<std::int16_t, largest> out{};
  out.fill(-1);
  for (std::size_t i = 0; i < entries.size(); ++i)
    out.at(static_cast<std::size_t>(entries[i].nr)) = static_cast<std::int16_t>(i);
  return out;
}();

using Condition = sys::TrapRule::Condition;

// `int` and `unsigned` arguments: what stands in the upper half of the register is not part of them.
constexpr std::uint64_t low_half = 0xffffffffU;

Condition without_flag(unsigned arg, std::uint64_t flag) { return {.arg = arg, .mask = flag, .values = {0}}; }
Condition one_of(unsigned arg, std::vector<std::uint64_t> values) {
  return {.arg = arg, .mask = low_half, .values = std::move(values)};
}

// The forms of a call that can natively give EINTR, as far as a filter can tell them from the others.
std::optional<Condition> condition(std::int32_t nr) {
  switch (nr) {
    case SYS_recvfrom:
    case SYS_sendto:
    case SYS_recvmmsg:
    case SYS_sendmmsg:
      return without_flag(3, MSG_DONTWAIT);
    case SYS_recvmsg:
    case SYS_sendmsg:
      return without_flag(2, MSG_DONTWAIT);
    case SYS_msgsnd:
      return without_flag(3, IPC_NOWAIT);
    case SYS_msgrcv:
      return without_flag(4, IPC_NOWAIT);
    case SYS_wait4:
      return without_flag(2, WNOHANG);
    case SYS_waitid:
      return without_flag(3, WNOHANG);
    case SYS_flock:
      return one_of(1, {LOCK_SH, LOCK_EX});
    case SYS_fcntl:
      return one_of(1, {F_SETLKW, F_OFD_SETLKW});
    default:
      return std::nullopt;
  }
}

}  // namespace

const CallEntry& call_entry(std::int32_t nr) {
  static constexpr CallEntry none{};
  if (nr < 0 || nr >= largest) return none;
  const std::int16_t index = by_number[static_cast<std::size_t>(nr)];
  return index < 0 ? none : entries[static_cast<std::size_t>(index)];
}

std::string_view call_name(std::int32_t nr) { return nr < 0 ? "none" : call_entry(nr).name; }

bool is_trapped(std::int32_t nr, History history, bool trap_kill) {
  switch (call_entry(nr).kind) {
    case K::sysv_msg:
    case K::sysv_sem:
      return true;  // no descriptor tells who uses them
    case K::kill:
      return trap_kill;
    case K::transfer:
    case K::copy:
    case K::accept:
    case K::connect:
    case K::poll:
    case K::select:
    case K::epoll:
    case K::posix_mq:
    case K::flock:
    case K::fcntl:
    case K::signal_wait:
    case K::child_wait:
      return history == History::calls;
    case K::ring:
    case K::unknown:
    case K::futex:
    case K::timer:
    case K::disk:
      return false;
  }
  return false;
}

std::vector<sys::TrapRule> observe_rules(History history, bool trap_kill) {
  std::vector<sys::TrapRule> out;
  for (const CallEntry& entry : entries) {
    if (is_trapped(entry.nr, history, trap_kill)) out.push_back({.nr = entry.nr, .condition = condition(entry.nr)});
  }
  return out;
}

}  // namespace swapd::observe
