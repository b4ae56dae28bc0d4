// [quota] processes = 2, threads = 4.
#include "engine/user_quota.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/daemon/engine_words.h"

namespace swapd::daemon {
namespace {

using testing::HasSubstr;

class UserQuotaTest : public testing::Test {
 protected:
  void add(pid_t tgid, std::uint32_t uid, int threads) {
    members_.add_process(tgid, 1, uid, "default");
    for (int i = 0; i < threads; ++i) members_.add_thread({.id = {tgid + i, 1}, .tgid = tgid, .base = {}});
  }
  model::ManagedSet members_;
  UserQuota quota_{members_, {.processes = 2, .threads = 4}};
};

TEST_F(UserQuotaTest, BelowBothLimitsThereIsRoom) {
  add(10, alice, 2);
  EXPECT_TRUE(quota_.has_room(alice, true));
}

TEST_F(UserQuotaTest, AtTheLimitOfProcessesThereIsRoomForThreadsAlone) {
  add(10, alice, 1);
  add(20, alice, 1);
  EXPECT_FALSE(quota_.has_room(alice, true));
  EXPECT_TRUE(quota_.has_room(alice, false));
}

TEST_F(UserQuotaTest, AtTheLimitOfThreadsThereIsNoRoom) {
  add(10, alice, 4);
  EXPECT_FALSE(quota_.has_room(alice, false));
  EXPECT_FALSE(quota_.has_room(alice, true));
}

TEST_F(UserQuotaTest, EachUserHasItsOwn) {
  add(10, alice, 4);
  EXPECT_TRUE(quota_.has_room(bob, true));
}

TEST_F(UserQuotaTest, RootHasNoLimit) {
  add(10, root, 20);
  EXPECT_TRUE(quota_.has_room(root, true));
}

TEST_F(UserQuotaTest, ZeroIsNoLimit) {
  add(10, alice, 20);
  EXPECT_TRUE(UserQuota(members_, {}).has_room(alice, true));
}

TEST_F(UserQuotaTest, ReleasedProcessesDoNotCount) {
  add(10, alice, 4);
  members_.set_managed(10, false);
  EXPECT_TRUE(quota_.has_room(alice, true));
}

TEST_F(UserQuotaTest, AUserAtItsQuotaIsToldEdquotAndTheNumber) {
  add(10, alice, 1);
  add(20, alice, 1);
  const Status full = quota_.room_for(alice, 30);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code(), EDQUOT);
  EXPECT_THAT(full.error().context(), HasSubstr("user 1000 has 2 managed processes"));
}

TEST_F(UserQuotaTest, WhereBothAreUsedUpThreadsAreNamed) {
  add(10, alice, 4);
  const Status full = quota_.room_for(alice, 30);
  ASSERT_FALSE(full);
  EXPECT_THAT(full.error().context(), HasSubstr("4 managed threads, as many as [quota] threads"));
}

TEST_F(UserQuotaTest, AProcessThatIsManagedAlreadyHasItsRoom) {
  add(10, alice, 4);
  EXPECT_TRUE(quota_.room_for(alice, 10));
}

}  // namespace
}  // namespace swapd::daemon
