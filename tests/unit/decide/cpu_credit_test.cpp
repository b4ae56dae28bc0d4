// How long what swapd does waits for its CPU time to come in: nine tenths of a budget of 5 %.
#include "decide/cpu_credit.h"

#include <gtest/gtest.h>

namespace swapd::decide {
namespace {

using namespace std::chrono_literals;

class CpuCreditTest : public testing::Test {
 protected:
  // swapd uses so much CPU time, and then asks.
  Duration uses(Duration cpu, Duration passed = {}) {
    now_ += passed;
    cpu_ += cpu;
    credit_.update(now_, cpu_, share_);
    return credit_.wait();
  }
  void use_up() {
    uses(0ms);
    ASSERT_EQ(uses(225ms), 0ms) << "what comes in five seconds";
  }

  // A part of one CPU: used by so many turns, each of which costs as much.
  double share_of(Duration cost, int turns) {
    const Time begun = now_;
    for (int turn = 0; turn < turns; ++turn) {
      now_ += cost;
      now_ += uses(cost);
    }
    return turns * std::chrono::duration<double>(cost) / (now_ - begun);
  }

  CpuCredit credit_{0.9};
  double share_ = 0.05;
  Time now_{1h};
  Duration cpu_ = 5s;  // before it was asked for the first time
};

TEST_F(CpuCreditTest, AtFirstNothingWaits) { EXPECT_EQ(uses(0ms), 0ms); }

TEST_F(CpuCreditTest, WhatCameInForFiveSecondsMayBeUsedAtOnce) {
  uses(0ms);
  EXPECT_EQ(uses(225ms), 0ms);
  EXPECT_GT(uses(1us), 0ms);
}

TEST_F(CpuCreditTest, AndNoMoreHoweverLongNothingWasUsed) {
  uses(0ms);
  uses(0ms, 24h * 365);
  EXPECT_GT(uses(226ms), 0ms);
}

// Nothing is managed, and no turn is made; the control thread looks at each program that starts.
TEST_F(CpuCreditTest, APauseIsPaidFromWhatComesInMeanwhile) {
  use_up();
  uses(400ms, 1h);
  EXPECT_EQ(uses(225ms), 0ms);
}

TEST_F(CpuCreditTest, WithoutAnyEachTurnWaitsUntilItIsPaidFor) {
  use_up();
  EXPECT_EQ(uses(90us), 2ms);
  EXPECT_EQ(uses(0us, 1500us), 500us);
  EXPECT_EQ(uses(0us, 500us), 0us);
}

TEST_F(CpuCreditTest, ButForEightMillisecondsAtMost) {
  use_up();
  EXPECT_EQ(uses(5ms), 8ms);
  EXPECT_EQ(uses(0ms, 8ms), 8ms);
}

// A burst is over by then; a load that goes on so would be far over the budget.
TEST_F(CpuCreditTest, ALongDebtWaitsLonger) {
  use_up();
  EXPECT_EQ(uses(22500us), 8ms) << "half a second of debt";
  EXPECT_EQ(uses(11250us), 20ms);
  EXPECT_EQ(uses(11250us), 32ms);
  EXPECT_EQ(uses(10s), 32ms);
}

// Each turn costs as much whenever it comes, which eight milliseconds do not pay for.
TEST_F(CpuCreditTest, ALoadOfDearTurnsStaysNearTheBudget) {
  use_up();
  (void)share_of(1ms, 200);
  EXPECT_NEAR(share_of(1ms, 1000), 0.045, 0.001);
}

TEST_F(CpuCreditTest, ADebtIsAtMostWhatComesInOneSecond) {
  use_up();
  uses(10s);
  EXPECT_EQ(uses(0ms, 999ms), 1ms);
  EXPECT_EQ(uses(0ms, 1ms), 0ms);
}

// Each turn costs 0.3 ms and waits until it is paid for; more than that is always to be done.
TEST_F(CpuCreditTest, ALoadThatGoesOnUsesNineTenthsOfTheBudget) {
  use_up();
  const Time begun = now_;
  const Duration used = cpu_;
  for (int turn = 0; turn < 1000; ++turn) now_ += 300us + uses(300us);
  const double share = static_cast<double>((cpu_ - used).count()) / static_cast<double>((now_ - begun).count());
  EXPECT_NEAR(share, 0.045, 0.0005);
}

TEST_F(CpuCreditTest, ALowerBudgetHoldsForWhatWasSavedToo) {
  uses(0ms);
  share_ = 0.02;
  EXPECT_EQ(uses(90ms), 0ms);
  EXPECT_GT(uses(1us), 0ms);
}

TEST_F(CpuCreditTest, WhatWasSavedWithALowerBudgetIsAsManySecondsOfAHigherOne) {
  share_ = 0.02;
  uses(0ms);
  share_ = 0.05;
  EXPECT_EQ(uses(225ms), 0ms) << "a load begins, and is helped";
}

// The time in which programs were loaded is known later than that it was used.
TEST_F(CpuCreditTest, CpuTimeThatDoesNotCountAfterAllIsGivenBack) {
  use_up();
  ASSERT_EQ(uses(20ms), 8ms);
  EXPECT_EQ(uses(-20ms), 0ms);
  EXPECT_GT(uses(1ms), 0ms) << "and no more than that";
}

TEST_F(CpuCreditTest, WhileAClockGoesBackNothingComesIn) {
  use_up();
  EXPECT_EQ(uses(90us, -30min), 2ms);
  EXPECT_EQ(uses(0us, 2ms), 0ms) << "and it goes on from there";
}

}  // namespace
}  // namespace swapd::decide
