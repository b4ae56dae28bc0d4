// The choice of provider and the donated attributes (docs/design.md, Donation).
#include <gmock/gmock.h>

#include "unit/model/world.h"

namespace swapd::test {
namespace {

using decide::Donation;
using decide::DonationRules;
using decide::Refusal;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class Decider : public testing::Test {
 protected:
  Vector<Donation> decide(std::vector<ThreadId> requesters) { return decider.decide(world, requesters); }
  std::vector<ThreadId> requesters_of(const Vector<Donation>& donations) {
    std::vector<ThreadId> ids;
    for (const Donation& donation : donations) ids.push_back(donation.requester);
    return ids;
  }
  World world;
  Chooser decider;
};

TEST_F(Decider, ALoneProviderGetsItWithoutAChoice) {
  world.enroll(p1, fifo(50));
  world.enroll(2, 2);
  world.provides(p2, r1);
  EXPECT_THAT(decide({p1}), IsEmpty());  // it runs
  world.blocks(p1, {r1});
  const auto all = decide({p1});
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_THAT(all[0].path, ElementsAre(p2));
  EXPECT_FALSE(all[0].choice);
  EXPECT_EQ(all[0].refusal, Refusal::none);
  EXPECT_TRUE(all[0].attr.reset_on_fork);
  EXPECT_EQ(world.favoured(p1), p2);
  // However long it takes.
  for (int i = 0; i < 100; ++i) world.uses_quantum(p1);
  EXPECT_EQ(decide({p1}), all);
}

TEST_F(Decider, AGuessIsLentANiceValueAtMost) {
  world.enroll(p1, fifo(50));
  world.enroll(2, 3);
  world.provides(p2, r1);
  world.provides(p3, r2, Evidence::guess);
  world.blocks(p2, {r2});
  world.blocks(p1, {r1});
  auto all = decide({p1});
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_THAT(all[0].path, ElementsAre(p2, p3));
  EXPECT_EQ(all[0].attr.policy, SchedPolicy::other);
  EXPECT_EQ(all[0].attr.nice, -20);
  EXPECT_TRUE(all[0].attr.reset_on_fork);
  // Once it is known to be the one, it is lent all.
  world.provides(p3, r2, Evidence::kin);
  all = decide({p1});
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all[0].attr.rt_priority, 49);
}

TEST_F(Decider, AGuessIsLentNoRealTimePriorityWhereThePolicyIsStrict) {
  DonationRules rules;
  rules.lending.strict = true;
  decider.choice.set_rules(rules);
  world.enroll(p1, nice(-5));
  world.enroll(2, 2);
  world.provides(p2, r1, Evidence::guess);
  world.blocks(p1, {r1});
  const auto all = decide({p1});
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all[0].attr.policy, SchedPolicy::other);
  EXPECT_EQ(all[0].attr.nice, -5);
}

TEST_F(Decider, TheMostImportantComesFirstAndThenTheLongestWait) {
  world.enroll(p1, nice(-5));
  world.enroll(p2, fifo(10));
  world.enroll(p3, nice(-5));
  world.enroll(p4, nice(10));
  world.enroll(5, 5);
  world.provides(p5, r1);
  for (const ThreadId id : {p3, p1, p2, p4}) world.blocks(id, {r1});
  // P4 is less important than P5 itself: nothing to lend, though P5 is its favoured one.
  EXPECT_THAT(requesters_of(decide({p1, p2, p3, p4, p3})), ElementsAre(p2, p3, p1));
  EXPECT_EQ(world.favoured(p4), p5);
}

TEST_F(Decider, PrioritiesMayChangeInMidWait) {
  world.enroll(p1, nice(-5));
  world.enroll(p2, nice(-10));
  world.enroll(3, 3);
  world.provides(p3, r1);
  world.blocks(p1, {r1});
  world.blocks(p2, {r1});
  EXPECT_THAT(requesters_of(decide({p1, p2})), ElementsAre(p2, p1));
  world.enroll(p1, fifo(20));
  auto all = decide({p1, p2});
  EXPECT_THAT(requesters_of(all), ElementsAre(p1, p2));
  EXPECT_EQ(all[0].attr.rt_priority, 19);
  // The provider becomes the more important one itself.
  world.enroll(p3, fifo(30));
  EXPECT_THAT(decide({p1, p2}), IsEmpty());
}

TEST_F(Decider, EveryThreadOfAPathIsLentWhatTheFirstRequesterLends) {
  world.enroll(p1, fifo(50));
  world.enroll(2, 3);
  world.provides(p2, r1);
  world.provides(p3, r2);
  world.blocks(p2, {r2});
  world.blocks(p1, {r1});
  const auto all = decide({p1});
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_THAT(all[0].path, ElementsAre(p2, p3));
  EXPECT_EQ(all[0].attr.rt_priority, 49);
  // It is enough that one of them is lifted.
  world.enroll(p3, fifo(60));
  EXPECT_THAT(decide({p1}), SizeIs(1));
  world.enroll(p2, fifo(60));
  EXPECT_THAT(decide({p1}), IsEmpty());
}

TEST_F(Decider, ConfidencesThatMoveElsewhereDoNotTakeAQuantumAway) {
  world.enroll(p1, fifo(50));
  world.enroll(2, 5);
  world.provides(p2, r1);
  world.provides(p3, r1);
  world.blocks(p1, {r1});
  EXPECT_THAT(decide({p1})[0].path, ElementsAre(p2));
  // P3 provides another requester meanwhile and stands higher.
  world.blocks(p5, {r1});
  world.wakes(p5, p3, r1);
  EXPECT_GT(world.value(p1, p3), world.value(p1, p2));
  EXPECT_THAT(decide({p1})[0].path, ElementsAre(p2));
  world.uses_quantum(p1);
  EXPECT_THAT(decide({p1})[0].path, ElementsAre(p3));
}

TEST_F(Decider, ANewcomerOfEqualConfidenceDoesNotTakeItAway) {
  world.enroll(p1, fifo(50));
  world.enroll(2, 4);
  world.provides(p3, r1, Evidence::holder);
  world.blocks(p1, {r1});
  EXPECT_THAT(decide({p1})[0].path, ElementsAre(p3));
  world.provides(p2, r1, Evidence::accessed);
  EXPECT_THAT(decide({p1})[0].path, ElementsAre(p3));
  EXPECT_TRUE(decide({p1})[0].choice);
}

// A lock's owner waits for its child, which has the lock's descriptor, too.
TEST_F(Decider, WaysThatEndInOneThreadAreToldApartFromAGuess) {
  world.enroll(p1, fifo(50));
  world.enroll(2, 4);
  world.provides(p2, r1, Evidence::owner);
  world.provides(p3, r1, Evidence::holder);
  world.provides(p3, r2, Evidence::child);
  world.blocks(p2, {r2});
  world.blocks(p1, {r1});
  auto all = decide({p1});
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all[0].path.back(), p3);
  EXPECT_TRUE(all[0].one_leaf);
  world.provides(p4, r1, Evidence::holder);
  EXPECT_FALSE(decide({p1})[0].one_leaf);
}

TEST_F(Decider, WhoBlocksWithoutBeingVirtualRunnableOrGoesIsReplaced) {
  world.enroll(p1, fifo(50));
  world.enroll(2, 4);
  for (const ThreadId id : {p2, p3, p4}) world.provides(id, r1);
  world.blocks(p1, {r1});
  EXPECT_THAT(decide({p1})[0].path, ElementsAre(p2));
  world.blocks(p2, {});
  EXPECT_THAT(decide({p1})[0].path, ElementsAre(p3));
  world.exits(p3);
  EXPECT_THAT(decide({p1})[0].path, ElementsAre(p4));
  world.exits(p4);
  EXPECT_THAT(decide({p1}), IsEmpty());
  EXPECT_EQ(world.favoured(p1), std::nullopt);
  world.wakes_by_itself(p2);
  EXPECT_THAT(decide({p1})[0].path, ElementsAre(p2));
}

TEST_F(Decider, AWaitThatEndsIsForgottenEvenUntold) {
  world.enroll(p1, fifo(50));
  world.enroll(2, 3);
  world.provides(p2, r1);
  world.provides(p3, r1);
  world.blocks(p1, {r1});
  EXPECT_THAT(decide({p1})[0].path, ElementsAre(p2));
  world.wakes(p1, p3, r1);
  world.blocks(p1, {r1});
  EXPECT_THAT(decide({p1})[0].path, ElementsAre(p3));  // 21, and no quantum of an earlier wait in the way
  decider.choice.forget(p1);
  EXPECT_THAT(decide({p1})[0].path, ElementsAre(p3));
  world.exits(p1);
  EXPECT_THAT(decide({p1}), IsEmpty());
}

TEST_F(Decider, OtherUsersThreadsOnlyWhereTheRulesSaySo) {
  world.enroll(p1, fifo(50), 1000);
  world.enroll(p2, {}, 1001);
  world.provides(p2, r1);
  world.blocks(p1, {r1});
  auto all = decide({p1});
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all[0].refusal, Refusal::policy);
  // One of its own user is preferred to a refused one.
  world.enroll(p3, {}, 1000);
  world.provides(p3, r1);
  all = decide({p1});
  EXPECT_THAT(all[0].path, ElementsAre(p3));
  EXPECT_EQ(all[0].refusal, Refusal::none);
  // One stranger on the path is enough.
  world.blocks(p3, {r2});
  world.provides(p2, r2);
  EXPECT_EQ(decide({p1})[0].refusal, Refusal::policy);
  decider.choice.set_rules({.cross_user = true});
  EXPECT_EQ(decide({p1})[0].refusal, Refusal::none);
  decider.choice.set_rules({});
  world.enroll(p1, fifo(50), 0);  // root may
  EXPECT_EQ(decide({p1})[0].refusal, Refusal::none);
}

TEST_F(Decider, WhatAClassLendsAndTakes) {
  // Class 1 lends FIFO 1 for a nice value; class 2 is never made real-time; class 3 trusts other users.
  DonationRules rules;
  rules.classes = {{.lending = {.strict = true}}, {.lending = {.realtime_allowed = false}}, {.cross_user = true}};
  decider.choice.set_rules(rules);
  world.enroll(p2, {}, 1000);
  world.provides(p2, r1);
  world.enroll(p1, nice(-10), 1000, 0);
  world.blocks(p1, {r1});
  EXPECT_EQ(decide({p1})[0].attr.nice, -10);
  world.enroll(p1, nice(-10), 1000, 1);
  EXPECT_EQ(decide({p1})[0].attr.policy, SchedPolicy::fifo);
  // Both sides have a say in real-time priorities.
  EXPECT_EQ(rules.lend(fifo(50), 1, 0).rt_priority, 49);
  EXPECT_EQ(rules.lend(fifo(50), 1, 2).nice, -20);
  EXPECT_EQ(rules.lend(nice(-10), 1, 2).nice, -10);
  world.enroll(p2, nice(-10), 1000, 2);
  EXPECT_THAT(decide({p1}), IsEmpty()) << "FIFO 1 would lift it, nice -10 does not";
  // Other users' threads: where the requester's class says so, or the provider's.
  world.enroll(p2, {}, 1001, 0);
  EXPECT_EQ(decide({p1})[0].refusal, Refusal::policy);
  world.enroll(p2, {}, 1001, 3);
  EXPECT_EQ(decide({p1})[0].refusal, Refusal::none);
  world.enroll(p2, {}, 1001, 0);
  world.enroll(p1, nice(-10), 1000, 3);
  EXPECT_EQ(decide({p1})[0].refusal, Refusal::none);
}

TEST_F(Decider, TIsThatOfTheRequestersClass) {
  model::Settings settings = figure(model::Feedback::wait);
  settings.classes.push_back(settings.kinds);
  for (auto& kind : settings.classes[0]) kind.quantum = milliseconds(7);
  world.model.set_settings(settings);
  world.enroll(p1, fifo(50), 1000, 1);
  world.enroll(2, 3);
  world.provides(p2, r1);
  world.provides(p3, r1);
  world.blocks(p1, {r1});
  EXPECT_EQ(decide({p1})[0].quantum, milliseconds(7));
}

TEST_F(Decider, WhatIsLent) {
  world.enroll(2, 2);
  world.provides(p2, r1);
  const auto lent = [&](const SchedAttr& base, const LendingRules& rules) {
    world.enroll(p1, base);
    world.blocks(p1, {r1});
    decider.choice.set_rules({.lending = rules});
    const auto all = decide({p1});
    return all.empty() ? SchedAttr{.policy = SchedPolicy::idle} : all[0].attr;
  };
  EXPECT_EQ(lent(nice(-10), {}).nice, -10);
  const SchedAttr strict = lent(nice(-10), {.strict = true});
  EXPECT_EQ(strict.policy, SchedPolicy::fifo);
  EXPECT_EQ(strict.rt_priority, 1);
  const SchedAttr no_realtime = lent(fifo(50), {.realtime_allowed = false});
  EXPECT_EQ(no_realtime.policy, SchedPolicy::other);
  EXPECT_EQ(no_realtime.nice, -20);
  EXPECT_EQ(lent(fifo(99), {.rt_ceiling = 40}).rt_priority, 40);
  EXPECT_EQ(lent({.policy = SchedPolicy::deadline}, {}).rt_priority, 90);
  EXPECT_EQ(lent(nice(0), {}).policy, SchedPolicy::idle);  // lifts no thread: no donation
}

// A requester of nice 0 in a group of weight 1000 waits for a provider of nice 0.
class WeightedDecider : public Decider {
 protected:
  static constexpr Weight heavy = 1000;
  void waits_for(Weight provider_weight, Weight requester_weight = heavy, SchedAttr requester = {}) {
    world.enroll(p1, requester, 1000, 0, requester_weight);
    world.enroll(p2, {}, 1000, 0, provider_weight);
    world.provides(p2, r1);
    world.blocks(p1, {r1});
  }
  void says(Weight weight_above) { decider.choice.set_rules({.weight_above = weight_above}); }
};

TEST_F(WeightedDecider, WhereThePolicySaysNothingOfWeightsTheySayNothing) {
  waits_for(usual_weight);
  EXPECT_THAT(decide({p1}), IsEmpty());
}

TEST_F(WeightedDecider, WhoseGroupWeighsMoreLendsANiceValueOfThatWorth) {
  says(usual_weight);
  waits_for(usual_weight);
  const auto all = decide({p1});
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all[0].attr.policy, SchedPolicy::other);
  EXPECT_EQ(all[0].attr.nice, -10);
}

TEST_F(WeightedDecider, NoMoreThanTheBoundIsNotEnough) {
  says(heavy);
  waits_for(usual_weight);
  EXPECT_THAT(decide({p1}), IsEmpty());
}

TEST_F(WeightedDecider, InOneGroupNoThreadIsMoreImportant) {
  says(usual_weight);
  waits_for(heavy);
  EXPECT_THAT(decide({p1}), IsEmpty());
}

TEST_F(WeightedDecider, WhatTheProvidersGroupHasAlreadyIsNotLent) {
  says(usual_weight);
  waits_for(500);
  const auto all = decide({p1});
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all[0].attr.nice, -3);
}

TEST_F(WeightedDecider, AHeavyProviderIsLentWhatANiceRequesterHas) {
  says(usual_weight);
  waits_for(heavy, usual_weight, nice(-5));
  const auto all = decide({p1});
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all[0].attr.nice, -5);
}

TEST_F(WeightedDecider, TheRequestersClassSaysWhetherItCounts) {
  DonationRules rules;
  rules.classes = {DonationRules{.weight_above = usual_weight}};
  decider.choice.set_rules(rules);
  waits_for(usual_weight);
  EXPECT_THAT(decide({p1}), IsEmpty());
  world.enroll(p1, {}, 1000, 1, heavy);
  EXPECT_THAT(decide({p1}), SizeIs(1));
}

TEST_F(WeightedDecider, TheHeavierRequesterComesFirst) {
  says(usual_weight);
  waits_for(usual_weight, 200);
  world.enroll(p3, {}, 1000, 0, heavy);
  world.blocks(p3, {r1});
  EXPECT_THAT(requesters_of(decide({p1, p3})), ElementsAre(p3, p1));
}

TEST_F(WeightedDecider, AllOfTheWayIsLentWhatItsLightestThreadLacks) {
  says(usual_weight);
  waits_for(heavy);
  world.enroll(p3, {}, 1000, 0, usual_weight);
  world.provides(p3, r2);
  world.blocks(p2, {r2});
  const auto all = decide({p1});
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_THAT(all[0].path, ElementsAre(p2, p3));
  EXPECT_EQ(all[0].attr.nice, -10);
}

}  // namespace
}  // namespace swapd::test
