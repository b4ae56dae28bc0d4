// How swapd keeps to a budget of CPU time: 5 % of one CPU while it helps, 2 % else.
#include "decide/observation_budget.h"

#include <gmock/gmock.h>

#include <functional>
#include <vector>

namespace swapd::decide {
namespace {

using namespace std::chrono_literals;

class ObservationBudgetTest : public testing::Test {
 protected:
  ObservationBudgetTest() {
    budget_.update(now_, cpu_, helping_);
    uses(0.09, 6200ms);   // what it had saved is used up …
    uses(0.0525, 500ms);  // … but for 0.25 ms
    uses(0.05, 1s);
  }
  // Eight times the budget, until a part is heard of only.
  bool sheds() {
    for (int i = 0; i < 40 && budget_.heard() == 1; ++i) uses(0.4, 100ms);
    return budget_.heard() < 1;
  }
  // swapd uses this share of one CPU for so long; the patience after it.
  Duration uses(double share, Duration time = ObservationBudget::window) {
    return costs([share](Duration) { return share; }, time);
  }
  // The same, as a function of patience.
  Duration costs(const std::function<double(Duration)>& share, Duration time) {
    for (const Time end = now_ + time; now_ < end;) {
      const double now = share(budget_.patience());
      now_ += 10ms;  // a tick
      cpu_ += Duration(static_cast<std::int64_t>(now * 1e7));
      budget_.update(now_, cpu_, helping_);
      longest_ = std::max(longest_, budget_.patience());
    }
    return budget_.patience();
  }
  double used_for(const std::function<double(Duration)>& share, Duration time) {
    const Duration before = cpu_;
    costs(share, time);
    return static_cast<double>((cpu_ - before).count()) / static_cast<double>(time.count());
  }

  ObservationBudget budget_{{}};
  bool helping_ = true;
  Time now_{1h};
  Duration cpu_ = 5s;  // what starting has cost is over
  Duration longest_{};
};

TEST_F(ObservationBudgetTest, AtRestPatienceIsAMillisecond) {
  EXPECT_EQ(budget_.patience(), 1ms);
  EXPECT_EQ(uses(0.01, 10s), 1ms);
}

TEST_F(ObservationBudgetTest, WithinTheBudgetItStays) { EXPECT_EQ(uses(0.05, 10s), 1ms); }

TEST_F(ObservationBudgetTest, ItDoublesWithEachWindowOverTheBudget) {
  EXPECT_EQ(uses(0.06), 2ms);
  EXPECT_EQ(uses(0.06), 4ms);
  EXPECT_EQ(uses(0.06), 8ms);
}

TEST_F(ObservationBudgetTest, AndNotBeforeTheWindowIsOver) { EXPECT_EQ(uses(0.15, 90ms), 1ms); }

TEST_F(ObservationBudgetTest, FarOverTheBudgetAWindowIsShort) {
  EXPECT_EQ(uses(0.4, 10ms), 1ms);
  EXPECT_EQ(uses(0.4, 10ms), 2ms);
  EXPECT_EQ(uses(0.4, 80ms), 32ms) << "two hundred threads have begun to talk";
}

TEST_F(ObservationBudgetTest, ItIsBounded) { EXPECT_EQ(uses(1, 10s), 64ms); }

TEST_F(ObservationBudgetTest, OneBurstInAQuietSecondDoesNotCount) {
  uses(0, 1s);
  for (int second = 0; second < 10; ++second) {
    EXPECT_EQ(uses(0.3), 1ms) << "30 ms of CPU time, 3 % of the second";
    uses(0, 900ms);
  }
}

// Its first programs are enrolled, its own are loaded: patience spares nothing of that.
TEST_F(ObservationBudgetTest, TheTimeBeforeItBeganCountsAsQuiet) {
  ObservationBudget fresh({});
  fresh.update(now_, cpu_, true);
  EXPECT_EQ(fresh.update(now_ + 100ms, cpu_ + 30ms, true), 1ms);
  EXPECT_DOUBLE_EQ(fresh.used(), 0.03);
  EXPECT_EQ(fresh.update(now_ + 200ms, cpu_ + 100ms, true), 1ms);
  EXPECT_EQ(fresh.update(now_ + 300ms, cpu_ + 130ms, true), 2ms) << "more than twice the second's budget";
}

TEST_F(ObservationBudgetTest, AfterQuietSecondsItMayUseMoreForAFew) {
  uses(0, 5s);
  EXPECT_EQ(uses(0.09, 6200ms), 1ms) << "0.248 of the 0.250 s that it has saved, and what came in meanwhile";
  EXPECT_EQ(uses(0.09, 100ms), 2ms);
}

TEST_F(ObservationBudgetTest, WhatItDoesWaitsForNineTenthsOfTheBudgetToComeIn) {
  ObservationBudget fresh({});
  fresh.update(now_, cpu_, true);
  EXPECT_EQ(fresh.wait(now_, cpu_), 0ms);
  EXPECT_EQ(fresh.wait(now_, cpu_ + 225ms), 0ms) << "five seconds of it";
  EXPECT_EQ(fresh.wait(now_, cpu_ + 225ms + 90us), 2ms);
}

TEST_F(ObservationBudgetTest, ButNotMoreThanTwiceTheBudgetInOne) {
  uses(0, 5s);
  EXPECT_EQ(uses(0.11, 900ms), 1ms);
  EXPECT_EQ(uses(0.11, 100ms), 2ms);
}

TEST_F(ObservationBudgetTest, ItDoesNotShrinkInASecondOverTheBudget) {
  uses(0, 5s);
  ASSERT_EQ(uses(0.15, 700ms), 2ms);
  ASSERT_EQ(uses(0.04, 500ms), 2ms);
  EXPECT_EQ(uses(0.07, 600ms), 2ms);
  EXPECT_LT(uses(0.03, 1s), 2ms);
}

TEST_F(ObservationBudgetTest, ABurstAtTheStartIsForgivenSoon) {
  EXPECT_EQ(uses(1, 300ms), 64ms) << "a thousand threads are enrolled";
  EXPECT_EQ(uses(0.001, 4s), 1ms);
}

TEST_F(ObservationBudgetTest, AfterASecondWithinTheBudgetItShrinksByAQuarter) {
  uses(0.06, 300ms);
  ASSERT_EQ(uses(0.029, 900ms), 8ms);
  EXPECT_EQ(uses(0.029, 100ms), 6ms);
}

TEST_F(ObservationBudgetTest, AndByMoreWithEachSecondThatWasNotTooDear) {
  uses(0.06, 600ms);
  ASSERT_EQ(budget_.patience(), 64ms);
  std::vector<Duration> seconds;
  for (int i = 0; i < 6; ++i) seconds.push_back(uses(0.045, 1s));
  EXPECT_THAT(seconds, testing::ElementsAre(48ms, 27ms, 11390625ns, 3604065ns, 1ms, 1ms));
}

TEST_F(ObservationBudgetTest, FarBelowItByAsMuchAsLeavesItWellBelow) {
  uses(0.06, 300ms);
  EXPECT_EQ(uses(0.015, 1s), 4ms) << "twice as much would be 60 %";
}

TEST_F(ObservationBudgetTest, AndByThreeQuartersAtMost) {
  uses(0.06, 400ms);
  ASSERT_EQ(uses(0, 900ms), 16ms);
  EXPECT_EQ(uses(0, 100ms), 4ms);
}

// swapd may use as much with any patience. (A slow machine's swapd helped twenty milliseconds late all along, because
// it had been over its budget as it started: the test is that patience comes back.)
TEST_F(ObservationBudgetTest, ACostThatIsTheSameWithAnyPatienceLeavesItShort) {
  for (const double share : {0.031, 0.04, 0.049}) {
    ASSERT_EQ(uses(1, 300ms), 64ms);
    EXPECT_EQ(uses(share, 6s), 1ms);
    EXPECT_EQ(uses(share, 60s), 1ms);
  }
}

TEST_F(ObservationBudgetTest, ACostThatFallsWithPatienceSettlesWithinTheBudget) {
  const auto load = [](Duration patience) { return 0.5 * 1e6 / static_cast<double>(patience.count()); };
  costs(load, 4s);
  const Duration settled = budget_.patience();
  longest_ = {};
  EXPECT_LE(used_for(load, 30s), 0.05);
  EXPECT_EQ(budget_.patience(), settled);
  EXPECT_EQ(settled, 12ms) << "with 4.2 %; 9 ms would be 5.6 %";
  EXPECT_EQ(longest_, settled) << "a try that is too dear does not make it longer than before";
}

TEST_F(ObservationBudgetTest, ATryThatIsTooDearIsTakenBack) {
  uses(0.06, 400ms);
  ASSERT_EQ(uses(0.04, 1s), 12ms);
  EXPECT_EQ(uses(0.07, 300ms), 12ms) << "the last second was within the budget";
  EXPECT_EQ(uses(0.07, 100ms), 16ms);
  EXPECT_EQ(uses(0.07, 100ms), 32ms);
}

// All waits last 3 ms: a patience below that has each of them told, one above it none.
TEST_F(ObservationBudgetTest, ACostThatJumpsDoesNotMakeItSwing) {
  const auto load = [](Duration patience) { return patience < 3ms ? 0.5 : 0.001; };
  costs(load, 10s);
  EXPECT_LE(used_for(load, 120s), 0.05 / 2);
}

TEST_F(ObservationBudgetTest, AfterTriesThatWereTooDearItFindsBackAllTheSame) {
  costs([](Duration patience) { return patience < 3ms ? 0.5 : 0.001; }, 120s);
  EXPECT_EQ(uses(0.001, 17s), 1ms) << "the load has ended";
  uses(0.001, 17s);
  uses(0.06, 1s);
  EXPECT_EQ(uses(0.001, 4s), 1ms) << "and the next one finds it quick again";
}

TEST_F(ObservationBudgetTest, WhereTheLongestPatienceIsNotEnoughAPartIsHeardOf) {
  budget_.set_many(true);
  EXPECT_EQ(budget_.heard(), 1);
  uses(0.4, 1s);
  EXPECT_EQ(budget_.patience(), 64ms);
  EXPECT_EQ(budget_.heard(), 1);
  EXPECT_TRUE(sheds());
  uses(0.001, 20s);
  EXPECT_EQ(budget_.heard(), 1);
}

TEST_F(ObservationBudgetTest, OfAFewThreadsAllAreHeardOfWhateverTheyCost) {
  uses(0.4, 10s);
  EXPECT_EQ(budget_.heard(), 1);
  budget_.set_many(true);
  ASSERT_TRUE(sheds());
  budget_.set_many(false);
  uses(0.4, 100ms);
  EXPECT_EQ(budget_.heard(), 1);
}

// Fewer threads that are heard of are helped less, which is no reason to hear of fewer still.
TEST_F(ObservationBudgetTest, APartGrowsByTheBudgetOfHelpingThreads) {
  budget_.set_many(true);
  ASSERT_TRUE(sheds());
  helping_ = false;
  uses(0.018, 60s);
  EXPECT_EQ(budget_.heard(), 1);
}

TEST_F(ObservationBudgetTest, WithoutAnythingToHelpTheBudgetIsTwoPercent) {
  EXPECT_DOUBLE_EQ(budget_.share(), 0.05);
  helping_ = false;
  EXPECT_EQ(uses(0.03, 1900ms), 1ms) << "it has helped lately";
  EXPECT_EQ(uses(0.03, 1500ms), 1ms) << "what it has saved meanwhile";
  EXPECT_GT(uses(0.03, 300ms), 1ms);
  EXPECT_DOUBLE_EQ(budget_.share(), 0.02);
  helping_ = true;
  uses(0.03);
  EXPECT_DOUBLE_EQ(budget_.share(), 0.05);
}

TEST_F(ObservationBudgetTest, OrThePolicysWhereThatIsLower) {
  ObservationBudget small({.share = 0.01});
  small.update(now_, cpu_, false);
  EXPECT_DOUBLE_EQ(small.share(), 0.01);
}

TEST_F(ObservationBudgetTest, HelpBetweenTwoWindowsCounts) {
  helping_ = false;
  uses(0, 3s);
  ASSERT_DOUBLE_EQ(budget_.share(), 0.02);
  budget_.update(now_ + 1ms, cpu_, true);
  uses(0);
  EXPECT_DOUBLE_EQ(budget_.share(), 0.05);
}

TEST_F(ObservationBudgetTest, UsedIsThatOfTheLastSecond) {
  uses(0.5, 5s);
  uses(0.04, 500ms);
  EXPECT_NEAR(budget_.used(), 0.27, 0.001);
  uses(0.04, 500ms);
  EXPECT_NEAR(budget_.used(), 0.04, 0.001);
}

TEST_F(ObservationBudgetTest, AClockThatGoesBackChangesNothing) {
  uses(0.06, 300ms);
  now_ -= 30min;
  EXPECT_EQ(uses(0.04, 500ms), 8ms);
  EXPECT_NEAR(budget_.used(), 0.04, 0.001);
  EXPECT_EQ(uses(0.2, 110ms), 16ms) << "and the budget holds again";
}

// A command asks with the time at which it came, and the tick of the same turn with that at which the turn began.
TEST_F(ObservationBudgetTest, AMomentTakenALittleEarlierIsNoClockThatGoesBack) {
  uses(0.06, 300ms);
  const double used = budget_.used();
  ASSERT_GT(used, 0);
  EXPECT_EQ(budget_.update(now_ - 100us, cpu_ + 1us, true), 8ms);
  EXPECT_DOUBLE_EQ(budget_.used(), used);
}

TEST_F(ObservationBudgetTest, NorDoesSwapdHelpUntilTheTimeOfBeforeThen) {
  helping_ = false;
  now_ -= 30min;
  uses(0, 3s);
  EXPECT_DOUBLE_EQ(budget_.share(), 0.02);
}

TEST_F(ObservationBudgetTest, NorDoesCpuTimeThatGoesBack) {
  cpu_ = 0s;
  EXPECT_EQ(uses(0.04, 500ms), 1ms);
  EXPECT_GE(budget_.used(), 0);
}

TEST_F(ObservationBudgetTest, APauseSavesFiveSecondsAndNoMore) {
  now_ += 1h;  // the machine slept, or nothing was managed
  EXPECT_EQ(uses(0.09, 6200ms), 1ms);
  EXPECT_EQ(uses(0.09, 200ms), 2ms);
}

TEST_F(ObservationBudgetTest, APauseShortensPatienceWithEachOfItsSeconds) {
  uses(0.06, 500ms);
  ASSERT_EQ(budget_.patience(), 32ms);
  now_ += 1500ms;
  EXPECT_EQ(uses(0, 10ms), 8ms);
  now_ += 1h;
  EXPECT_EQ(uses(0, 10ms), 1ms);
}

TEST_F(ObservationBudgetTest, SmallerStepsOfTimeGiveTheSamePatience) {
  EXPECT_FALSE(budget_.due(now_ + 19ms));
  EXPECT_TRUE(budget_.due(now_ + 20ms));
  EXPECT_EQ(budget_.update(now_ + 50ms, cpu_ + 9ms, true), 1ms);
  EXPECT_EQ(budget_.update(now_ + 100ms, cpu_ + 9ms, true), 2ms);
}

}  // namespace
}  // namespace swapd::decide
