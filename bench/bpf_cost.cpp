// What the kernel's tracer costs a pipe ping-pong on one CPU: the time of a round trip, and of each program
// (docs/bpf.md).
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sys/bpf/bpf_run_stats.h"
#include "sys/bpf/bpf_tracer.h"

namespace {

using swapd::sys::BpfTracer;

constexpr int round_trips = 10000;
constexpr int repeats = 7;

struct Pipe {
  std::array<int, 2> ends{};
  Pipe() {
    if (::pipe(ends.data()) != 0) ::_exit(1);
  }
  void send() const { (void)!::write(ends[1], "x", 1); }
  void receive() const {
    char byte = 0;
    (void)!::read(ends[0], &byte, 1);
  }
};

template <typename Play>
pid_t spawn(const Play& play) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  cpu_set_t first;
  CPU_ZERO(&first);
  CPU_SET(0, &first);
  ::sched_setaffinity(0, sizeof first, &first);
  play();
  ::_exit(0);
}

// Two processes; each run() is one measured series of round trips.
class PingPong {
 public:
  PingPong() {
    ping_ = spawn([this] {
      for (;;) {
        go_.receive();
        for (int i = 0; i < round_trips; ++i) {
          there_.send();
          back_.receive();
        }
        done_.send();
      }
    });
    pong_ = spawn([this] {
      for (;;) {
        there_.receive();
        back_.send();
      }
    });
  }
  PingPong(const PingPong&) = delete;
  PingPong& operator=(const PingPong&) = delete;
  ~PingPong() {
    for (const pid_t pid : {ping_, pong_}) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }
  [[nodiscard]] std::array<pid_t, 2> pids() const { return {ping_, pong_}; }
  double run() const {
    const auto before = std::chrono::steady_clock::now();
    go_.send();
    done_.receive();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - before;
    return took.count() / round_trips;
  }

 private:
  Pipe there_, back_, go_, done_;
  pid_t ping_ = -1, pong_ = -1;
};

struct Series {
  const char* name;
  bool load, manage, watch;
};
constexpr std::array<Series, 4> all_series{{{"no tracer", false, false, false},
                                            {"others are managed", true, false, false},
                                            {"managed", true, true, false},
                                            {"managed and watched", true, true, true}}};

// The ring is large enough for a series: nobody is woken to read.
std::unique_ptr<BpfTracer> prepare(const Series& series, const PingPong& pair) {
  if (!series.load) return nullptr;
  auto opened = BpfTracer::open({.ring_bytes = std::size_t{1} << 24, .wake_at_bytes = std::size_t{1} << 30});
  if (!opened) {
    std::fprintf(stderr, "%s\n", opened.error().text().c_str());
    std::exit(1);
  }
  for (const pid_t pid : pair.pids())
    if ((series.manage && !(*opened)->manage(pid)) || (series.watch && !(*opened)->watch(pid, true, false)))
      std::exit(1);
  return std::move(opened).value();
}

}  // namespace

int main() {
  std::map<std::string, std::vector<double>> times;
  for (int i = 0; i < repeats; ++i) {
    for (const Series& series : all_series) {
      const PingPong pair;
      const auto tracer = prepare(series, pair);
      times[series.name].push_back(pair.run());
    }
  }
  std::printf("%-20s %16s\n", "", "round trip, us");
  for (const Series& series : all_series) {
    auto& values = times[series.name];
    std::ranges::sort(values);
    std::printf("%-20s %8.2f (%.2f to %.2f)\n", series.name, values[values.size() / 2], values.front(), values.back());
  }
  std::printf("\n%-20s %-10s %8s %10s\n", "", "program", "runs", "ns a run");
  for (const Series& series : all_series) {
    const PingPong pair;
    const auto tracer = prepare(series, pair);
    if (tracer == nullptr) continue;
    const auto measuring = swapd::sys::measure_bpf_costs();
    (void)pair.run();
    for (const auto& cost : swapd::sys::bpf_costs(::getpid()))
      if (cost.runs > 1000)
        std::printf("%-20s %-10s %8llu %10.1f\n", series.name, cost.name.c_str(),
                    static_cast<unsigned long long>(cost.runs),
                    static_cast<double>(cost.total.count()) / static_cast<double>(cost.runs));
    if (tracer->lost() != 0)
      std::printf("%-20s lost %llu records\n", "", static_cast<unsigned long long>(tracer->lost()));
  }
}
