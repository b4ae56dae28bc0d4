// Switch records and CPU timers against the real scheduler.
#include "sys/perf/perf.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <functional>
#include <iostream>

#include "supervised.h"
#include "sys/sched/scheduler.h"

namespace swapd::sys {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using test::eventually;
using test::state_of;

bool readable(int fd, milliseconds within) {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, static_cast<int>(within.count())) == 1 && (entry.revents & POLLIN) != 0;
}

// A child that does `step` for each byte it is sent. It ends with this object.
class Stepper {
 public:
  explicit Stepper(const std::function<void()>& step) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
    read_end_.reset(ends[0]);
    write_end_.reset(ends[1]);
    pid_ = ::fork();
    if (pid_ != 0) return;
    write_end_.reset();
    for (char byte = 0; ::read(read_end_.get(), &byte, 1) == 1;) step();
    ::_exit(0);
  }
  Stepper(const Stepper&) = delete;
  Stepper& operator=(const Stepper&) = delete;
  ~Stepper() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  void step() const { (void)!::write(write_end_.get(), "x", 1); }
  // Waits until it sleeps in its read.
  [[nodiscard]] bool rests() const {
    return eventually([&] { return state_of(pid_) == 'S'; });
  }

 private:
  Fd read_end_, write_end_;
  pid_t pid_ = -1;
};

Duration cpu_time() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return std::chrono::seconds(t.tv_sec) + Duration(t.tv_nsec);
}

void burn(Duration amount) {
  for (const Duration until = cpu_time() + amount; cpu_time() < until;) {
  }
}

TEST(SwitchWatch, RecordsThatAThreadGoesOnAndBlocksAgain) {
  const Stepper child([] {});
  ASSERT_TRUE(child.rests());
  const auto watch = SwitchWatch::open(child.pid());
  ASSERT_TRUE(watch) << watch.error().text();
  const Time before = std::chrono::steady_clock::now();
  child.step();
  ASSERT_TRUE(readable((*watch)->fd(), milliseconds(5000)));
  ASSERT_TRUE(child.rests());
  std::array<SwitchRecord, 8> records;
  // It goes on and blocks; in between, another may have taken its CPU for a while.
  const std::size_t n = (*watch)->read(records.data(), records.size());
  ASSERT_GE(n, 2U);
  EXPECT_EQ(n % 2, 0U) << "each turn on a CPU has a beginning and an end";
  EXPECT_FALSE(records[0].out);
  for (std::size_t i = 1; i + 1 < n; ++i) EXPECT_TRUE(!records.at(i).out || records.at(i).preempted) << i;
  EXPECT_TRUE(records.at(n - 1).out);
  EXPECT_FALSE(records.at(n - 1).preempted);
  // The stamps are CLOCK_MONOTONIC's.
  EXPECT_LE(before, records[0].time);
  EXPECT_LE(records[0].time, records[1].time);
  EXPECT_LE(records.at(n - 1).time, std::chrono::steady_clock::now());
  EXPECT_EQ((*watch)->read(records.data(), records.size()), 0U);
}

TEST(SwitchWatch, KeepsTheNewestWhenThereAreMoreThanAskedFor) {
  const Stepper child([] {});
  ASSERT_TRUE(child.rests());
  const auto watch = SwitchWatch::open(child.pid());
  ASSERT_TRUE(watch);
  Time last_step{};
  for (int i = 0; i < 10; ++i) {
    last_step = std::chrono::steady_clock::now();
    child.step();
    ASSERT_TRUE(readable((*watch)->fd(), milliseconds(5000)));
    ASSERT_TRUE(child.rests());
  }
  std::array<SwitchRecord, 3> records;
  ASSERT_EQ((*watch)->read(records.data(), records.size()), 3U);
  EXPECT_TRUE(records[0].out);  // the end of the step before the last
  EXPECT_LT(records[0].time, last_step);
  EXPECT_FALSE(records[1].out);
  EXPECT_TRUE(records[2].out);
  EXPECT_LE(last_step, records[1].time);
}

TEST(SwitchWatch, TellsAPreemptedThreadFromABlockedOne) {
  // Two burners on one CPU preempt each other.
  cpu_set_t before;
  ::sched_getaffinity(0, sizeof before, &before);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (std::size_t cpu = 0; CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  ::sched_setaffinity(0, sizeof one, &one);
  const Stepper first([] { burn(milliseconds(200)); });
  const Stepper second([] { burn(milliseconds(200)); });
  ::sched_setaffinity(0, sizeof before, &before);
  ASSERT_TRUE(first.rests());
  const auto watch = SwitchWatch::open(first.pid());
  ASSERT_TRUE(watch);
  first.step();
  second.step();
  bool preempted = false;
  EXPECT_TRUE(eventually([&] {
    std::array<SwitchRecord, 64> records;
    const std::size_t n = (*watch)->read(records.data(), records.size());
    for (std::size_t i = 0; i < n; ++i) preempted |= records.at(i).out && records.at(i).preempted;
    return preempted;
  }));
}

TEST(SwitchWatch, IsSilentWhilePausedOrDisabled) {
  for (const bool pauses : {false, true}) {
    const Stepper child([] {});
    ASSERT_TRUE(child.rests());
    const auto watch = SwitchWatch::open(child.pid());
    ASSERT_TRUE(watch);
    const auto hear = [&](bool on) { pauses ? (*watch)->pause(!on) : (*watch)->enable(on); };
    hear(false);
    child.step();
    ASSERT_TRUE(child.rests());
    EXPECT_FALSE(readable((*watch)->fd(), milliseconds(20))) << pauses;
    hear(true);
    child.step();
    EXPECT_TRUE(readable((*watch)->fd(), milliseconds(5000))) << pauses;
  }
}

TEST(SwitchWatch, OfAThreadThatIsGone) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  ::waitpid(pid, nullptr, 0);
  const auto watch = SwitchWatch::open(pid);
  ASSERT_FALSE(watch);
  EXPECT_TRUE(watch.error().gone());
}

TEST(CpuTimer, FiresAfterThatMuchCpuTimeOfTheThread) {
  const Stepper child([] { burn(milliseconds(100)); });
  ASSERT_TRUE(child.rests());
  const auto timer = CpuTimer::open(child.pid());
  ASSERT_TRUE(timer) << timer.error().text();
  (*timer)->arm(milliseconds(20));
  EXPECT_FALSE(readable((*timer)->fd(), milliseconds(50)));  // it sleeps: its time stands still
  EXPECT_FALSE((*timer)->expired());
  child.step();
  ASSERT_TRUE(readable((*timer)->fd(), milliseconds(5000)));
  EXPECT_TRUE((*timer)->expired());
  EXPECT_GE((*timer)->used(), milliseconds(19));
}

// The timer's own delay and that of our waking, which is real-time, as the engine's is. A virtual CPU that the host
// takes away in between counts as used: hence the best of several.
TEST(CpuTimer, IsExactToAMillisecondAndCanBeArmedAgain) {
  const Stepper child([] { burn(milliseconds(60)); });
  ASSERT_TRUE(child.rests());
  const auto timer = CpuTimer::open(child.pid());
  ASSERT_TRUE(timer);
  const LinuxScheduler scheduler;
  if (!scheduler.set(0, {.policy = SchedPolicy::fifo, .rt_priority = 50})) GTEST_SKIP() << "needs the real-time class";
  Duration best = std::chrono::seconds(1);
  for (const int period_ms : {20, 5, 10, 20, 5}) {
    const Duration start = (*timer)->used();
    (*timer)->arm(milliseconds(period_ms));
    child.step();
    EXPECT_TRUE(readable((*timer)->fd(), milliseconds(5000)));
    const Duration used = (*timer)->used() - start;
    EXPECT_TRUE((*timer)->expired());
    EXPECT_GE(used, milliseconds(period_ms) - microseconds(200));
    best = std::min(best, used - milliseconds(period_ms));
    EXPECT_TRUE(child.rests());
    (*timer)->disarm();
  }
  (void)scheduler.set(0, {});
  RecordProperty("best_us", static_cast<int>(best.count() / 1000));
  std::cout << "best delay: " << best.count() / 1000 << " us" << std::endl;
  EXPECT_LE(best, milliseconds(1));
}

TEST(CpuTimer, ArmedWhileTheThreadRuns) {
  const Stepper child([] { burn(milliseconds(100)); });
  ASSERT_TRUE(child.rests());
  const auto timer = CpuTimer::open(child.pid());
  ASSERT_TRUE(timer);
  child.step();
  ASSERT_TRUE(eventually([&] { return (*timer)->used() > milliseconds(2); }));
  (*timer)->arm(milliseconds(10));
  const Duration start = (*timer)->used();
  ASSERT_TRUE(readable((*timer)->fd(), milliseconds(5000)));
  EXPECT_TRUE((*timer)->expired());
  EXPECT_GE((*timer)->used() - start, milliseconds(9));
}

TEST(CpuTimer, FiresAgainAfterEachPeriodUntilItIsDisarmed) {
  const Stepper child([] { burn(milliseconds(50)); });
  ASSERT_TRUE(child.rests());
  const auto timer = CpuTimer::open(child.pid());
  ASSERT_TRUE(timer);
  (*timer)->arm(milliseconds(10));
  child.step();
  int expiries = 0;
  EXPECT_TRUE(eventually([&] { return (expiries += (*timer)->expired() ? 1 : 0) == 4; }));
  ASSERT_TRUE(child.rests());
  (*timer)->disarm();
  EXPECT_FALSE((*timer)->expired());
  const Duration start = (*timer)->used();
  child.step();
  EXPECT_TRUE(eventually([&] { return (*timer)->used() - start > milliseconds(45); }));
  EXPECT_FALSE((*timer)->expired());
}

TEST(CpuTimer, ArmingForgetsAnExpiryThatNobodyTook) {
  const Stepper child([] { burn(milliseconds(20)); });
  ASSERT_TRUE(child.rests());
  const auto timer = CpuTimer::open(child.pid());
  ASSERT_TRUE(timer);
  (*timer)->arm(milliseconds(5));
  child.step();
  ASSERT_TRUE(eventually([&] { return (*timer)->used() > milliseconds(18); }));
  ASSERT_TRUE(child.rests());
  (*timer)->arm(milliseconds(50));
  EXPECT_FALSE((*timer)->expired());
}

}  // namespace
}  // namespace swapd::sys
