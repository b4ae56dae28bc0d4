// A parallel job that spins, and what competes with it.
//
//   spinners job SECONDS              two processes that share memory, on CPUs 0 and 1: each works for 100 us, then
//                                     spins until the other one has done so too
//   spinners hog CPU NICE SECONDS     a busy loop
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
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

int work_in_step(Rounds& rounds, std::size_t own, Clock::time_point end) {
  if (!pin(static_cast<int>(own))) return 3;
  const std::size_t other = 1 - own;
  volatile unsigned long sum = 0;
  for (unsigned long round = 1; Clock::now() < end; ++round) {
    const auto until = Clock::now() + std::chrono::microseconds(100);
    while (Clock::now() < until) sum = sum + round;
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

}  // namespace

int main(int argc, char** argv) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const bool is_job = argc == 3 && std::strcmp(argv[1], "job") == 0;
  if (!is_job && (argc != 5 || std::strcmp(argv[1], "hog") != 0)) return 2;
  const Clock::time_point end = Clock::now() + std::chrono::seconds(std::atoi(argv[argc - 1]));
  if (is_job) return job(end);
  if (!pin(std::atoi(argv[2])) || ::setpriority(PRIO_PROCESS, 0, std::atoi(argv[3])) != 0) return 3;
  while (Clock::now() < end) {
  }
  return 0;
}
