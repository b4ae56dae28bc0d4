// Threads of one CPU that take short turns, as the kernel schedules them.
#include "sys/sched/preempt_clock.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>

#include "sys/procfs/procfs.h"
#include "sys/sched/scheduler.h"

namespace swapd::sys {
namespace {

using namespace std::chrono_literals;

// Two busy threads of CPU 0.
class PreemptClockTest : public testing::Test {
 protected:
  void SetUp() override {
    cpu_set_t cpus;
    if (::sched_getaffinity(0, sizeof cpus, &cpus) != 0 || !CPU_ISSET(0, &cpus)) GTEST_SKIP() << "CPU 0 is needed";
    for (std::size_t i = 0; i < tids.size(); ++i)
      threads[i] = std::jthread([this, i] {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(0, &one);
        (void)::sched_setaffinity(0, sizeof one, &one);
        tids[i] = ::gettid();
        while (!over) {
        }
      });
    for (const std::atomic<pid_t>& tid : tids)
      while (tid == 0) ::sched_yield();
  }
  void TearDown() override { over = true; }
  [[nodiscard]] Procfs::SchedStat sum() const {
    Procfs::SchedStat sum{};
    for (const std::atomic<pid_t>& tid : tids)
      if (const auto one = procfs.schedstat(tid)) {
        sum.cpu += one->cpu;
        sum.turns += one->turns;
      }
    return sum;
  }
  // CPU time of the two for each turn on it, in the next 200 ms of CPU time.
  [[nodiscard]] Duration turn() const {
    const auto before = sum();
    auto now = before;
    while (now.cpu - before.cpu < 200ms) {
      std::this_thread::sleep_for(1ms);  // what is measured is time
      now = sum();
    }
    return (now.cpu - before.cpu) / static_cast<Duration::rep>(std::max<std::uint64_t>(now.turns - before.turns, 1));
  }

  std::atomic<bool> over{false};
  std::array<std::atomic<pid_t>, 2> tids{};
  std::array<std::jthread, 2> threads;
  const Procfs procfs;
};

TEST_F(PreemptClockTest, ThreadsTakeTurnsAsShortAsIsWanted) {
  PreemptClock clock;
  clock.set({{0, 200us}});
  if (!clock.trouble().empty()) GTEST_SKIP() << clock.trouble();
  EXPECT_LT(turn(), 1ms);
  EXPECT_GT(clock.cpu_time(), 0us);
  clock.set({});
  const Duration used = clock.cpu_time();
  EXPECT_GT(used, 0us) << "those that are over count";
  EXPECT_GT(turn(), 1ms) << "as the kernel has it";
  EXPECT_EQ(clock.cpu_time(), used);
}

TEST_F(PreemptClockTest, HasATroubleWhereThereIsNoSuchCpu) {
  PreemptClock clock;
  clock.set({{CPU_SETSIZE - 1, 1ms}});
  EXPECT_NE(clock.trouble(), "");
  clock.set({});
  EXPECT_EQ(clock.trouble(), "") << "nothing is wanted any more";
}

}  // namespace
}  // namespace swapd::sys
