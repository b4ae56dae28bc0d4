// The lessons of a wait ([SWAP04 §3.1]; docs/design.md, Model).
#include <gmock/gmock.h>

#include "unit/model/world.h"

namespace swapd::test {
namespace {

using model::Feedback;
using testing::ElementsAre;
using testing::IsEmpty;

class TwoProviders : public testing::Test {
 protected:
  TwoProviders() {
    world.enroll(1, 4);
    world.provides(p2, r1);
    world.provides(p3, r1);
    world.blocks(p1, {r1});
  }
  // P2 runs for T in vain; P3 is favoured next.
  void p2_fails() {
    EXPECT_EQ(world.favour(p1), p2);
    world.uses_quantum(p1);
    EXPECT_EQ(world.favour(p1), p3);
  }
  World world{figure(Feedback::wait)};
};

TEST_F(TwoProviders, ADebitOrdersThisWaitOnly) {
  p2_fails();
  EXPECT_EQ(world.confidence(p2, r1), 20);
  EXPECT_EQ(world.value(p1, p2), 19);
  EXPECT_EQ(world.model.providers(r1, p1).back().debits, 1);
  world.enroll(5, 5);
  world.blocks(p5, {r1});
  EXPECT_EQ(world.value(p5, p2), 20);
}

TEST_F(TwoProviders, WhoProvidesGainsOneAndTheOthersLoseOneInAll) {
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(world.favour(p1), p2);
    world.uses_quantum(p1);
    EXPECT_EQ(world.favour(p1), p3);
    world.uses_quantum(p1);
  }
  world.wakes(p1, p3, r1);
  EXPECT_EQ(world.confidence(p3, r1), 21);
  EXPECT_EQ(world.confidence(p2, r1), 19);
  EXPECT_EQ(world.model.providers(r1, p1).front().debits, 0);
  EXPECT_EQ(world.model.providers(r1, {}).front().evidence, Evidence::woke);
  EXPECT_EQ(world.model.providers(r1, {}).back().evidence, Evidence::accessed);
}

TEST_F(TwoProviders, AnUnrelatedWakeTeachesNothing) {
  p2_fails();
  world.model.apply(Woken{world.tick(), p1, p3, {}, true});
  EXPECT_EQ(world.confidence(p2, r1), 20);
  EXPECT_EQ(world.confidence(p3, r1), 20);
}

TEST_F(TwoProviders, AWakeThroughAnotherResourceCreditsNobody) {
  world.provides(p3, r2);
  p2_fails();
  world.wakes(p1, p3, r2);
  EXPECT_EQ(world.confidence(p2, r1), 19);
  EXPECT_EQ(world.confidence(p3, r1), 20);
  EXPECT_EQ(world.confidence(p3, r2), 20);
}

TEST_F(TwoProviders, WithoutAWakerTheDebitsAreStillSettled) {
  p2_fails();
  world.model.apply(Woken{world.tick(), p1, {}, {}, false});
  EXPECT_EQ(world.confidence(p2, r1), 19);
  EXPECT_EQ(world.confidence(p3, r1), 20);
}

TEST_F(TwoProviders, AWakerWithoutAResourceIsCreditedWhereItIsListed) {
  world.model.apply(Woken{world.tick(), p1, p3, {}, false});
  EXPECT_EQ(world.confidence(p3, r1), 21);
  world.blocks(p1, {r1});
  world.model.apply(Woken{world.tick(), p1, p4, {}, false});
  EXPECT_EQ(world.confidence(p4, r1), -1);
}

TEST_F(TwoProviders, AStrangerWhoWakesThroughTheResourceBecomesAProvider) {
  p2_fails();
  world.wakes(p1, p4, r1);
  EXPECT_EQ(world.confidence(p4, r1), 21);
  EXPECT_EQ(world.model.providers(r1, {}).front().evidence, Evidence::woke);
  EXPECT_EQ(world.confidence(p2, r1), 19);
}

TEST_F(TwoProviders, ItselfIsNeverCredited) {
  world.wakes(p1, p1, r1);
  EXPECT_EQ(world.confidence(p1, r1), -1);
}

TEST_F(TwoProviders, WithOneCandidateNobodyIsCharged) {
  world.blocks(p3, {});
  world.favour(p1);
  EXPECT_FALSE(world.model.has_choice(p1, world.path[p1]));
  world.uses_quantum(p1);
  EXPECT_EQ(world.favoured(p1), p2);
  world.wakes(p1, p3, r1);
  EXPECT_EQ(world.confidence(p2, r1), 20);
}

TEST_F(TwoProviders, ThoseWhoStandAt0AreTriedInTurn) {
  for (int i = 0; i < 50; ++i) p2_fails(), world.uses_quantum(p1);
  EXPECT_EQ(world.value(p1, p2), 0);
  EXPECT_EQ(world.value(p1, p3), 0);
  // Someone new is better than both; then all three take turns.
  world.provides(p4, r1);
  for (int i = 0; i < 20 + 30; ++i) {
    EXPECT_EQ(world.favour(p1), p4);
    world.uses_quantum(p1);
  }
  for (int i = 0; i < 3; ++i) {
    p2_fails();
    world.uses_quantum(p1);
    EXPECT_EQ(world.favour(p1), p4);
    world.uses_quantum(p1);
  }
}

TEST_F(TwoProviders, OneWhoLeavesInMidWaitIsForgotten) {
  p2_fails();
  world.exits(p3);
  EXPECT_THAT(world.leaves(p1), ElementsAre(p2));
  EXPECT_EQ(world.favour(p1), p2);
  world.exits(p2);
  EXPECT_THAT(world.leaves(p1), IsEmpty());
  world.uses_quantum(p1);
  world.wakes(p1, p4, r1);
  EXPECT_EQ(world.confidence(p4, r1), 21);
}

TEST_F(TwoProviders, AThreadBehindTwoAwaitedResourcesIsOneCandidate) {
  world.wakes_by_itself(p1);
  world.provides(p2, r2);
  world.blocks(p1, {r1, r2});
  world.favour(p1);
  EXPECT_TRUE(world.model.has_choice(p1, world.path[p1]));
  world.uses_quantum(p1);
  // The debit is the thread's: it is not tried again by way of the other resource.
  EXPECT_EQ(world.favour(p1), p3);
  EXPECT_EQ(world.value(p1, p2), 19);
  world.wakes(p1, p3, r1);
  EXPECT_EQ(world.confidence(p2, r1) + world.confidence(p2, r2), 39);
}

TEST_F(TwoProviders, PaperFeedbackChargesAtOnce) {
  world.model.set_settings(figure(Feedback::paper));
  p2_fails();
  EXPECT_EQ(world.confidence(p2, r1), 19);
  world.wakes(p1, p3, r1);
  EXPECT_EQ(world.confidence(p3, r1), 21);
  EXPECT_EQ(world.confidence(p2, r1), 19);
}

// P1 waits for P2 or P3, P3 for P4 or P5.
class TwoLevels : public testing::TestWithParam<Feedback> {
 protected:
  TwoLevels() {
    world.enroll(1, 5);
    world.provides(p2, r1);
    world.provides(p3, r1);
    world.provides(p4, r2);
    world.provides(p5, r2);
    world.blocks(p3, {r2});
    world.blocks(p1, {r1});
  }
  World world{figure(GetParam())};
};
INSTANTIATE_TEST_SUITE_P(Both, TwoLevels, testing::Values(Feedback::wait, Feedback::paper),
                         [](const auto& one) { return one.param == Feedback::wait ? "wait" : "paper"; });

TEST_P(TwoLevels, AnIndirectProvidersFailureIsTheDirectOnes) {
  EXPECT_EQ(world.favour(p1), p2);
  world.uses_quantum(p1);
  EXPECT_EQ(world.favour(p1), p4);
  EXPECT_EQ(world.favoured(p1), p3);
  world.uses_quantum(p1);
  EXPECT_DOUBLE_EQ(world.value(p1, p5), 19);
  EXPECT_EQ(world.confidence(p4, r2), 20);
  world.wakes(p1, p2, r1);
  EXPECT_EQ(world.confidence(p3, r1), 19);
  EXPECT_EQ(world.confidence(p4, r2), 20);
}

TEST_P(TwoLevels, TheDirectProviderIsCreditedOnlyIfItWokeTheRequester) {
  world.model.apply(Woken{world.tick(), p1, p4, {}, false});
  EXPECT_EQ(world.confidence(p3, r1), 20);
  EXPECT_EQ(world.confidence(p4, r2), 20);
}

TEST(Levels, BelowALoneProviderItsOwnProvidersTakeTurns) {
  World world(figure(Feedback::wait));
  world.enroll(1, 5);
  world.provides(p3, r1);
  world.provides(p4, r2);
  world.provides(p5, r2);
  world.blocks(p3, {r2});
  world.blocks(p1, {r1});
  EXPECT_EQ(world.favour(p1), p4);
  EXPECT_TRUE(world.model.has_choice(p1, world.path[p1]));
  world.uses_quantum(p1);
  EXPECT_EQ(world.favour(p1), p5);
  world.uses_quantum(p1);
  EXPECT_EQ(world.favour(p1), p4);
  world.wakes(p3, p5, r2);
  EXPECT_EQ(world.confidence(p4, r2), 19);
  EXPECT_EQ(world.confidence(p5, r2), 21);
  world.wakes(p1, p3, r1);
  EXPECT_EQ(world.confidence(p3, r1), 21);
}

}  // namespace
}  // namespace swapd::test
