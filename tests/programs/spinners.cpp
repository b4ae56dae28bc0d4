// A parallel job that spins, and what competes with it.
//
//   spinners job SECONDS              two processes that share memory, on CPUs 0 and 1: each works for 100 us, then
//                                     spins until the other one has done so too
//   spinners ranks SECONDS            the same two without shared memory, by messages that they poll for; they say how
//                                     many rounds there were. Their parent is called mpirun
//   spinners strangers SECONDS        the same, of a parent without that name, as if they were on two machines
//   spinners node CPU PLACE SECONDS   one of them, which meets the other one by TCP at PORT of 127.0.0.1, or at
//                                     ADDRESS:PORT
//   spinners hog CPU NICE SECONDS     a busy loop
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
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
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

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

int exchange_in_step(int socket, int own, Clock::time_point end, bool is_node = false) {
  if (!pin(own)) return 3;
  unsigned long rounds = 0;
  for (bool there = true; there && Clock::now() < end; ++rounds) {
    work();
    char byte = 0;
    there = ::send(socket, &byte, 1, MSG_NOSIGNAL) == 1;
    while (there && ::recv(socket, &byte, 1, MSG_DONTWAIT) != 1) there = Clock::now() < end;
  }
  if (own == 0 || is_node) std::printf("%lu\n", rounds);
  return std::fflush(stdout) == 0 ? 0 : 3;
}

// The first of two connects to nothing, and listens.
int meet(const std::string& place) {
  const int one = 1;
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  const auto colon = place.find(':');
  const std::string host = colon == std::string::npos ? "127.0.0.1" : place.substr(0, colon);
  const std::string port = colon == std::string::npos ? place : place.substr(colon + 1);
  address.sin_port = htons(static_cast<std::uint16_t>(std::atoi(port.c_str())));
  if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) return -1;
  const auto* where = reinterpret_cast<const sockaddr*>(&address);
  int met = socket;
  if (::connect(socket, where, sizeof address) != 0) {
    const int listening = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 ||
        ::bind(listening, where, sizeof address) != 0 || ::listen(listening, 1) != 0)
      return -1;
    met = ::accept(listening, nullptr, nullptr);
  }
  return ::setsockopt(met, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) == 0 ? met : -1;
}

int node(int cpu, const std::string& place, Clock::time_point end) {
  const int socket = meet(place);
  return socket < 0 ? 3 : exchange_in_step(socket, cpu, end, true);
}

int ranks(const char* launcher, Clock::time_point end) {
  std::array<int, 2> ends{};
  if (::prctl(PR_SET_NAME, launcher) != 0 || ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
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
  const bool is_strangers = argc == 3 && std::strcmp(argv[1], "strangers") == 0;
  const bool is_node = argc == 5 && std::strcmp(argv[1], "node") == 0;
  if (!is_job && !is_ranks && !is_strangers && !is_node && (argc != 5 || std::strcmp(argv[1], "hog") != 0)) return 2;
  const Clock::time_point end = Clock::now() + std::chrono::seconds(std::atoi(argv[argc - 1]));
  if (is_job) return job(end);
  if (is_node) return node(std::atoi(argv[2]), argv[3], end);
  if (is_ranks || is_strangers) return ranks(is_ranks ? "mpirun" : "strangers", end);
  if (!pin(std::atoi(argv[2])) || ::setpriority(PRIO_PROCESS, 0, std::atoi(argv[3])) != 0) return 3;
  while (Clock::now() < end) {
  }
  return 0;
}
