#include "observe/seccomp/busy_sleeper.h"

#include <gtest/gtest.h>

namespace swapd::observe {
namespace {

using namespace std::chrono_literals;

class BusySleeperTest : public testing::Test {
 protected:
  static constexpr Duration poll_period = 1ms;
  [[nodiscard]] bool sleeps(unsigned times, Duration after, Duration patience = {}) {
    return thread_.sleeps_too_often(times, start_ + after, patience, poll_period);
  }
  const Time start_{100s};
  BusySleeper thread_;
};

TEST_F(BusySleeperTest, MayFallAsleepSoOftenInAWindow) {
  thread_.begin(start_);
  EXPECT_FALSE(sleeps(BusySleeper::max_sleeps, 5ms));
  EXPECT_TRUE(sleeps(1, 9ms));
}

TEST_F(BusySleeperTest, BeginsANewWindowAfterOne) {
  thread_.begin(start_);
  EXPECT_FALSE(sleeps(BusySleeper::max_sleeps, 5ms));
  EXPECT_FALSE(sleeps(BusySleeper::max_sleeps, 11ms));
}

TEST_F(BusySleeperTest, HasALongerWindowWithMorePatience) {
  thread_.begin(start_);
  EXPECT_FALSE(sleeps(BusySleeper::max_sleeps, 5ms, 4ms));
  EXPECT_TRUE(sleeps(1, 59ms, 4ms)) << "more than one in 4 ms";
}

TEST_F(BusySleeperTest, RestsTwiceAsLongEachTimeThatItIsBusyRightAfterwards) {
  EXPECT_EQ(thread_.rest({}), 100ms);
  EXPECT_EQ(thread_.rest({}), 200ms);
  EXPECT_EQ(thread_.rest({}), 400ms);
  for (int i = 0; i < 100; ++i) EXPECT_LE(thread_.rest({}), BusySleeper::max_rest);
  EXPECT_EQ(thread_.rest({}), BusySleeper::max_rest);
}

TEST_F(BusySleeperTest, RestsForAShortTimeOnceItHasBeenCalm) {
  thread_.begin(start_);
  EXPECT_TRUE(sleeps(BusySleeper::max_sleeps + 1, 1ms));
  EXPECT_EQ(thread_.rest({}), 100ms);
  thread_.begin(start_ + 101ms);
  EXPECT_TRUE(sleeps(BusySleeper::max_sleeps + 1, 102ms));
  EXPECT_EQ(thread_.rest({}), 200ms);
  thread_.begin(start_ + 302ms);
  EXPECT_FALSE(sleeps(1, 303ms));
  EXPECT_FALSE(sleeps(1, 313ms)) << "the window is over";
  EXPECT_EQ(thread_.rest({}), 100ms);
}

TEST_F(BusySleeperTest, IsPolledOftenEnoughWithMorePatience) {
  EXPECT_EQ(thread_.rest(64ms), BusySleeper::polls_a_rest * 64ms);
}

}  // namespace
}  // namespace swapd::observe
