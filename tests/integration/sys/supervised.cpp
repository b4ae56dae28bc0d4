#include "supervised.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <string>
#include <thread>

#include "patience.h"
#include "sys/process/futex.h"
#include "sys/process/pidfd.h"

namespace swapd::test {

struct Supervised::Shared {
  std::atomic<std::int32_t> listener{-1};
  std::atomic<std::int32_t> go{0};
};

std::vector<sys::TrapRule> call_rules() {
  std::vector<sys::TrapRule> rules;
  for (const int nr :
       {SYS_read,     SYS_readv,         SYS_pread64,         SYS_write,      SYS_writev,      SYS_pwrite64, SYS_sendto,
        SYS_sendmsg,  SYS_recvfrom,      SYS_recvmsg,         SYS_accept,     SYS_accept4,     SYS_connect,  SYS_select,
        SYS_pselect6, SYS_poll,          SYS_ppoll,           SYS_epoll_wait, SYS_epoll_pwait, SYS_msgsnd,   SYS_msgrcv,
        SYS_semop,    SYS_rt_sigsuspend, SYS_rt_sigtimedwait, SYS_pause,      SYS_wait4,       SYS_waitid})
    rules.push_back({.nr = nr, .condition = {}});
  rules.push_back({.nr = SYS_fcntl, .condition = sys::TrapRule::Condition{1, 0xffffffff, {F_SETLKW, F_OFD_SETLKW}}});
  return rules;
}

Supervised::Supervised(std::span<const sys::TrapRule> rules, std::function<int()> body) {
  void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  shared_ = new (memory) Shared;
  const auto program = sys::build_filter(rules);
  if (!program) return;
  pid_ = ::fork();
  if (pid_ == 0) {
    auto listener = sys::install_filter(*program, {});
    if (!listener) ::_exit(99);
    shared_->listener.store(listener->get());
    sys::futex_wake(shared_->listener);
    while (shared_->go.load() == 0)
      sys::futex_wait(shared_->go, 0, std::chrono::steady_clock::now() + std::chrono::seconds(1));
    listener->reset();  // close(2) is not trapped
    ::_exit(body());
  }
  const auto pidfd = sys::open_pidfd(pid_);
  if (!pidfd) return;
  while (shared_->listener.load() < 0 && !sys::has_exited(pidfd->get()))
    sys::futex_wait(shared_->listener, -1, std::chrono::steady_clock::now() + std::chrono::milliseconds(20));
  if (shared_->listener.load() < 0) return;
  if (auto taken = sys::take_fd(pidfd->get(), shared_->listener.load())) listener_ = std::move(taken).value();
}

Supervised::~Supervised() {
  if (pid_ > 0 && !reaped_) {
    ::kill(pid_, SIGKILL);
    wait();
  }
  ::munmap(shared_, sizeof(Shared));
}

void Supervised::go() {
  shared_->go.store(1);
  sys::futex_wake(shared_->go);
}

int Supervised::wait() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  reaped_ = true;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

bool eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10) * patience();
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

char state_of(pid_t tid) {
  std::ifstream file("/proc/" + std::to_string(tid) + "/stat");
  std::string line;
  std::getline(file, line);
  const auto end = line.rfind(')');  // the name may hold brackets itself
  return end == std::string::npos || end + 2 >= line.size() ? '\0' : line[end + 2];
}

}  // namespace swapd::test
