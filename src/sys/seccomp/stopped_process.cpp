#include "sys/seccomp/stopped_process.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <string>
#include <thread>

#include "sys/procfs/procfs.h"
#include "sys/sched/scheduler.h"

namespace swapd::sys {
namespace {

constexpr auto look_every = std::chrono::microseconds(50);
// Kernel-internal (include/linux/errno.h); ptrace(2) shows it.
constexpr long restart_unless_handled = -514;
constexpr std::uint64_t every_signal = ~0ULL;
constexpr std::size_t rseq_cs_offset = 8;  // struct rseq, linux/rseq.h
constexpr std::uint64_t user_space_ends = 1ULL << 47;

// Calls that give EINTR where they are interrupted although no handler runs, and have then done nothing yet: signal(7),
// "Interruption of system calls and library functions by stop signals", and what it says of timeouts on sockets.
constexpr long epoll_pwait2 = 441;  // not in every header
constexpr std::array<long, 20> give_eintr{
    SYS_read,       SYS_write,      SYS_readv,           SYS_writev,         SYS_recvfrom,    SYS_recvmsg, SYS_recvmmsg,
    SYS_sendto,     SYS_sendmsg,    SYS_sendmmsg,        SYS_accept,         SYS_accept4,     SYS_connect, SYS_semop,
    SYS_semtimedop, SYS_epoll_wait, SYS_rt_sigtimedwait, SYS_io_uring_enter, SYS_epoll_pwait, epoll_pwait2};

template <typename Data>
long trace(long request, pid_t tid, std::uint64_t address, Data data) {
  return ::syscall(SYS_ptrace, request, tid, address, data);
}

bool is_interrupt(int status) { return status >> 16 == PTRACE_EVENT_STOP; }
bool is_call(int status) { return status >> 8 == (SIGTRAP | 0x80); }

struct Text {
  std::uint64_t start = 0, end = 0;
  bool vdso = false;
};

std::vector<Text> executable_mappings(pid_t pid) {
  std::vector<Text> found;
  std::ifstream file("/proc/" + std::to_string(pid) + "/maps");
  for (std::string line; std::getline(file, line);) {
    Text text;
    char permissions[5] = {};
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &text.start, &text.end, permissions) != 3) continue;
    text.vdso = line.ends_with("[vdso]");
    if (permissions[0] == 'r' && permissions[2] == 'x' && text.end <= user_space_ends) found.push_back(text);
  }
  std::stable_partition(found.begin(), found.end(), [](const Text& t) { return t.vdso; });
  return found;
}

}  // namespace

Result<std::unique_ptr<StoppedProcess>> StoppedProcess::stop(pid_t pid, Duration within) {
  const Time deadline = std::chrono::steady_clock::now() + within;
  std::unique_ptr<StoppedProcess> process(new StoppedProcess(pid));
  // Threads that those not stopped yet have made meanwhile are found by looking again.
  const Procfs procfs;
  for (bool found = true; found;) {
    found = false;
    const auto tids = procfs.threads(pid);
    if (!tids) return tids.error();
    for (const pid_t tid : *tids) {
      if (std::ranges::find(process->threads_, tid, &Thread::tid) != process->threads_.end()) continue;
      const auto stat = procfs.stat(tid);
      if (!stat || !stat->alive()) continue;  // a leader that has ended stays until the others have
      const Status seized = process->seize(tid);
      if (!seized && !seized.error().gone()) return seized.error();
      found = found || seized.ok();
    }
    if (Status all = process->await_all(deadline); !all) return std::move(all).error();
  }
  if (process->threads_.empty()) return Error(ESRCH, "process " + std::to_string(pid) + " has ended");
  for (Thread& thread : process->threads_)
    if (Status looked = process->look(thread); !looked) return std::move(looked).error();
  return process;
}

StoppedProcess::~StoppedProcess() { release(); }

Status StoppedProcess::seize(pid_t tid) {
  if (trace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACESYSGOOD) != 0) {
    const int code = errno;
    if (code == ESRCH) return Error(ESRCH, "thread " + std::to_string(tid) + " has ended");
    if (const auto tracer = Procfs().status_numbers(tid, "TracerPid"); tracer && tracer->front() != 0)
      return Error(EBUSY,
                   "process " + std::to_string(pid_) + " is traced by process " + std::to_string(tracer->front()));
    return Error(code, "tracing thread " + std::to_string(tid) + " of process " + std::to_string(pid_));
  }
  threads_.push_back({.tid = tid});
  (void)trace(PTRACE_INTERRUPT, tid, 0, 0);
  return Done{};
}

// A stop that is not ours is a signal on its way, and goes on its way: its handler's frame is made, or the program
// ends.
Status StoppedProcess::await_all(Time deadline) {
  for (;;) {
    pid_t missing = 0;
    for (Thread& thread : threads_) {
      int status = 0;
      while (!thread.stopped && thread.tid > 0) {
        const pid_t r = ::waitpid(thread.tid, &status, __WALL | WNOHANG);
        if (r == 0) break;
        if (r < 0 || !WIFSTOPPED(status))
          thread.tid = -1;  // it has ended, or became the leader by execve(2)
        else if (is_interrupt(status))
          thread.stopped = true;
        else
          (void)trace(PTRACE_CONT, thread.tid, 0, WSTOPSIG(status));
      }
      if (!thread.stopped && thread.tid > 0) missing = thread.tid;
    }
    std::erase_if(threads_, [](const Thread& t) { return t.tid < 0; });
    if (missing == 0) return Done{};
    if (std::chrono::steady_clock::now() > deadline)
      return Error(ETIMEDOUT, "thread " + std::to_string(missing) + " of process " + std::to_string(pid_) +
                                  " sleeps where nothing wakes it (vfork, or a device); try again later");
    std::this_thread::sleep_for(look_every);
  }
}

Status StoppedProcess::look(Thread& thread) const {
  iovec all{&thread.registers, sizeof thread.registers};
  if (trace(PTRACE_GETREGSET, thread.tid, 1 /* NT_PRSTATUS */, &all) != 0)
    return errno_error("reading the registers of thread " + std::to_string(thread.tid));
  if (all.iov_len != sizeof thread.registers)
    return Error(ENOEXEC, "process " + std::to_string(pid_) + " is no x86-64 program");
  const auto nr = static_cast<long>(thread.registers.orig_rax);
  if (static_cast<long>(thread.registers.rax) != -EINTR || std::ranges::find(give_eintr, nr) == give_eintr.end())
    return Done{};
  thread.registers.rax = static_cast<unsigned long long>(restart_unless_handled);
  if (trace(PTRACE_SETREGSET, thread.tid, 1, &all) != 0)
    return errno_error("restarting the call of thread " + std::to_string(thread.tid));
  return Done{};
}

Status StoppedProcess::suspend_filters() {
  suspend_ = true;
  return prepare();
}

// One that is in a call cannot be in the middle of a restartable sequence, so it is the better one.
Status StoppedProcess::prepare() {
  if (caller_ != nullptr) return Done{};
  const auto in_call = [](const Thread& t) { return static_cast<long>(t.registers.orig_rax) >= 0; };
  auto chosen = std::ranges::find_if(threads_, in_call);
  if (chosen == threads_.end()) chosen = threads_.begin();
  const pid_t tid = chosen->tid;
  if (suspend_ && trace(PTRACE_SETOPTIONS, tid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_SUSPEND_SECCOMP) != 0)
    return errno_error("suspending the filters of process " + std::to_string(pid_));
  if (trace(PTRACE_GETSIGMASK, tid, sizeof mask_, &mask_) != 0)
    return errno_error("reading the signal mask of thread " + std::to_string(tid));
  __ptrace_rseq_configuration rseq{};
  if (trace(PTRACE_GET_RSEQ_CONFIGURATION, tid, sizeof rseq, &rseq) == sizeof rseq && rseq.rseq_abi_pointer != 0 &&
      Procfs::read_memory(tid, rseq.rseq_abi_pointer + rseq_cs_offset, &sequence_, sizeof sequence_))
    sequence_at_ = rseq.rseq_abi_pointer + rseq_cs_offset;
  if (Status found = find_syscall(); !found) return found;
  if (trace(PTRACE_SETSIGMASK, tid, sizeof every_signal, &every_signal) != 0)
    return errno_error("blocking the signals of thread " + std::to_string(tid));
  caller_ = &*chosen;
  hurry();
  return Done{};
}

void StoppedProcess::hurry() {
  const LinuxScheduler scheduler;
  const auto own = scheduler.get(caller_->tid);
  const SchedAttr urgent{.policy = SchedPolicy::fifo, .rt_priority = 50, .reset_on_fork = true};
  if (own && own->policy != SchedPolicy::deadline && scheduler.set(caller_->tid, urgent)) own_ = *own;
}

Status StoppedProcess::find_syscall() {
  constexpr std::size_t piece = 65536;
  constexpr std::array<char, 2> instruction{0x0f, 0x05};
  std::vector<char> bytes;
  for (const Text& text : executable_mappings(pid_)) {
    for (std::uint64_t at = text.start; at < text.end; at += piece) {
      bytes.resize(std::min<std::uint64_t>(piece, text.end - at));
      if (!Procfs::read_memory(pid_, at, bytes.data(), bytes.size())) break;
      const auto found = std::search(bytes.begin(), bytes.end(), instruction.begin(), instruction.end());
      if (found == bytes.end()) continue;
      syscall_at_ = at + static_cast<std::uint64_t>(found - bytes.begin());
      return Done{};
    }
  }
  return Error(ENOEXEC, "process " + std::to_string(pid_) + " has no system call instruction");
}

Result<long> StoppedProcess::call(long nr, const std::array<std::uint64_t, 6>& args) {
  if (Status prepared = prepare(); !prepared) return std::move(prepared).error();
  user_regs_struct registers = caller_->registers;
  registers.rip = syscall_at_;
  registers.rax = static_cast<unsigned long long>(nr);
  registers.orig_rax = ~0ULL;  // in no call: nothing to restart
  registers.rdi = args[0];
  registers.rsi = args[1];
  registers.rdx = args[2];
  registers.r10 = args[3];
  registers.r8 = args[4];
  registers.r9 = args[5];
  iovec all{&registers, sizeof registers};
  began_ = true;
  if (trace(PTRACE_SETREGSET, caller_->tid, 1, &all) != 0) return Error(ESRCH, "making a call in it");
  if (Status ended = run_to_the_end_of_the_call(); !ended) return std::move(ended).error();
  if (trace(PTRACE_GETREGSET, caller_->tid, 1, &all) != 0) return Error(ESRCH, "reading what a call in it gave");
  return static_cast<long>(registers.rax);
}

Status StoppedProcess::run_to_the_end_of_the_call() {
  for (;;) {
    int status = 0;
    if (trace(PTRACE_SYSCALL, caller_->tid, 0, 0) != 0 || !await_caller(status)) {
      caller_->stopped = false;
      return Error(ESRCH, "process " + std::to_string(pid_) + " has ended");
    }
    if (is_call(status)) {
      __ptrace_syscall_info info{};
      if (trace(PTRACE_GET_SYSCALL_INFO, caller_->tid, sizeof info, &info) > 0 && info.op == PTRACE_SYSCALL_INFO_EXIT)
        return Done{};
    } else if (!is_interrupt(status) && WSTOPSIG(status) == SIGSTOP) {
      stop_again_ = true;  // cannot be blocked
    }
  }
}

Status StoppedProcess::write(std::uint64_t address, std::span<const std::byte> bytes) const {
  const iovec from{const_cast<std::byte*>(bytes.data()), bytes.size()};
  const iovec to{reinterpret_cast<void*>(address), bytes.size()};  // NOLINT(performance-no-int-to-ptr): not ours
  const ssize_t n = ::process_vm_writev(pid_, &from, 1, &to, 1, 0);
  if (n < 0) return errno_error("writing to process " + std::to_string(pid_));
  if (static_cast<std::size_t>(n) != bytes.size()) return Error(EFAULT, "writing to process " + std::to_string(pid_));
  return Done{};
}

// If the caller is the first thread, and all are killed, its end is told only once the others have been waited for.
bool StoppedProcess::await_caller(int& status) {
  for (;;) {
    siginfo_t told{};  // left where it is
    if (::waitid(P_ALL, 0, &told, WEXITED | WSTOPPED | WNOWAIT | __WALL) != 0 && errno != EINTR) return false;
    const auto reap = [](Thread& thread) {
      int ended = 0;
      if (::waitpid(thread.tid, &ended, __WALL | WNOHANG) == thread.tid && !WIFSTOPPED(ended)) thread.stopped = false;
    };
    if (told.si_pid != caller_->tid) {
      const auto other = std::ranges::find(threads_, told.si_pid, &Thread::tid);
      if (other != threads_.end()) {
        reap(*other);
      } else {  // a stranger's child, which stands before ours
        for (Thread& thread : threads_)
          if (&thread != caller_) reap(thread);
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
    }
    const pid_t r = ::waitpid(caller_->tid, &status, __WALL | WNOHANG);
    if (r != 0) return r == caller_->tid && WIFSTOPPED(status);
  }
}

// Until the tracer of a dead thread has waited for it, its process stays a zombie. The first thread is its parent's.
void StoppedProcess::bury(pid_t tid) const {
  if (tid == pid_) return;
  for (int i = 0; i < 100; ++i) {
    int status = 0;
    const pid_t r = ::waitpid(tid, &status, __WALL | WNOHANG);
    if (r < 0 || (r == tid && !WIFSTOPPED(status))) return;
    if (r == tid) (void)trace(PTRACE_DETACH, tid, 0, 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// To the place where it had been interrupted: there the kernel deals with signals, and with what is to be restarted.
void StoppedProcess::put_back() {
  const pid_t tid = caller_->tid;
  for (int status = 0; began_ && caller_->stopped && !is_interrupt(status);) {
    if (trace(PTRACE_INTERRUPT, tid, 0, 0) != 0 || trace(PTRACE_CONT, tid, 0, 0) != 0 || !await_caller(status))
      caller_->stopped = false;
    else if (!is_interrupt(status) && WSTOPSIG(status) == SIGSTOP)
      stop_again_ = true;
  }
  if (!caller_->stopped) return;
  iovec all{&caller_->registers, sizeof caller_->registers};
  (void)trace(PTRACE_SETREGSET, tid, 1, &all);
  (void)trace(PTRACE_SETSIGMASK, tid, sizeof mask_, &mask_);
  if (own_) (void)LinuxScheduler().set(tid, *own_);
  if (sequence_at_ != 0) (void)write(sequence_at_, std::as_bytes(std::span(&sequence_, 1)));
  if (stop_again_) ::syscall(SYS_tgkill, pid_, tid, SIGSTOP);
}

void StoppedProcess::release() {
  if (caller_ != nullptr) put_back();
  for (const Thread& thread : threads_)
    if (!thread.stopped || trace(PTRACE_DETACH, thread.tid, 0, 0) != 0) bury(thread.tid);
  threads_.clear();
  caller_ = nullptr;
}

}  // namespace swapd::sys
