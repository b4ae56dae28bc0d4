// Memory of boosts that have ended, for children that were forked under them.
#include "actuate/past_boosts.h"

#include <gtest/gtest.h>

#include "actuate/head_start.h"

namespace swapd::actuate {
namespace {

ThreadId thread(int tid) { return {tid, 1}; }

Past past(int tid, std::int8_t nice) {
  Past out;
  out.thread = thread(tid);
  out.base.nice = nice;
  return out;
}

TEST(PastBoosts, TheNewestOfAThreadCounts) {
  PastBoosts boosts;
  boosts.remember(past(10, 1));
  boosts.remember(past(10, 2));
  boosts.remember(past(11, 3));
  ASSERT_TRUE(boosts.newest(thread(10)));
  EXPECT_EQ(boosts.newest(thread(10))->base.nice, 2);
}

TEST(PastBoosts, AnotherThreadOfThatNumberIsUnknown) {
  PastBoosts boosts;
  boosts.remember(past(10, 1));
  EXPECT_FALSE(boosts.newest({10, 2}));
}

TEST(PastBoosts, TheOldestIsForgotten) {
  PastBoosts boosts;
  const int all = static_cast<int>(PastBoosts::max_remembered);
  for (int tid = 1; tid <= all + 1; ++tid) boosts.remember(past(tid, 0));
  EXPECT_FALSE(boosts.newest(thread(1)));
  EXPECT_TRUE(boosts.newest(thread(2)));
  EXPECT_TRUE(boosts.newest(thread(all + 1)));
}

TEST(HeadStarts, EndTogetherAndAreRemembered) {
  HeadStarts starts;
  EXPECT_FALSE(starts.any());
  starts.begin(thread(10));
  starts.begin(thread(11));
  EXPECT_TRUE(starts.any());
  EXPECT_EQ(starts.end(), (std::vector{thread(10), thread(11)}));
  EXPECT_FALSE(starts.any());
  EXPECT_TRUE(starts.has_had(thread(10)));
  EXPECT_FALSE(starts.has_had({10, 2}));
}

TEST(HeadStarts, AreForgottenAfterManyOthers) {
  HeadStarts starts;
  for (int tid = 1; tid <= static_cast<int>(HeadStarts::max_remembered) + 1; ++tid) starts.begin(thread(tid));
  EXPECT_FALSE(starts.has_had(thread(1)));
  EXPECT_TRUE(starts.has_had(thread(2)));
}

}  // namespace
}  // namespace swapd::actuate
