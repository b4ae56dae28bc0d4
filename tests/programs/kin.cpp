// A server with a process for each client, which waits for a signal of a sibling: as PostgreSQL's wait for a lock.
//
//   kin signal|latch SOCKET FLAG
//
// The first child, the holder, is nice 10. It is told of each new sibling, computes until FLAG exists (at most 20 s),
// takes FLAG away and sends the sibling SIGURG, which answers its client then. `signal`: the siblings wait in
// rt_sigtimedwait(2); `latch`: in poll(2), for a pipe that their own handler writes to. Prints the holder's pid.
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>

namespace {

using Clock = std::chrono::steady_clock;

int latch[2] = {-1, -1};

void set_latch(int /*signal*/) { (void)!::write(latch[1], "x", 1); }

int hold(int tidings, const char* flag) {
  ::setpriority(PRIO_PROCESS, 0, 10);
  pid_t next = 0;
  while (::read(tidings, &next, sizeof next) == sizeof next) {
    const auto end = Clock::now() + std::chrono::seconds(20);
    volatile unsigned long work = 0;
    while (::access(flag, F_OK) != 0 && Clock::now() < end)
      for (int i = 0; i < 100000; ++i) work = work + 1;
    ::unlink(flag);
    ::kill(next, SIGURG);
  }
  return 0;
}

int serve(int client, bool by_latch) {
  char request = 0;
  if (::read(client, &request, 1) != 1) return 1;
  if (by_latch) {
    pollfd wait{.fd = latch[0], .events = POLLIN, .revents = 0};
    while (::poll(&wait, 1, -1) < 0 && errno == EINTR) {
    }
  } else {
    sigset_t urgent;
    ::sigemptyset(&urgent);
    ::sigaddset(&urgent, SIGURG);
    siginfo_t info{};
    while (::sigwaitinfo(&urgent, &info) < 0 && errno == EINTR) {
    }
  }
  return ::write(client, "a", 1) == 1 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const bool by_latch = std::strcmp(argv[1], "latch") == 0;
  ::signal(SIGCHLD, SIG_IGN);
  int tidings[2];
  if (::pipe(tidings) != 0) return 1;
  const pid_t holder = ::fork();
  if (holder == 0) {
    ::close(tidings[1]);
    return hold(tidings[0], argv[3]);
  }
  ::close(tidings[0]);
  std::printf("%d\n", holder);
  std::fflush(stdout);

  const int listener = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, argv[2], sizeof address.sun_path - 1);
  if (::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 || ::listen(listener, 8) != 0)
    return 1;
  for (;;) {
    const int client = ::accept(listener, nullptr, nullptr);
    if (client < 0) continue;
    // Before the fork, so that no signal comes too early.
    if (by_latch) {
      if (::pipe(latch) != 0) return 1;
      struct sigaction action {};
      action.sa_handler = set_latch;
      ::sigaction(SIGURG, &action, nullptr);
    } else {
      sigset_t urgent;
      ::sigemptyset(&urgent);
      ::sigaddset(&urgent, SIGURG);
      ::sigprocmask(SIG_BLOCK, &urgent, nullptr);
    }
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(listener);
      ::close(tidings[1]);
      return serve(client, by_latch);
    }
    if (by_latch) {
      ::close(latch[0]);
      ::close(latch[1]);
    }
    ::close(client);
    if (::write(tidings[1], &child, sizeof child) != sizeof child) return 1;
  }
}
