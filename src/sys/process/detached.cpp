#include "sys/process/detached.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

namespace swapd::sys {
namespace {

// fork(2), but with no signal to the parent when the child ends: a SIGCHLD, blocked in an inherited mask, would wait
// for the program that the caller becomes.
pid_t fork_silently() { return static_cast<pid_t>(::syscall(SYS_clone, 0UL, nullptr, nullptr, nullptr, 0UL)); }

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

[[noreturn]] void become(const char* path, char* const* arguments, char* const* environment, int keep_fd, int log_fd) {
  ::setsid();
  for (int number = 1; number < NSIG; ++number) std::signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  // Above the four places that are filled below, wherever they stand now.
  const int keep = ::fcntl(keep_fd, F_DUPFD, 16);
  const int log = ::fcntl(log_fd, F_DUPFD, 16);
  const int null = ::open("/dev/null", O_RDONLY);
  if (keep < 0 || log < 0 || null < 0 || ::chdir("/") < 0) ::_exit(127);
  ::dup2(null, 0);
  ::dup2(log, 1);
  ::dup2(log, 2);
  ::dup2(keep, 3);
  ::close_range(4, ~0U, 0);
  ::umask(022);
  ::execve(path, arguments, environment);
  const char* reason = std::strerror(errno);
  const ssize_t written = ::write(2, reason, std::strlen(reason));
  ::_exit(written < 0 ? 126 : 127);
}

}  // namespace

Status start_detached(const DetachedProgram& program) {
  // Everything that allocates comes before the fork.
  const std::vector<char*> arguments = pointers(program.arguments);
  const std::vector<char*> environment = pointers(program.environment);
  // A caller that is a subreaper (prctl(2)) would inherit the orphan.
  int subreaper = 0;
  ::prctl(PR_GET_CHILD_SUBREAPER, &subreaper, 0, 0, 0);
  if (subreaper != 0) ::prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
  const pid_t between = fork_silently();
  if (between == 0) {
    const pid_t orphan = fork_silently();
    if (orphan == 0)
      become(program.path.c_str(), arguments.data(), environment.data(), program.keep_fd, program.log_fd);
    ::_exit(orphan < 0 ? 1 : 0);
  }
  const int fork_errno = errno;
  int state = 0;
  if (between > 0)
    while (::waitpid(between, &state, __WALL) < 0 && errno == EINTR) {
    }
  if (subreaper != 0) ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  if (between < 0) return Error(fork_errno, "cannot start a process");
  if (state != 0) return Error(EAGAIN, "cannot start a process");
  return Done{};
}

}  // namespace swapd::sys
