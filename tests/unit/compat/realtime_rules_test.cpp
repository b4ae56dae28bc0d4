// To whom rtkit's interface gives what.
#include "compat/realtime_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace swapd::compat {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::chrono_literals;

const RealtimeLimits limits;
// PipeWire's own.
RealtimeWish wish() { return {.caller = 1000, .owner = 1000, .longest = 200ms, .priority = 20}; }

TEST(RealtimeRules, AProcessThatCannotRunForLongMayHaveRealTime) { EXPECT_THAT(refusal(wish(), limits), IsEmpty()); }

TEST(RealtimeRules, OneThatCanRunForLongMayNot) {
  RealtimeWish without = wish();
  without.longest.reset();
  EXPECT_THAT(refusal(without, limits), HasSubstr("RLIMIT_RTTIME is above 200000 us"));
  without.longest = 201ms;
  EXPECT_THAT(refusal(without, limits), HasSubstr("RLIMIT_RTTIME"));
}

TEST(RealtimeRules, ANiceValueNeedsNoSuchBound) {
  RealtimeWish nice{.caller = 1000, .owner = 1000, .nice = -15};
  EXPECT_THAT(refusal(nice, limits), IsEmpty());
  nice.nice = -16;
  EXPECT_EQ(refusal(nice, limits), "nice value -16 is not in -15…19");
}

TEST(RealtimeRules, PrioritiesHaveARange) {
  for (const int priority : {0, 21, -1}) {
    RealtimeWish out = wish();
    out.priority = priority;
    EXPECT_THAT(refusal(out, limits), HasSubstr("is not in 1…20")) << priority;
  }
}

TEST(RealtimeRules, AnotherUsersProcessIsRootsToChange) {
  RealtimeWish other = wish();
  other.owner = 0;
  EXPECT_EQ(refusal(other, limits), "the process is another user's");
  other.caller = 0;
  other.owner = 1000;
  EXPECT_THAT(refusal(other, limits), IsEmpty());
}

TEST(RealtimeRules, AThreadOfAnotherProcessIsNone) {
  RealtimeWish stray = wish();
  stray.thread_of_process = false;
  EXPECT_EQ(refusal(stray, limits), "the thread is none of that process");
}

TEST(RealtimeRules, AUserHasSoManyThreadsAndNoMore) {
  RealtimeWish more = wish();
  more.threads_of_user = 24;
  EXPECT_THAT(refusal(more, limits), IsEmpty());
  more.threads_of_user = 25;
  EXPECT_EQ(refusal(more, limits), "this user has 25 such threads already");
}

TEST(RealtimeBound, IsTheHardOne) {
  const std::string before = "Max realtime priority     0                    0                    \n";
  EXPECT_EQ(realtime_bound(before + "Max realtime timeout      100000               200000               us        \n"),
            200ms);
  EXPECT_EQ(realtime_bound(before + "Max realtime timeout      100000               unlimited            us        \n"),
            std::nullopt);
  EXPECT_EQ(realtime_bound(before), std::nullopt);
  EXPECT_EQ(realtime_bound("Max realtime timeout 1"), std::nullopt);
}

TEST(ActionQuotaTest, AUserMayAskSoOftenInSoLong) {
  ActionQuota quota(limits);
  const Time begin{1h};
  for (int i = 0; i < 25; ++i) EXPECT_TRUE(quota.take(1000, begin + i * 1ms));
  EXPECT_FALSE(quota.take(1000, begin + 1s));
  EXPECT_TRUE(quota.take(1001, begin + 1s)) << "each user has its own";
  EXPECT_FALSE(quota.take(1000, begin + 19s));
  EXPECT_TRUE(quota.take(1000, begin + 20s));
}

}  // namespace
}  // namespace swapd::compat
