// Threads that take turns in being heard of.
#include "observe/seccomp/hearing_turns.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace swapd::observe {
namespace {

using namespace std::chrono_literals;

class HearingTurnsTest : public testing::Test {
 protected:
  static constexpr std::size_t all = 40;
  HearingTurnsTest() {
    for (int i = 0; i < static_cast<int>(all); ++i) threads_.push_back({100 + i, 1});
  }
  std::vector<ThreadId> heard() {
    turns_.give(threads_, now_);
    return {threads_.begin(), threads_.begin() + static_cast<std::ptrdiff_t>(turns_.room(threads_.size()))};
  }
  HearingTurns turns_;
  Time now_{1h};
  std::vector<ThreadId> threads_;
};

TEST_F(HearingTurnsTest, AtFirstThereAreNone) {
  EXPECT_EQ(turns_.room(all), all);
  EXPECT_FALSE(turns_.due(now_, true));
}

TEST_F(HearingTurnsTest, APartOfManyThreadsIsHeardOf) {
  turns_.set_part(0.25);
  EXPECT_EQ(turns_.room(all), 10U);
  EXPECT_EQ(turns_.room(17), 4U);
}

TEST_F(HearingTurnsTest, OfAFewThreadsAllAre) {
  turns_.set_part(0.01);
  EXPECT_EQ(turns_.room(HearingTurns::always_heard), HearingTurns::always_heard);
}

TEST_F(HearingTurnsTest, OfMoreThreadsAFewAre) {
  turns_.set_part(0.01);
  EXPECT_EQ(turns_.room(HearingTurns::always_heard + 1), HearingTurns::least_heard);
}

TEST_F(HearingTurnsTest, EachLastsTwoSeconds) {
  turns_.set_part(0.25);
  ASSERT_TRUE(turns_.due(now_, true)) << "a new part holds at once";
  (void)heard();
  EXPECT_FALSE(turns_.due(now_ + 1999ms, false));
  EXPECT_TRUE(turns_.due(now_ + 2s, false));
}

TEST_F(HearingTurnsTest, AllThreadsHaveOne) {
  turns_.set_part(0.25);
  std::vector<ThreadId> seen;
  for (int turn = 0; turn < 4; ++turn) std::ranges::copy(heard(), std::back_inserter(seen));
  std::ranges::sort(seen);
  std::ranges::sort(threads_);
  EXPECT_EQ(seen, threads_);
}

// A thousand at once would keep the engine from all else for a tenth of a second.
TEST_F(HearingTurnsTest, OfManyOnlyAFewPassThemOnAtATime) {
  for (int i = static_cast<int>(all); i < 1000; ++i) threads_.push_back({100 + i, 1});
  turns_.set_part(0.5);
  std::vector<ThreadId> first = heard(), second = heard(), new_ones;
  ASSERT_EQ(second.size(), 500U);
  std::ranges::set_difference(second, first, std::back_inserter(new_ones));
  EXPECT_EQ(new_ones.size(), HearingTurns::most_at_a_time);
}

TEST_F(HearingTurnsTest, OneThatHasEndedDoesNotTakeTheTurnOfAnother) {
  turns_.set_part(0.25);
  const std::vector<ThreadId> first = heard();
  std::erase(threads_, first.back());
  std::erase(threads_, first.front());
  const std::vector<ThreadId> second = heard();
  EXPECT_EQ(second.front(), (ThreadId{110, 1}));
}

TEST_F(HearingTurnsTest, WhereAllCanBeHeardOfAgainThatHoldsAtOnce) {
  turns_.set_part(0.25);
  (void)heard();
  turns_.set_part(1);
  EXPECT_TRUE(turns_.due(now_, false));
  EXPECT_EQ(heard().size(), all);
  EXPECT_FALSE(turns_.due(now_ + 10s, true));
}

}  // namespace
}  // namespace swapd::observe
