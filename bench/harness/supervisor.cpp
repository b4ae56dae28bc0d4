#include "harness/supervisor.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "harness/process.h"
#include "harness/shared.h"
#include "sys/sched/scheduler.h"
#include "sys/seccomp/seccomp.h"

namespace swapd::bench {

namespace {

[[noreturn]] void supervise(int channel, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(0);
  ::setsid();
  if (const Fd group(::open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC)); group)
    (void)!::write(group.get(), "-20", 3);
  cpu_set_t all;
  std::memset(&all, 0xff, sizeof all);
  const sys::LinuxScheduler scheduler;
  (void)scheduler.set_affinity(0, all);
  (void)scheduler.set(0, SchedAttr{.nice = -20});
  const Fd listener = receive_fd(channel);
  if (!listener) ::_exit(1);
  (void)sys::set_sync_wake_up(listener.get());
  const char byte = 0;
  if (::send(channel, &byte, 1, MSG_NOSIGNAL) != 1) ::_exit(1);
  for (;;) {
    const auto notification = sys::receive(listener.get());
    if (notification) (void)sys::answer_continue(listener.get(), notification->id);
  }
}

}  // namespace

Status put_under_bare_supervisor(int nr) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return errno_error("socketpair");
  const Fd mine(ends[0]), its(ends[1]);
  const pid_t self = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error("fork");
  if (pid == 0) supervise(its.get(), self);
  const sys::TrapRule rule{.nr = nr, .condition = {}};
  const auto program = sys::build_filter({&rule, 1});
  if (!program) return program.error();
  auto listener = sys::install_filter(*program, {});
  if (!listener) return listener.error();
  // From here on call `nr` of this thread waits for the supervisor; sendmsg and recv are not it.
  if (const auto sent = send_fd(mine.get(), listener->get()); !sent) return sent;
  char byte = 0;
  if (::recv(mine.get(), &byte, 1, 0) != 1) return errno_error("the bare supervisor");
  return Done{};
}

}  // namespace swapd::bench
