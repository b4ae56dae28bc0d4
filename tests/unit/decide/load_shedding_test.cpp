// The part of the threads that swapd hears of, if no patience keeps it within its budget of 5 % of a CPU.
#include "decide/load_shedding.h"

#include <gmock/gmock.h>

#include <vector>

namespace swapd::decide {
namespace {

using namespace std::chrono_literals;
using Patience = LoadShedding::Patience;

class LoadSheddingTest : public testing::Test {
 protected:
  // swapd uses this share of a CPU for so long; the part after it.
  double uses(double share, Duration time, Patience patience) {
    for (const Time end = now_ + time; now_ < end;) {
      now_ += 100ms;
      shedding_.update(now_, share, 0.05, patience);
    }
    return shedding_.part();
  }
  // Six times the budget, whatever the patience, and in proportion to the part; the patience follows the budget.
  double sheds(Duration time) {
    for (const Time end = now_ + time; now_ < end;) {
      now_ += 100ms;
      const double used = 0.3 * shedding_.part();
      shedding_.update(now_, used, 0.05, used > 0.05 ? Patience::longest : Patience::shortest);
    }
    return shedding_.part();
  }
  LoadShedding shedding_;
  Time now_{1h};
};

TEST_F(LoadSheddingTest, AllAreHeardOfAtFirst) { EXPECT_EQ(shedding_.part(), 1); }

TEST_F(LoadSheddingTest, AndAsLongAsPatienceCanGrow) {
  EXPECT_EQ(uses(0.5, 10s, Patience::between), 1);
  EXPECT_EQ(uses(0.5, 10s, Patience::shortest), 1);
}

TEST_F(LoadSheddingTest, UpToTwiceTheBudgetAllAreHeardOf) { EXPECT_EQ(uses(0.099, 60s, Patience::longest), 1); }

TEST_F(LoadSheddingTest, ASecondOverTwiceTheBudgetAtTheLongestPatienceCutsToWhatTheBudgetPaysFor) {
  uses(0.2, 5s, Patience::between);
  EXPECT_EQ(uses(0.2, 1s, Patience::longest), 1) << "it has not been at its longest for a second";
  EXPECT_DOUBLE_EQ(uses(0.2, 100ms, Patience::longest), 0.25);
}

TEST_F(LoadSheddingTest, ABurstDoesNot) {
  for (int i = 0; i < 10; ++i) {
    uses(1, 900ms, Patience::longest);
    EXPECT_EQ(uses(0.01, 1s, Patience::between), 1);
  }
}

TEST_F(LoadSheddingTest, OneCutIsToAnEighthAtMost) { EXPECT_DOUBLE_EQ(uses(2, 1200ms, Patience::longest), 0.125); }

TEST_F(LoadSheddingTest, OnceItShedsTheBudgetItselfIsTheBound) {
  uses(0.2, 1100ms, Patience::longest);
  EXPECT_DOUBLE_EQ(uses(0.0625, 1s, Patience::longest), 0.2);
  EXPECT_DOUBLE_EQ(uses(0.05, 20s, Patience::longest), 0.2);
}

TEST_F(LoadSheddingTest, SomeAreAlwaysHeardOf) {
  for (int i = 0; i < 60; ++i) uses(0.06 + 6 * shedding_.part(), 1s, Patience::longest);
  EXPECT_DOUBLE_EQ(shedding_.part(), LoadShedding::least);
}

// Trapped calls cost as much whichever threads are heard of.
TEST_F(LoadSheddingTest, ACutThatSparesNothingIsTakenBack) {
  ASSERT_DOUBLE_EQ(uses(0.2, 1100ms, Patience::longest), 0.25);
  EXPECT_DOUBLE_EQ(uses(0.19, 1s, Patience::longest), 1);
  EXPECT_DOUBLE_EQ(uses(0.19, 1900ms, Patience::longest), 1);
  EXPECT_LT(uses(0.19, 200ms, Patience::longest), 1) << "it is tried again after a while, …";
  EXPECT_DOUBLE_EQ(uses(0.19, 1s, Patience::longest), 1);
  EXPECT_DOUBLE_EQ(uses(0.19, 3s, Patience::longest), 1) << "… and ever more seldom";
}

TEST_F(LoadSheddingTest, ALoadThatHasEndedNeedNotWaitForWhatGrowthCostBefore) {
  sheds(10min);
  ASSERT_LT(shedding_.part(), 0.4);
  EXPECT_EQ(uses(0.001, 7s, Patience::shortest), 1);
}

TEST_F(LoadSheddingTest, AfterAPauseItGrowsByAllTheStepsThatItHasMissed) {
  uses(0.4, 1100ms, Patience::longest);
  ASSERT_DOUBLE_EQ(shedding_.part(), 0.125);
  now_ += 1h;
  EXPECT_EQ(uses(0.001, 100ms, Patience::shortest), 1);
}

TEST_F(LoadSheddingTest, BegunAnewAllAreHeardOf) {
  sheds(5s);
  shedding_.begin_anew();
  EXPECT_EQ(shedding_.part(), 1);
  EXPECT_EQ(uses(0.4, 1s, Patience::longest), 1) << "and a cut takes its time";
}

TEST_F(LoadSheddingTest, TheyComeBackWhenTheLoadHasEnded) {
  uses(0.4, 1100ms, Patience::longest);
  ASSERT_DOUBLE_EQ(shedding_.part(), 0.125);
  std::vector<double> parts;
  for (int i = 0; i < 4; ++i) parts.push_back(uses(0.001, 2s, Patience::shortest));
  EXPECT_THAT(parts, testing::ElementsAre(0.25, 0.5, 1, 1));
}

TEST_F(LoadSheddingTest, FirstPatienceComesBack) {
  uses(0.4, 1100ms, Patience::longest);
  EXPECT_DOUBLE_EQ(uses(0.001, 20s, Patience::between), 0.125);
}

// A sixth is what the budget pays for; a third would be twice the budget.
TEST_F(LoadSheddingTest, ALoadThatStaysDoesNotMakeItSwing) {
  EXPECT_NEAR(sheds(5s), 1.0 / 6, 0.01);
  int changes = 0;
  for (double before = shedding_.part(); now_ < Time(1h + 10min);) {
    sheds(100ms);
    if (shedding_.part() != before) ++changes;
    before = shedding_.part();
  }
  EXPECT_LE(changes, 40) << "grown and cut again once in a minute at most";
}

TEST_F(LoadSheddingTest, AClockThatGoesBackBeginsAnew) {
  uses(0.4, 1100ms, Patience::longest);
  now_ = Time(1s);
  EXPECT_DOUBLE_EQ(uses(0.4, 900ms, Patience::longest), 0.125);
  EXPECT_LT(uses(0.4, 300ms, Patience::longest), 0.125);
}

}  // namespace
}  // namespace swapd::decide
