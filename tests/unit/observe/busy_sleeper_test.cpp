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

TEST_F(BusySleeperTest, RestsTwiceAsLongEachTime) {
  Time now = start_;
  for (const Duration rest : {100ms, 200ms, 400ms, 800ms, 1600ms, 3200ms, 3200ms}) {
    EXPECT_EQ(thread_.rest(now, {}), rest);
    now += rest + 20ms;
  }
}

TEST_F(BusySleeperTest, RestsForAShortTimeOnceItHasBeenCalmForTwiceAsLongAsItRested) {
  EXPECT_EQ(thread_.rest(start_, {}), 100ms);
  EXPECT_EQ(thread_.rest(start_ + 100ms + 199ms, {}), 200ms);
  EXPECT_EQ(thread_.rest(start_ + 499ms + 401ms, {}), 100ms);
}

// Among busy loops it may not get a CPU for longer than a window.
TEST_F(BusySleeperTest, AWindowWithoutSleepsIsNoCalm) {
  thread_.begin(start_);
  EXPECT_TRUE(sleeps(BusySleeper::max_sleeps + 1, 1ms));
  EXPECT_EQ(thread_.rest(start_ + 1ms, {}), 100ms);
  thread_.begin(start_ + 101ms);
  EXPECT_FALSE(sleeps(1, 120ms)) << "the window is over";
  EXPECT_TRUE(sleeps(BusySleeper::max_sleeps, 122ms));
  EXPECT_EQ(thread_.rest(start_ + 122ms, {}), 200ms);
}

TEST_F(BusySleeperTest, IsPolledOftenEnoughWithMorePatience) {
  EXPECT_EQ(thread_.rest(start_, 64ms), BusySleeper::polls_a_rest * 64ms);
}

}  // namespace
}  // namespace swapd::observe
