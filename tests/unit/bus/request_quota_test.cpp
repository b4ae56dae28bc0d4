#include "bus/request_quota.h"

#include <gtest/gtest.h>

namespace swapd::bus {
namespace {

const Time start{std::chrono::hours(1)};

TEST(RequestQuota, AUserMayMakeSoManyASecond) {
  RequestQuota quota(2);
  EXPECT_TRUE(quota.take(1000, start));
  EXPECT_TRUE(quota.take(1000, start));
  EXPECT_FALSE(quota.take(1000, start));
  EXPECT_TRUE(quota.take(1000, start + std::chrono::milliseconds(500)));
  EXPECT_FALSE(quota.take(1000, start + std::chrono::milliseconds(500)));
}

TEST(RequestQuota, OneUsersRequestsTakeNothingFromAnother) {
  RequestQuota quota(1);
  EXPECT_TRUE(quota.take(1000, start));
  EXPECT_TRUE(quota.take(1001, start));
  EXPECT_FALSE(quota.take(1000, start));
}

TEST(RequestQuota, RootHasNone) {
  RequestQuota quota(1);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(quota.take(0, start));
}

TEST(RequestQuota, ZeroIsNoLimit) {
  RequestQuota quota(0);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(quota.take(1000, start));
}

TEST(RequestQuota, ManyUsersDoNotFreeTheOneThatAsksTooOften) {
  RequestQuota quota(1);
  EXPECT_TRUE(quota.take(1, start));
  for (std::uint32_t uid = 2; uid < 3000; ++uid) EXPECT_TRUE(quota.take(uid, start));
  EXPECT_FALSE(quota.take(1, start));
}

}  // namespace
}  // namespace swapd::bus
