// A process all of whose threads are stopped by ptrace(2), so that calls can be made in it unnoticed by its threads.
//
// Threads are seized and interrupted, never sent a SIGSTOP, so a program under job control stays what it is: stopped or
// not. Calls are made in one thread: its registers, its signal mask and the pointer to its restartable sequence are
// kept, every signal is blocked meanwhile, and the call is made by a `syscall` instruction that the process has anyway
// (in its vDSO). Nothing of its code is changed.
//
// The threads go on with what they were interrupted in: an interrupted call is restarted by the kernel, because each
// thread is let go from the place where signals are dealt with. A few calls do not restart but give EINTR even where no
// handler has run (signal(7)): epoll_wait, semop and others, and those on sockets with a timeout. To the kernel they
// are shown as what restarts unless a handler runs, ERESTARTNOHAND. Their timeouts begin anew.
//
// Among busy loops each step of such a call would wait for a CPU, some 100 ms: meanwhile that thread is real-time.
//
// One thread does it all (ptrace knows tracers by thread), and while a call is made that thread must not die: what it
// leaves is a program with strange registers. So this runs in a process of its own, swapd-attach.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/sched_attr.h"
#include "base/time.h"

namespace swapd::sys {

class StoppedProcess {
 public:
  // ESRCH: it has ended. EBUSY: a process traces it. ENOEXEC: it is no x86-64 program. ETIMEDOUT: a thread does not
  // stop, since it sleeps where nothing wakes it (vfork(2), a device); all of them go on.
  [[nodiscard]] static Result<std::unique_ptr<StoppedProcess>> stop(pid_t pid, Duration within);
  StoppedProcess(const StoppedProcess&) = delete;
  StoppedProcess& operator=(const StoppedProcess&) = delete;
  // Every thread goes on where it was.
  ~StoppedProcess();

  // From now on filters of its own do not see what is called here. EPERM: needs CAP_SYS_ADMIN, and no filter of ours.
  [[nodiscard]] Status suspend_filters();
  // The kernel's return value, -errno if the call failed. An error: the process has ended, or no call can be made in
  // it.
  [[nodiscard]] Result<long> call(long nr, const std::array<std::uint64_t, 6>& args);
  [[nodiscard]] Status write(std::uint64_t address, std::span<const std::byte> bytes) const;
  [[nodiscard]] std::size_t threads() const { return threads_.size(); }
  void release();

 private:
  struct Thread {
    pid_t tid = -1;
    bool stopped = false;
    user_regs_struct registers{};
  };

  explicit StoppedProcess(pid_t pid) : pid_(pid) {}
  [[nodiscard]] Status seize(pid_t tid);
  [[nodiscard]] Status await_all(Time deadline);
  [[nodiscard]] Status look(Thread& thread) const;
  [[nodiscard]] Status prepare();
  [[nodiscard]] Status find_syscall();
  void hurry();
  [[nodiscard]] Status run_to_the_end_of_the_call();
  [[nodiscard]] bool await_caller(int& status);  // false: it has ended
  void bury(pid_t tid) const;
  void put_back();

  pid_t pid_;
  bool suspend_ = false;
  std::vector<Thread> threads_;
  // The thread in which calls are made.
  Thread* caller_ = nullptr;
  bool began_ = false;
  std::uint64_t mask_ = 0;
  std::uint64_t sequence_at_ = 0;  // where it names its restartable sequence; 0: nowhere
  std::uint64_t sequence_ = 0;
  std::uint64_t syscall_at_ = 0;
  std::optional<SchedAttr> own_;  // its own, where it was given another
  bool stop_again_ = false;       // a SIGSTOP came meanwhile
};

}  // namespace swapd::sys
