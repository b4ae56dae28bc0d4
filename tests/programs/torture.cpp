// Pairs of processes that hand a number to and fro over every mechanism, and say what went wrong.
//
//   torture PAIRS < PIPE      until the pipe is closed; then one line of JSON
//
// Each number is checked on both sides. `wrong`: another one came, or a call failed; `enosys` and `eintr`: with that
// errno; `rounds`; `worst_ms`: the longest that a number was on its way; `slow`: how many took longer than 0.01, 0.1,
// 0.5 and 1 s.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <chrono>
#include <string>
#include <vector>

#include "torture_ways.h"

namespace {

using torture::kinds;
using torture::Link;
using torture::must;

struct Result {
  std::atomic<std::uint64_t> rounds, wrong, enosys, eintr, worst_ns;
  std::atomic<int> first_wrong;  // its errno; 0: a number
  std::array<std::atomic<std::uint64_t>, 4> slow;
};

struct Shared {
  std::atomic<bool> stop;
  std::array<std::array<std::atomic<std::uint32_t>, 2>, 512> words;
  std::array<Result, 512> results;
};

Shared* shared = nullptr;

constexpr std::uint64_t last_number = ~0ULL;

void wrong(Result& result, bool failed) {
  const int code = failed ? errno : 0;
  if (code == ENOSYS) ++result.enosys;
  if (code == EINTR) ++result.eintr;
  if (result.wrong++ == 0) result.first_wrong = code;
}

void serve(Link& link, Result& result) {
  for (std::uint64_t expected = 1;; ++expected) {
    std::uint64_t number = 0;
    if (!link.there->get(number)) return wrong(result, true);
    if (number == last_number) return;
    if (number != expected) return wrong(result, false);
    if (!link.back->put(number * 2654435761U)) return wrong(result, true);
  }
}

void ask(Link& link, Result& result, unsigned seed) {
  using Clock = std::chrono::steady_clock;
  std::uint64_t number = 0;
  while (!shared->stop.load()) {
    const auto began = Clock::now();
    std::uint64_t answer = 0;
    if (!link.there->put(++number) || !link.back->get(answer)) return wrong(result, true);
    if (answer != number * 2654435761U) return wrong(result, false);
    const auto ns = static_cast<std::uint64_t>((Clock::now() - began) / std::chrono::nanoseconds(1));
    ++result.rounds;
    if (ns > result.worst_ns) result.worst_ns = ns;
    constexpr std::array<std::uint64_t, 4> bounds = {10'000'000, 100'000'000, 500'000'000, 1'000'000'000};
    for (std::size_t i = 0; i < bounds.size(); ++i)
      if (ns > bounds.at(i)) ++result.slow.at(i);
    ::usleep(static_cast<useconds_t>(::rand_r(&seed) % 40000));
  }
  (void)link.there->put(last_number);
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t pairs = argc == 2 ? std::strtoul(argv[1], nullptr, 10) : 0;
  if (pairs == 0 || pairs > 512) {
    std::fputs("usage: torture PAIRS (1 to 512) < PIPE\n", stderr);
    return 2;
  }
  void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  must(memory != MAP_FAILED, "mmap");
  shared = new (memory) Shared{};
  std::vector<Link> links;
  const pid_t parent = ::getpid();
  for (std::size_t i = 0; i < pairs; ++i) {
    Link link = torture::make(i, shared->words.at(i));  // no other pair shall hold its ends
    for (const bool server : {true, false}) {
      const pid_t pid = ::fork();
      must(pid >= 0, "fork");
      if (pid != 0) continue;
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(1);
      if (server)
        serve(link, shared->results.at(i));
      else
        ask(link, shared->results.at(i), static_cast<unsigned>(i));
      ::_exit(0);
    }
    if (link.there->stays()) links.push_back(std::move(link));
  }
  for (char byte = 0; ::read(0, &byte, 1) > 0 || errno == EINTR;) {
  }
  shared->stop = true;
  // What hangs shows as a process that does not end.
  std::size_t hung = 2 * pairs;
  for (int tenths = 0; tenths < 100 && hung > 0; ++tenths) {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) --hung;
    if (hung > 0) ::usleep(100'000);
  }
  std::uint64_t rounds = 0, wrongs = 0, enosys = 0, eintr = 0, worst = 0;
  std::array<std::uint64_t, 4> slow{};
  std::string bad;
  const char* slowest = "";
  for (std::size_t i = 0; i < pairs; ++i) {
    const Result& r = shared->results.at(i);
    rounds += r.rounds;
    wrongs += r.wrong;
    enosys += r.enosys;
    eintr += r.eintr;
    if (r.worst_ns > worst) {
      worst = r.worst_ns;
      slowest = kinds.at(i % kinds.size());
    }
    for (std::size_t k = 0; k < slow.size(); ++k) slow.at(k) += r.slow.at(k);
    if (r.wrong != 0)
      bad += std::string(bad.empty() ? "" : ",") + "\"" + kinds.at(i % kinds.size()) + ":" +
             std::to_string(r.first_wrong) + "\"";
  }
  std::printf(
      "{\"pairs\":%zu,\"rounds\":%lu,\"wrong\":%lu,\"enosys\":%lu,\"eintr\":%lu,\"hung\":%zu,\"worst_ms\":%.1f,"
      "\"worst\":\"%s\","
      "\"slow\":[%lu,%lu,%lu,%lu],\"bad\":[%s]}\n",
      pairs, rounds, wrongs, enosys, eintr, hung, static_cast<double>(worst) / 1e6, slowest, slow[0], slow[1], slow[2],
      slow[3], bad.c_str());
  return wrongs == 0 && hung == 0 ? 0 : 1;
}
