// A parallel job that spins, and what competes with it.
//
//   spinners job SECONDS              two processes that share memory, on CPUs 0 and 1: each works for 100 us, then
//                                     spins until the other one has done so too
//   spinners ranks SECONDS            the same two, without shared memory, by messages that they poll for; their
//   parent,
//                                     which waits for them, is called mpirun
//   spinners hog CPU NICE SECONDS     a busy loop
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

using Clock = std::chrono::steady_clock;
using Rounds = std::array<std::atomic<unsigned long>, 2>;

bool pin(int cpu) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(static_cast<unsigned>(cpu), &cpus);
  return ::sched_setaffinity(0, sizeof cpus, &cpus) == 0;
}

void pause_a_little() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

void work() {
  volatile unsigned long sum = 0;
  const auto until = Clock::now() + std::chrono::microseconds(100);
  while (Clock::now() < until) sum = sum + 1;
}

int work_in_step(Rounds& rounds, std::size_t own, Clock::time_point end) {
  if (!pin(static_cast<int>(own))) return 3;
  const std::size_t other = 1 - own;
  for (unsigned long round = 1; Clock::now() < end; ++round) {
    work();
    rounds.at(own) = round;
    while (rounds.at(other) < round) {
      pause_a_little();
      if (Clock::now() >= end) return 0;
    }
  }
  return 0;
}

int job(Clock::time_point end) {
  void* shared = ::mmap(nullptr, sizeof(Rounds), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 3;
  auto& rounds = *new (shared) Rounds{};
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return 3;
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::_exit(::getppid() == parent ? work_in_step(rounds, 1, end) : 3);
  }
  const int failed = work_in_step(rounds, 0, end);
  if (failed != 0) ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  return failed != 0 ? failed : WIFEXITED(status) ? WEXITSTATUS(status) : 3;
}

int exchange_in_step(int socket, int own, Clock::time_point end) {
  if (!pin(own)) return 3;
  while (Clock::now() < end) {
    work();
    char byte = 0;
    if (::send(socket, &byte, 1, MSG_NOSIGNAL) != 1) return 0;
    while (::recv(socket, &byte, 1, MSG_DONTWAIT) != 1)
      if (Clock::now() >= end) return 0;
  }
  return 0;
}

int ranks(Clock::time_point end) {
  std::array<int, 2> ends{};
  if (::prctl(PR_SET_NAME, "mpirun") != 0 || ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return 3;
  const pid_t parent = ::getpid();
  for (const int own : {0, 1}) {
    const pid_t child = ::fork();
    if (child < 0) return 3;
    if (child != 0) continue;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::prctl(PR_SET_NAME, "rank");
    ::_exit(::getppid() == parent ? exchange_in_step(ends.at(static_cast<std::size_t>(own)), own, end) : 3);
  }
  int status = 0, failed = 0;
  while (::wait(&status) > 0) failed = status != 0 ? 3 : failed;
  return failed;
}

}  // namespace

int main(int argc, char** argv) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const bool is_job = argc == 3 && std::strcmp(argv[1], "job") == 0;
  const bool is_ranks = argc == 3 && std::strcmp(argv[1], "ranks") == 0;
  if (!is_job && !is_ranks && (argc != 5 || std::strcmp(argv[1], "hog") != 0)) return 2;
  const Clock::time_point end = Clock::now() + std::chrono::seconds(std::atoi(argv[argc - 1]));
  if (is_job) return job(end);
  if (is_ranks) return ranks(end);
  if (!pin(std::atoi(argv[2])) || ::setpriority(PRIO_PROCESS, 0, std::atoi(argv[3])) != 0) return 3;
  while (Clock::now() < end) {
  }
  return 0;
}
