// A process for each blocking call that swapd knows, and one that lets it go on after some milliseconds at most, again
// and again. Each call's result is checked.
//
//   busy < PIPE      until the pipe is closed; then one line of JSON, and exit status 1 where something was wrong
//   busy --list      the calls, a line each
#include "busy.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>

namespace {

struct Seat {
  std::atomic<unsigned> round;  // that the waiter is about to wait in
  std::atomic<unsigned> done;
  std::atomic<unsigned> wrong;
  std::atomic<int> first_errno;
};
constexpr std::size_t max_cases = 64;
struct Shared {
  std::atomic<bool> stop;
  std::array<Seat, max_cases> seats;
};
Shared* shared = nullptr;

// Seen by both sides before either begins: what the case is made of.
pid_t start(const std::function<void()>& body) {
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() == parent) body();
  ::_exit(0);
}

void wait_again_and_again(busy::Case& one, Seat& seat) {
  for (unsigned round = 1; !shared->stop.load(); ++round) {
    one.prepare();
    seat.round = round;
    if (one.wait(round)) {
      ++seat.done;
      continue;
    }
    if (seat.wrong++ == 0) seat.first_errno = errno;
    return;  // the other side no longer knows where it is
  }
}

void end_again_and_again(busy::Case& one, Seat& seat, pid_t waiter, unsigned seed) {
  for (unsigned round = 1;; ++round) {
    one.hinder();
    while (seat.round.load() < round) ::usleep(200);
    ::usleep(static_cast<useconds_t>(::rand_r(&seed) % 4000));
    one.end(waiter, round);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<busy::Named> cases = busy::descriptor_cases();
  cases.insert(cases.end(), busy::other_cases().begin(), busy::other_cases().end());
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) {
    for (const busy::Named& named : cases) std::puts(named.name.c_str());
    return 0;
  }
  if (argc != 1 || cases.size() > max_cases) {
    std::fputs("usage: busy < PIPE, or busy --list\n", stderr);
    return 2;
  }
  void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  shared = new (memory) Shared{};
  std::vector<pid_t> waiters;
  std::vector<pid_t> others;
  std::vector<std::unique_ptr<busy::Case>> made;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    busy::Case& one = *made.emplace_back(cases[i].make());
    Seat& seat = shared->seats.at(i);
    const pid_t waiter = start([&] { wait_again_and_again(one, seat); });
    waiters.push_back(waiter);
    others.push_back(start([&] { end_again_and_again(one, seat, waiter, static_cast<unsigned>(i)); }));
  }
  for (char byte = 0; ::read(0, &byte, 1) > 0 || errno == EINTR;) {
  }
  shared->stop = true;
  std::size_t hung = 0;
  std::string who;
  for (std::size_t i = 0; i < waiters.size(); ++i) {
    int ended = 0;
    for (int tries = 0; tries < 10000 && (ended = ::waitpid(waiters[i], nullptr, WNOHANG)) == 0; ++tries)
      ::usleep(1000);
    if (ended != 0) continue;
    ++hung;
    who += " " + cases[i].name;
    ::kill(waiters[i], SIGKILL);
  }
  for (const pid_t other : others) ::kill(other, SIGKILL);
  while (::wait(nullptr) > 0) {
  }
  unsigned rounds = 0;
  unsigned wrong = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Seat& seat = shared->seats.at(i);
    rounds += seat.done;
    wrong += seat.wrong;
    if (seat.wrong != 0 || seat.done == 0)
      std::fprintf(stderr, "busy: %s: %u good, then %s\n", cases[i].name.c_str(), seat.done.load(),
                   std::strerror(seat.first_errno));
  }
  std::printf("{\"calls\":%zu,\"rounds\":%u,\"wrong\":%u,\"hung\":%zu}\n", cases.size(), rounds, wrong, hung);
  if (hung != 0) std::fprintf(stderr, "busy: hung:%s\n", who.c_str());
  return wrong == 0 && hung == 0 ? 0 : 1;
}
