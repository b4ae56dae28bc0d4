#include "base/time.h"

#include <gtest/gtest.h>
#include <time.h>

#include <unordered_set>

#include "base/thread_id.h"

namespace swapd {
namespace {

using namespace std::chrono_literals;

TEST(ManualClock, MovesOnlyWhenTold) {
  ManualClock clock;
  const Time start = clock.now();
  EXPECT_EQ(clock.now(), start);
  clock.advance(20ms);
  EXPECT_EQ(clock.now() - start, 20ms);
  clock.set(Time(5s));
  EXPECT_EQ(clock.now().time_since_epoch(), 5s);
}

// Kernel records carry CLOCK_MONOTONIC; the clock that they are compared with must be the same one.
TEST(SteadyClock, IsClockMonotonic) {
  const auto monotonic = [] {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return Time(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
  };
  const Time before = monotonic();
  const Time ours = SteadyClock().now();
  EXPECT_LE(before, ours);
  EXPECT_LE(ours, monotonic());
}

TEST(ThreadId, ARecycledTidIsAnotherThread) {
  const ThreadId first{100, 5000};
  const ThreadId second{100, 9000};
  EXPECT_NE(first, second);
  const std::unordered_set<ThreadId> both{first, second, first};
  EXPECT_EQ(both.size(), 2U);
  EXPECT_FALSE(ThreadId{}.valid());
  EXPECT_TRUE(first.valid());
}

}  // namespace
}  // namespace swapd
