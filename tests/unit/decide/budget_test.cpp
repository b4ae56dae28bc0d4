// How much CPU time boosts may use in a window, and until when they rest.
#include "decide/budget.h"

#include <gtest/gtest.h>

#include "unit/model/world.h"

namespace swapd::test {
namespace {

using decide::BudgetConfig;
using decide::CpuBudgets;

constexpr std::uint32_t user = 1000, other_user = 1001;

class Budgets : public testing::Test {
 protected:
  // Half of a CPU in 100 ms for each requester, 900 ms a second for each user.
  CpuBudgets budgets{{.ceiling = {.share = 0.5, .window = milliseconds(100)}, .user_time = milliseconds(900)}};
  Time now{std::chrono::hours(1)};
  std::optional<Duration> uses(int ms, ThreadId requester = p1) {
    now += milliseconds(ms);
    return budgets.use(requester, 0, milliseconds(ms), now);
  }
};

TEST_F(Budgets, TellHowMuchIsLeftOfTheWindow) {
  EXPECT_EQ(uses(30), milliseconds(20));
  EXPECT_EQ(uses(19), milliseconds(1));
  EXPECT_EQ(uses(1), Duration::zero());
}

TEST_F(Budgets, AtTheCeilingARequestersBoostsRestUntilTheWindowEnds) {
  const Time began = now;
  (void)uses(30);
  EXPECT_EQ(budgets.rests_until(p1, 0, now), std::nullopt);
  (void)uses(20);
  EXPECT_EQ(budgets.rests_until(p1, 0, now), began + milliseconds(100));
  EXPECT_EQ(budgets.rests_until(p1, 0, began + milliseconds(99)), began + milliseconds(100));
  EXPECT_EQ(budgets.rests_until(p1, 0, began + milliseconds(100)), std::nullopt);
}

// 30 ms of CPU cannot have been used in less time: what is told late has begun then.
TEST_F(Budgets, AWindowBeginsWithTheFirstUseAndNotWithItsCharge) {
  const Time began = now;
  now += milliseconds(30);
  (void)budgets.use(p1, 0, milliseconds(30), now);
  now += milliseconds(20);
  (void)budgets.use(p1, 0, milliseconds(20), now);
  EXPECT_EQ(budgets.rests_until(p1, 0, now), began + milliseconds(100));
}

TEST_F(Budgets, TheNextWindowIsWhole) {
  (void)uses(60);
  now += milliseconds(40);
  EXPECT_EQ(uses(10), milliseconds(40));
}

TEST_F(Budgets, EachRequesterHasItsOwn) {
  (void)uses(60, p1);
  EXPECT_NE(budgets.rests_until(p1, 0, now), std::nullopt);
  EXPECT_EQ(budgets.rests_until(p2, 0, now), std::nullopt);
}

TEST_F(Budgets, AreThoseOfTheRequestersClass) {
  budgets.set_config({.ceiling = {.share = 1}, .classes = {{.share = 0.2, .window = milliseconds(100)}}});
  EXPECT_EQ(budgets.use(p1, 0, milliseconds(60), now), std::nullopt) << "no limit";
  EXPECT_EQ(budgets.use(p1, 1, milliseconds(10), now), milliseconds(10));
  EXPECT_EQ(budgets.use(p1, 1, milliseconds(10), now), Duration::zero());
}

TEST_F(Budgets, OfAForgottenRequesterNothingIsKept) {
  (void)uses(60);
  budgets.forget(p1);
  EXPECT_EQ(budgets.rests_until(p1, 0, now), std::nullopt);
}

TEST_F(Budgets, AllOfAUsersRequestersDrawOnOneTime) {
  const Time began = now;
  now += milliseconds(500);
  budgets.use(user, milliseconds(500), now);
  EXPECT_EQ(budgets.rests_until(user, now), std::nullopt);
  now += milliseconds(400);
  budgets.use(user, milliseconds(400), now);
  EXPECT_EQ(budgets.rests_until(user, now), began + std::chrono::seconds(1));
  EXPECT_EQ(budgets.rests_until(other_user, now), std::nullopt);
}

TEST_F(Budgets, ShortBoostsOfAUserAddUp) {
  for (int i = 0; i < 90; ++i) {
    now += milliseconds(10);
    budgets.use(user, milliseconds(10), now);
  }
  EXPECT_NE(budgets.rests_until(user, now), std::nullopt);
}

TEST_F(Budgets, RootHasNoQuota) {
  budgets.use(0, std::chrono::seconds(5), now);
  EXPECT_EQ(budgets.rests_until(std::uint32_t{0}, now), std::nullopt);
}

TEST_F(Budgets, AChargeIsEitherARequestersOrAUsers) {
  EXPECT_EQ(budgets.use(decide::BudgetUsed{now, p1, 0, 0, milliseconds(20)}), milliseconds(30));
  EXPECT_EQ(budgets.use(decide::BudgetUsed{now, {}, 0, user, milliseconds(950)}), std::nullopt);
  EXPECT_NE(budgets.rests_until(user, now), std::nullopt);
}

TEST(BudgetConfig, LimitsRequestersWhereAnyClassHasACeiling) {
  EXPECT_FALSE(BudgetConfig{}.limits_requesters());
  EXPECT_TRUE((BudgetConfig{.classes = {{}, {.share = 0.9}}}.limits_requesters()));
  EXPECT_FALSE(BudgetConfig{}.limits_users());
}

}  // namespace
}  // namespace swapd::test
