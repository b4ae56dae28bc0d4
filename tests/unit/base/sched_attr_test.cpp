// The order of importance, and what one thread lends another (docs/design.md, Donation).
#include "base/sched_attr.h"

#include <gtest/gtest.h>

namespace swapd {
namespace {

SchedAttr nice_of(int nice) { return {.nice = static_cast<std::int8_t>(nice)}; }
SchedAttr fifo_of(int priority) {
  return {.policy = SchedPolicy::fifo, .rt_priority = static_cast<std::uint8_t>(priority)};
}
SchedAttr rr_of(int priority) {
  return {.policy = SchedPolicy::rr, .rt_priority = static_cast<std::uint8_t>(priority)};
}
const SchedAttr idle{.policy = SchedPolicy::idle};
const SchedAttr deadline{.policy = SchedPolicy::deadline, .runtime_ns = 1, .deadline_ns = 2, .period_ns = 2};

TEST(Rank, OrdersTheClassesAsTheKernelDoes) {
  EXPECT_GT(rank(deadline), rank(fifo_of(99)));
  EXPECT_GT(rank(fifo_of(1)), rank(nice_of(-20)));
  EXPECT_GT(rank(nice_of(19)), rank(idle));
}

TEST(Rank, WithinAClassByPriorityOrNice) {
  EXPECT_GT(rank(fifo_of(50)), rank(fifo_of(49)));
  EXPECT_EQ(rank(fifo_of(50)), rank(rr_of(50)));
  EXPECT_GT(rank(nice_of(-10)), rank(nice_of(0)));
  EXPECT_EQ(rank(nice_of(5)), rank({.policy = SchedPolicy::batch, .nice = 5}));
  EXPECT_EQ(rank(nice_of(-20)), 40);
  EXPECT_EQ(rank(nice_of(19)), 1);
  EXPECT_EQ(rank(idle), 0);
}

TEST(Rank, FlagsAndSlicesDoNotMatter) {
  EXPECT_EQ(rank({.nice = 3, .reset_on_fork = true, .runtime_ns = 100'000}), rank(nice_of(3)));
}

// The requester must run at once when it wakes, so its provider stays one below it.
TEST(LentBy, ARealTimeDonorLendsFifoOneBelow) {
  EXPECT_EQ(lent_by(fifo_of(50), {}).rt_priority, 49);
  EXPECT_EQ(lent_by(fifo_of(50), {}).policy, SchedPolicy::fifo);
  EXPECT_EQ(lent_by(rr_of(2), {}).rt_priority, 1);
  EXPECT_EQ(lent_by(rr_of(2), {}).policy, SchedPolicy::fifo)
      << "round robin would share with strangers of that priority";
  EXPECT_EQ(lent_by(fifo_of(1), {}).rt_priority, 1) << "there is nothing below 1";
}

TEST(LentBy, NotAboveTheCeiling) {
  EXPECT_EQ(lent_by(fifo_of(99), {}).rt_priority, 90);
  EXPECT_EQ(lent_by(fifo_of(91), {}).rt_priority, 90);
  EXPECT_EQ(lent_by(fifo_of(90), {}).rt_priority, 89);
  EXPECT_EQ(lent_by(fifo_of(50), {.rt_ceiling = 10}).rt_priority, 10);
}

TEST(LentBy, ADeadlineDonorLendsFifoAtTheCeiling) {
  const SchedAttr lent = lent_by(deadline, {});
  EXPECT_EQ(lent.policy, SchedPolicy::fifo);
  EXPECT_EQ(lent.rt_priority, 90);
  EXPECT_EQ(lent.period_ns, 0U);
}

TEST(LentBy, ANiceDonorLendsItsNice) {
  EXPECT_EQ(lent_by(nice_of(-10), {}).nice, -10);
  EXPECT_EQ(lent_by(nice_of(-10), {}).policy, SchedPolicy::other);
  EXPECT_EQ(lent_by({.policy = SchedPolicy::batch, .nice = -5}, {}).policy, SchedPolicy::other);
  EXPECT_EQ(lent_by(nice_of(5), {}).nice, 5);
  EXPECT_EQ(lent_by(idle, {}).policy, SchedPolicy::idle);
}

TEST(LentBy, StrictLendsTheLowestRealTimePriorityForANegativeNice) {
  const LendingRules strict{.strict = true};
  EXPECT_EQ(lent_by(nice_of(-1), strict).policy, SchedPolicy::fifo);
  EXPECT_EQ(lent_by(nice_of(-1), strict).rt_priority, 1);
  EXPECT_EQ(lent_by(nice_of(0), strict).policy, SchedPolicy::other) << "an ordinary waiter stays ordinary";
  EXPECT_EQ(lent_by(fifo_of(50), strict).rt_priority, 49);
}

TEST(LentBy, WithoutRealTimeTheBestNiceIsLent) {
  const LendingRules none{.realtime_allowed = false};
  EXPECT_EQ(lent_by(fifo_of(50), none).policy, SchedPolicy::other);
  EXPECT_EQ(lent_by(fifo_of(50), none).nice, -20);
  EXPECT_EQ(lent_by(deadline, none).nice, -20);
  EXPECT_EQ(lent_by(nice_of(-3), {.realtime_allowed = false, .strict = true}).nice, -3);
}

// A child that the provider forks must not inherit what was lent for one wait.
TEST(LentBy, AlwaysResetsOnFork) {
  for (const SchedAttr& donor : {fifo_of(50), rr_of(1), nice_of(-5), idle, deadline})
    EXPECT_TRUE(lent_by(donor, {}).reset_on_fork);
}

// A whole chain is lent by the first requester, so that its length does not use the priority up.
TEST(LentBy, NeverExceedsTheDonor) {
  for (int p = 2; p <= 99; ++p) EXPECT_LT(rank(lent_by(fifo_of(p), {})), rank(fifo_of(p)));
  for (int n = -20; n <= 19; ++n) EXPECT_EQ(rank(lent_by(nice_of(n), {})), rank(nice_of(n)));
}

TEST(SchedPolicyName, IsTheWordOfTheContract) {
  EXPECT_EQ(name(SchedPolicy::other), "other");
  EXPECT_EQ(name(SchedPolicy::batch), "batch");
  EXPECT_EQ(name(SchedPolicy::idle), "idle");
  EXPECT_EQ(name(SchedPolicy::fifo), "fifo");
  EXPECT_EQ(name(SchedPolicy::rr), "rr");
  EXPECT_EQ(name(SchedPolicy::deadline), "deadline");
}

}  // namespace
}  // namespace swapd
