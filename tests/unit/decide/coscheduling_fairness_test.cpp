// The rules that bound calls, as [DCS97 §3.2, §4.2.1] has them.
#include "decide/coscheduling/fairness.h"

#include <gtest/gtest.h>

namespace swapd::decide::coscheduling {
namespace {

using namespace std::chrono_literals;

constexpr RunQueue three_processes{.slice = 20ms, .runnable = 3};

TEST(FairToCall, NeedsOneLengthOfTheRunQueueSinceTheLastCall) {
  EXPECT_FALSE(fair_to_call(59ms, {}, three_processes));
  EXPECT_TRUE(fair_to_call(60ms, {}, three_processes));
}

TEST(FairToCall, OneHalfIsTwiceTheLengthOfTheRunQueue) {  // the example of [DCS97 §4.2.1]
  const CallTerms terms{.exponent = -1};
  EXPECT_FALSE(fair_to_call(119ms, terms, three_processes));
  EXPECT_TRUE(fair_to_call(120ms, terms, three_processes));
}

TEST(FairToCall, TheConstantIsTimeOnTopOfTheStretchedOne) {
  const CallTerms terms{.exponent = 1, .constant = 10ms};
  EXPECT_FALSE(fair_to_call(24ms, terms, three_processes));
  EXPECT_TRUE(fair_to_call(25ms, terms, three_processes));
  EXPECT_FALSE(fair_to_call(69ms, {.constant = -10ms}, three_processes));
}

TEST(FairToCall, IsRarerWithMoreProcesses) {
  EXPECT_TRUE(fair_to_call(60ms, {}, {.slice = 20ms, .runnable = 3}));
  EXPECT_FALSE(fair_to_call(60ms, {}, {.slice = 20ms, .runnable = 4}));
}

TEST(FairToCall, WithoutACallBeforeIsFair) {
  EXPECT_TRUE(fair_to_call(Duration::max(), {.exponent = -6}, three_processes));
}

TEST(Lags, ByMoreThanTheHistoryOnly) {
  EXPECT_FALSE(lags(5ms, 8ms, 3ms));
  EXPECT_TRUE(lags(5ms, 9ms, 3ms));
}

TEST(Lags, BelowZeroAProcessThatIsAheadIsCalledToo) {
  EXPECT_TRUE(lags(900ms, 1ms, -900ms));
  EXPECT_FALSE(lags(901ms, 1ms, -900ms));
}

// [DCS97 §3.2]: h = -H always switches in a run of H, h = H never does.
TEST(Lags, AsLongAsTheRunItIsAlwaysOrNever) {
  constexpr Duration whole_run = 1s;
  for (const Duration called : {0ms, 500ms, 999ms}) {
    const Duration running = whole_run - called;
    EXPECT_TRUE(lags(called, running, -whole_run));
    EXPECT_FALSE(lags(called, running, whole_run));
  }
}

TEST(RunTimes, CountFromTheYoungestProcessOn) {
  RunTimes times(2);
  times.ran(0, 50ms);
  EXPECT_TRUE(times.may_call(1, 0, 40ms));
  times.join(2);
  EXPECT_EQ(times.of(0), 0ms);
  EXPECT_EQ(times.places(), 3U);
  EXPECT_FALSE(times.may_call(1, 0, 0ms));
  times.ran(0, 1ms);
  EXPECT_TRUE(times.may_call(2, 0, 0ms));
}

}  // namespace
}  // namespace swapd::decide::coscheduling
