// Commands on the engine's thread. The thread is real, the scheduler a fake.
#include "engine/engine_thread.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <thread>

#include "fakes/fake_groups.h"
#include "fakes/fake_scheduler.h"
#include "sys/process/self_process.h"
#include "unit/daemon/engine_words.h"

namespace swapd::daemon {
namespace {

class EngineThreadTest : public testing::Test {
 protected:
  EngineThreadTest() { scheduler_.add(0, nice_of(0)); }
  ~EngineThreadTest() override { thread_.stop(); }
  // Starts a thread that carries out commands until it is to stop.
  Status start() {
    EXPECT_TRUE(thread_.listen());
    return thread_.start([this] {
      ran_on_ = std::this_thread::get_id();
      while (!thread_.stopping()) {
        (void)thread_.wait(Time::max(), false, true);
        for (const auto& command : thread_.take_commands()) command();
      }
      thread_.close();
    });
  }

  const sys::Procfs procfs_;
  fakes::FakeScheduler scheduler_;
  fakes::FakeGroups groups_;
  SteadyClock clock_;
  const Kernel kernel_{procfs_, scheduler_, groups_, clock_};
  EngineThread thread_{kernel_, {.priority = 42}};
  std::thread::id ran_on_;
};

TEST_F(EngineThreadTest, RunsCommandsAndWaitsForThem) {
  ASSERT_TRUE(start());
  std::thread::id id;
  EXPECT_TRUE(thread_.call([&] { id = std::this_thread::get_id(); }));
  EXPECT_EQ(id, ran_on_);
  EXPECT_NE(id, std::this_thread::get_id());
}

TEST_F(EngineThreadTest, ATurnWaitsOnceMoreCpuTimeIsUsedThanTheBudgetGives) {
  const Time now = clock_.now();
  EXPECT_EQ(thread_.begin_turn(now), Duration::zero());
  const Duration before = sys::process_cpu_time();
  while (sys::process_cpu_time() - before < std::chrono::milliseconds(120)) {
  }
  EXPECT_GT(thread_.begin_turn(now), Duration::zero());
}

// Records may gather for milliseconds where swapd is over its budget. A caller would wait all that time.
TEST_F(EngineThreadTest, ACommandEndsARest) {
  ASSERT_TRUE(thread_.listen());
  ASSERT_TRUE(thread_.start([this] {
    while (!thread_.stopping()) {
      thread_.rest(std::chrono::hours(1));
      for (const auto& command : thread_.take_commands()) command();
    }
    thread_.close();
  }));
  int calls = 0;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(thread_.call([&] { ++calls; }));
  EXPECT_EQ(calls, 3);
}

TEST_F(EngineThreadTest, ARestWithoutACommandEndsByItself) { thread_.rest(std::chrono::microseconds(1)); }

TEST_F(EngineThreadTest, IsRealTime) {
  ASSERT_TRUE(start());
  ASSERT_EQ(scheduler_.given.size(), 1U);
  EXPECT_EQ(scheduler_.given.front(), fifo(42));
}

TEST_F(EngineThreadTest, RunsInTheOrdinaryClassWhereItMayNotBeRealTime) {
  scheduler_.threads.at(0).realtime_error = EPERM;
  EXPECT_FALSE(start());
  EXPECT_TRUE(thread_.call([] {}));
}

TEST_F(EngineThreadTest, AfterItsEndNoCommandIsTaken) {
  ASSERT_TRUE(start());
  EXPECT_TRUE(thread_.stop());
  EXPECT_FALSE(thread_.stop());
  EXPECT_FALSE(thread_.call([] {}));
}

TEST_F(EngineThreadTest, OneThatWasNeverStartedHasNothingToStop) { EXPECT_FALSE(thread_.stop()); }

}  // namespace
}  // namespace swapd::daemon
