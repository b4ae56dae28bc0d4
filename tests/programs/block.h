// What the block_* programs share. Each starts, for one scenario, a process that blocks (the waiter) and one that could
// end the wait (the provider), prints "WAITER PROVIDER\n" (thread ids), stays until its standard input ends, and ends
// both.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

namespace block {

inline std::vector<pid_t>& started() {
  static std::vector<pid_t> pids;
  return pids;
}

// A scenario that cannot be set up is a broken test, not a wait.
inline int must(int result, const char* what) {
  if (result >= 0) return result;
  std::perror(what);
  std::exit(1);
}

[[noreturn]] inline void idle() {
  for (;;) ::pause();
}

template <typename Role>
pid_t spawn(const Role& role) {
  const pid_t pid = must(::fork(), "fork");
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    role();
    ::_exit(0);
  }
  started().push_back(pid);
  return pid;
}

// One process waits until all others have got somewhere.
class Gate {
 public:
  Gate() {
    must(::pipe2(opened_, O_CLOEXEC), "pipe2");
    must(::pipe2(passed_, O_CLOEXEC), "pipe2");
  }
  void open() {
    close_all(opened_);
    close_all(passed_);
  }
  void wait() {
    until_end(opened_);
    close_all(passed_);
  }
  // Opens it, and returns when those who waited have gone through.
  void settle() {
    close_all(opened_);
    until_end(passed_);
  }

 private:
  static void close_all(const int (&ends)[2]) {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  static void until_end(const int (&ends)[2]) {
    char byte = 0;
    ::close(ends[1]);
    while (::read(ends[0], &byte, 1) < 0) {
    }
    ::close(ends[0]);
  }
  int opened_[2];
  int passed_[2];
};

inline void report(pid_t waiter, pid_t provider) {
  std::printf("%d %d\n", waiter, provider);
  std::fflush(stdout);
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) > 0) {
  }
  // The waiter, started last, first: else it would see the provider go.
  for (std::size_t i = started().size(); i-- > 0;) ::kill(started()[i], SIGKILL);
  // Children of children come to us when their parents end (main_of makes us their reaper).
  while (::waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {
  }
}

struct Scenario {
  const char* name;
  void (*play)();
};

inline int main_of(int argc, char** argv, std::span<const Scenario> scenarios) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (argc >= 2) {
    for (const Scenario& scenario : scenarios) {
      if (std::strcmp(scenario.name, argv[1]) == 0) {
        scenario.play();
        ::_exit(0);  // nothing is left to do; a leak checker would fail in the namespaces that some scenarios enter
      }
    }
  }
  std::fprintf(stderr, "scenarios:");
  for (const Scenario& scenario : scenarios) std::fprintf(stderr, " %s", scenario.name);
  std::fprintf(stderr, "\n");
  return 2;
}

inline void read_byte(int fd) {
  char byte = 0;
  [[maybe_unused]] const ssize_t got = ::read(fd, &byte, 1);
}

// Writes until the other side would have to read.
inline void fill(int fd) {
  static const char bytes[65536] = {};
  while (::write(fd, bytes, sizeof bytes) > 0) {
  }
}

}  // namespace block
