#include "base/token_bucket.h"

#include <gtest/gtest.h>

namespace swapd {
namespace {

using std::chrono::milliseconds;

TEST(RateLimit, HoldsABurstAndFillsAtItsRate) {
  ManualClock clock;
  TokenBucket bucket(10, 3, clock.now());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(bucket.take(clock.now()));
  EXPECT_FALSE(bucket.take(clock.now()));
  clock.advance(milliseconds(99));
  EXPECT_FALSE(bucket.take(clock.now()));
  clock.advance(milliseconds(2));
  EXPECT_TRUE(bucket.take(clock.now()));
  EXPECT_FALSE(bucket.take(clock.now()));
}

TEST(RateLimit, NeverHoldsMoreThanItsCapacity) {
  ManualClock clock;
  TokenBucket bucket(10, 3, clock.now());
  EXPECT_TRUE(bucket.take(clock.now(), 2));
  EXPECT_FALSE(bucket.full(clock.now()));
  clock.advance(std::chrono::hours(1));
  EXPECT_TRUE(bucket.full(clock.now()));
  EXPECT_FALSE(bucket.take(clock.now(), 4));
  EXPECT_TRUE(bucket.take(clock.now(), 3));
}

}  // namespace
}  // namespace swapd
