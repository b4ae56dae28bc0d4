#include "daemonize.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>

#include "sys/process/privilege.h"

namespace swapd::daemon {

namespace {

volatile std::sig_atomic_t the_daemon = 0;

void pass_on(int signal) {
  if (the_daemon > 0) ::kill(static_cast<pid_t>(the_daemon), signal);
}

[[noreturn]] void front(pid_t daemon) {
  the_daemon = daemon;
  sys::keep_needed_capabilities();
  struct sigaction action {};
  action.sa_handler = pass_on;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) ::sigaction(signal, &action, nullptr);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  int status = 0;
  while (::waitpid(daemon, &status, 0) < 0 && errno == EINTR) {
  }
  std::_Exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

[[noreturn]] void wait_until_ready(int ready) {
  char byte = 0;
  const ssize_t n = ::read(ready, &byte, 1);
  std::_Exit(n == 1 ? 0 : 1);
}

}  // namespace

Result<Fd> daemonize(bool foreground) {
  if (foreground && ::getsid(0) == ::getpid()) return Fd();  // a service manager's child: alone in its session already
  std::array<int, 2> ready{};
  if (::pipe2(ready.data(), O_CLOEXEC) != 0) return errno_error("making a pipe");
  Fd reader(ready[0]);
  Fd writer(ready[1]);
  // Signals that arrive before the front can pass them on wait.
  sigset_t all;
  sigset_t old;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &old);
  const pid_t parent = ::getpid();
  const pid_t daemon = ::fork();
  if (daemon < 0) return errno_error("forking the daemon");
  if (daemon > 0) {
    writer.reset();
    if (foreground) front(daemon);
    wait_until_ready(reader.get());
  }
  ::setsid();
  if (foreground) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) std::_Exit(1);
  }
  ::sigprocmask(SIG_SETMASK, &old, nullptr);
  if (foreground) return Fd();
  return writer;
}

}  // namespace swapd::daemon
