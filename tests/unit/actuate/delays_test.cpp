// Calls that are held: here without a kernel behind them; tests/integration/daemon/shaping_test.cpp has real ones.
#include "actuate/delays.h"

#include <gtest/gtest.h>

#include <atomic>

namespace swapd::actuate {
namespace {

class Counted final : public Delayed {
 public:
  explicit Counted(std::atomic<int>& ended) : ended_(ended) {}
  Time due(Time now) override { return now + std::chrono::hours(1); }
  void disturbed(std::uint64_t /*signals*/) override {}
  void ended(bool /*made*/, Time /*now*/) override { ++ended_; }

 private:
  std::atomic<int>& ended_;
};

class DelaysTest : public testing::Test {
 protected:
  bool hold(Delays& delays, std::uint64_t id) {
    const Delays::Call call{.listener = std::make_shared<const Fd>(), .slot = 7, .id = id, .tid = 1};
    return delays.hold(call, std::chrono::steady_clock::now() + std::chrono::hours(1),
                       std::make_shared<Counted>(ended));
  }
  sys::Procfs procfs;
  std::array<DelayedCall, 2> memory{};
  std::atomic<int> ended{0};
};

TEST_F(DelaysTest, WhereThereIsNoRoomNobodyIsHeld) {
  Delays delays(procfs, memory, std::chrono::hours(1));
  EXPECT_TRUE(hold(delays, 5));
  EXPECT_TRUE(hold(delays, 6));
  EXPECT_FALSE(hold(delays, 7));
  EXPECT_EQ(delays.held(), 2U);
  // The guard finds them.
  EXPECT_EQ(memory[0].id.load(), 5U);
  EXPECT_EQ(memory[1].id.load(), 6U);
  EXPECT_EQ(memory[0].slot.load(), 7U);
  EXPECT_GT(memory[0].due.load(), std::chrono::steady_clock::now().time_since_epoch().count());
  delays.stop();
  EXPECT_EQ(ended, 2);
  EXPECT_EQ(memory[0].id.load(), 0U);
  EXPECT_FALSE(hold(delays, 8)) << "after the end";
}

// Nobody has that listener: the call is over.
TEST_F(DelaysTest, OneThatIsOverMakesRoom) {
  Delays delays(procfs, memory, std::chrono::hours(1));
  for (std::uint64_t id = 1; id <= 100; ++id) {
    EXPECT_TRUE(hold(delays, id));
    delays.look_again();
    while (delays.held() != 0) std::this_thread::yield();
  }
  EXPECT_EQ(ended, 100);
}

TEST_F(DelaysTest, WhatIsLeftToTheGuardStaysWrittenDown) {
  {
    Delays delays(procfs, memory, std::chrono::hours(1));
    EXPECT_TRUE(hold(delays, 5));
    delays.leave();
  }
  EXPECT_EQ(memory[0].id.load() + memory[1].id.load(), 5U);
  EXPECT_EQ(ended, 0);
}

}  // namespace
}  // namespace swapd::actuate
