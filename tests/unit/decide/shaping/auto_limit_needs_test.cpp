// Whether they have what they need, and whether their waits grow.
#include <gmock/gmock.h>

#include "decide/shaping/auto_limit.h"

namespace swapd::test {
namespace {

using decide::AutoLimit;
using decide::Need;
using decide::NeedJudge;
using decide::NeedRules;
using decide::Tokens;

constexpr Tokens mebi = 1 << 20;

TEST(NeedJudge, ARateIsMissedByWhoWaitsForMore) {
  NeedJudge judge({.rate = 4 * mebi, .wait = {}});
  const Duration period = AutoLimit::period;
  for (int i = 0; i < 8; ++i) EXPECT_EQ(judge.judge({.by_calls = mebi, .waited = 0.1}, period), Need::met);
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(judge.judge({.by_calls = mebi / 2, .waited = 0.1}, period), Need::met) << "it asks for no more";
  for (int i = 0; i < 4; ++i) (void)judge.judge({.by_calls = mebi / 2, .waited = 0.9}, period);
  EXPECT_EQ(judge.judge({.by_calls = mebi / 2, .waited = 0.9}, period), Need::missed);
  for (int i = 0; i < 4; ++i) (void)judge.judge({.by_calls = 0, .waited = 1}, period);
  EXPECT_EQ(judge.judge({.by_calls = 0, .waited = 1}, period), Need::missed) << "it waits for its first byte";
  EXPECT_EQ(judge.judge({.by_calls = 0, .waited = 0}, period), Need::idle);
}

// One large read a second is as good as many small ones.
TEST(NeedJudge, LooksAtAWholeSecond) {
  NeedJudge judge({.rate = 4 * mebi, .wait = {}});
  for (int i = 0; i < 4; ++i)
    (void)judge.judge({.by_calls = i % 4 == 0 ? 4 * mebi : 0, .waited = 0.5}, AutoLimit::period);
  for (int i = 0; i < 12; ++i)
    EXPECT_EQ(judge.judge({.by_calls = i % 4 == 0 ? 4 * mebi : 0, .waited = 0.5}, AutoLimit::period), Need::met) << i;
}

TEST(NeedJudge, AWaitIsMissedByWhoWaitsLonger) {
  NeedJudge judge({.rate = {}, .wait = 0.5});
  for (int i = 0; i < 8; ++i) EXPECT_EQ(judge.judge({.by_calls = mebi, .waited = 0.4}, AutoLimit::period), Need::met);
  for (int i = 0; i < 3; ++i) (void)judge.judge({.by_calls = mebi, .waited = 0.8}, AutoLimit::period);
  EXPECT_EQ(judge.judge({.by_calls = mebi, .waited = 0.8}, AutoLimit::period), Need::missed);
}

TEST(Trend, RisesByMoreThanItScatters) {
  decide::Trend trend;
  for (const double value : {0.0, 0.1, 0.0, 0.1, 0.2, 0.3, 0.3}) trend.add(value);
  EXPECT_FALSE(trend.rises(0.1, AutoLimit::Tuning().scatter_factor)) << "too few to tell";
  trend.add(0.4);
  EXPECT_TRUE(trend.rises(0.2, AutoLimit::Tuning().scatter_factor));
  EXPECT_FALSE(trend.rises(0.3, AutoLimit::Tuning().scatter_factor));
  trend.restart();
  for (const double value : {0.0, 0.8, 0.1, 0.7, 0.9, 0.8, 0.7, 0.8}) trend.add(value);
  EXPECT_FALSE(trend.rises(0.2, AutoLimit::Tuning().scatter_factor)) << "it was as high before";
}

}  // namespace
}  // namespace swapd::test
