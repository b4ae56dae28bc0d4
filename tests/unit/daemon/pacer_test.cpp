// How often the engine wakes; a tick is 10 ms, and 100 ms while it is idle.
#include "engine/pacer.h"

#include <gtest/gtest.h>

namespace swapd::daemon {
namespace {

using namespace std::chrono_literals;

TEST(PacerBefore, ATurnWaitsAsLongAsIsWanted) { EXPECT_EQ(Pacer::before({}, 8ms, Time{1s}), 8ms); }

TEST(PacerBefore, ButNotPastWhatIsDuePunctually) {
  EXPECT_EQ(Pacer::before(Time{1s} + 3ms, 8ms, Time{1s}), 3ms);
  EXPECT_EQ(Pacer::before(Time{1s} + 9ms, 8ms, Time{1s}), 8ms);
  EXPECT_EQ(Pacer::before(Time{1s} - 3ms, 8ms, Time{1s}), 0ms);
}

class PacerTest : public testing::Test {
 protected:
  PacerTest() { pacer_.measure(cpu_, now_); }
  // A tick over which the engine used so much CPU time.
  Duration tick(Duration used, Duration passed = 10ms) {
    now_ += passed;
    cpu_ += used;
    pacer_.measure(cpu_, now_);
    return delay();
  }

  [[nodiscard]] Duration delay() const { return pacer_.delay(); }

  Pacer pacer_{10ms, 100ms};
  Time now_{1s};
  Duration cpu_{};
};

TEST_F(PacerTest, WithoutMembersNoTickIsDue) { EXPECT_EQ(pacer_.next_tick(false, true), Time::max()); }

TEST_F(PacerTest, TicksComeATickApart) {
  pacer_.tick_soon(now_);
  EXPECT_EQ(pacer_.next_tick(true, false), now_);
  EXPECT_TRUE(pacer_.begin_tick(now_));
  EXPECT_FALSE(pacer_.begin_tick(now_ + 7999us));
  EXPECT_EQ(pacer_.next_tick(true, false), now_ + 10ms);
  EXPECT_TRUE(pacer_.begin_tick(now_ + 10ms));
}

TEST_F(PacerTest, ATurnInTheLastFifthOfATicksTimeIsTheTick) {
  pacer_.tick_soon(now_);
  ASSERT_TRUE(pacer_.begin_tick(now_));
  EXPECT_TRUE(pacer_.begin_tick(now_ + 8ms));
  EXPECT_EQ(pacer_.next_tick(true, false), now_ + 18ms);
}

TEST_F(PacerTest, ALateTickIsNotMadeUpFor) {
  pacer_.tick_soon(now_);
  ASSERT_TRUE(pacer_.begin_tick(now_ + 35ms));
  EXPECT_FALSE(pacer_.begin_tick(now_ + 36ms));
  EXPECT_EQ(pacer_.next_tick(true, false), now_ + 45ms);
}

TEST_F(PacerTest, WhileIdleItSleepsTenTicks) {
  pacer_.tick_soon(now_);
  ASSERT_TRUE(pacer_.begin_tick(now_));
  EXPECT_EQ(pacer_.next_tick(true, true), now_ + 100ms);
}

TEST_F(PacerTest, IdlenessPutsOffTheWakeUpAndNotTheTickOfAnEngineThatIsAwake) {
  pacer_.tick_soon(now_);
  ASSERT_TRUE(pacer_.begin_tick(now_));
  EXPECT_TRUE(pacer_.begin_tick(now_ + 10ms));
}

TEST_F(PacerTest, AtFirstNothingIsDelayed) { EXPECT_EQ(delay(), 0us); }

TEST_F(PacerTest, TheDelayDoublesWhileTheEngineUsesMoreThanAQuarterOfACpu) {
  EXPECT_EQ(tick(3ms), 50us);
  EXPECT_EQ(tick(3ms), 100us);
  EXPECT_EQ(tick(3ms), 200us);
  EXPECT_EQ(tick(3ms), 400us);
  EXPECT_EQ(tick(3ms), 400us) << "and no further";
}

TEST_F(PacerTest, AQuarterOfACpuIsNotMuch) { EXPECT_EQ(tick(2500us), 0us); }

TEST_F(PacerTest, BetweenATenthAndAQuarterTheDelayStays) {
  tick(3ms);
  ASSERT_EQ(tick(3ms), 100us);
  EXPECT_EQ(tick(2ms), 100us);
  EXPECT_EQ(tick(1ms), 100us);
}

TEST_F(PacerTest, BelowATenthTheDelayHalvesAndThenEnds) {
  tick(3ms);
  ASSERT_EQ(tick(3ms), 100us);
  EXPECT_EQ(tick(500us), 50us);
  EXPECT_EQ(tick(500us), 0us);
  EXPECT_EQ(tick(500us), 0us);
}

TEST_F(PacerTest, ALongPauseCountsAsItsTicks) {
  for (int i = 0; i < 4; ++i) tick(3ms);
  EXPECT_EQ(tick(0ms, 100ms), 0us) << "ten ticks of it";
}

TEST_F(PacerTest, TwoTicksAtOnceAreNotHeldToBeMuchWork) {
  tick(0ms);
  EXPECT_EQ(tick(1ms, 1ms), 0us) << "a millisecond of work is little for a tick";
}

}  // namespace
}  // namespace swapd::daemon
