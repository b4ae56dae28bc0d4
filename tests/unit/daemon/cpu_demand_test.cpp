// How much of the time threads have or want a CPU.
#include "engine/cpu_demand.h"

#include <gtest/gtest.h>

namespace swapd::daemon {
namespace {

using namespace std::chrono_literals;

class Demand : public testing::Test {
 protected:
  void passes(Duration used_and_waited, bool runnable = false) {
    now_ += 100ms;
    demand_.look(7, so_far_ += used_and_waited, runnable, now_);
  }
  CpuDemand demand_;
  Duration so_far_ = 1h;
  Time now_{10h};
};

TEST_F(Demand, OfAThreadThatWasLookedAtOnceIsTakenForAll) {
  EXPECT_EQ(demand_.of(7), 1);
  passes(0ms);
  EXPECT_EQ(demand_.of(7), 1);
}

TEST_F(Demand, IsWhatItUsedAndWaitedForAgainstTheClock) {
  passes(0ms);
  passes(30ms);
  EXPECT_DOUBLE_EQ(demand_.of(7), 0.3);
  passes(100ms);
  EXPECT_DOUBLE_EQ(demand_.of(7), 0.65) << "the newest counts half";
}

TEST_F(Demand, OfOneThatSleepsIsSoonLittle) {
  passes(0ms);
  passes(100ms);
  for (int i = 0; i < 4; ++i) passes(0ms);
  EXPECT_LT(demand_.of(7), CpuDemand::little);
}

// The kernel adds a wait when the thread gets its CPU.
TEST_F(Demand, OfOneThatWaitsWithoutAnEndIsAll) {
  passes(0ms);
  for (int i = 0; i < 10; ++i) passes(0ms, true);
  EXPECT_EQ(demand_.of(7), 1);
}

TEST_F(Demand, IsNeverMoreThanAll) {
  passes(0ms);
  passes(5s);
  EXPECT_EQ(demand_.of(7), 1);
}

TEST_F(Demand, IsForgottenWithItsThread) {
  passes(0ms);
  passes(0ms);
  ASSERT_EQ(demand_.of(7), 0);
  demand_.forget_before(now_ + 1ns);
  EXPECT_EQ(demand_.of(7), 1);
}

}  // namespace
}  // namespace swapd::daemon
