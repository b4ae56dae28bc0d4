// The threads that can run in place of a blocked one ([SWAP04 §4]: virtual runnable).
#include <gmock/gmock.h>

#include "unit/model/world.h"

namespace swapd::test {
namespace {

using model::Candidate;
using model::Feedback;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TEST(Candidates, ABlockedThreadWithoutARunnableProviderIsNotVirtualRunnable) {
  World world;
  world.enroll(1, 3);
  EXPECT_THAT(world.leaves(p1), IsEmpty());  // not blocked
  world.blocks(p1, {r1});
  EXPECT_THAT(world.leaves(p1), IsEmpty());  // no provider
  world.provides(p1, r1);
  EXPECT_THAT(world.leaves(p1), IsEmpty());  // its own provider
  world.provides(p2, r1);
  world.blocks(p2, {});
  EXPECT_THAT(world.leaves(p1), IsEmpty());  // a provider asleep, nobody knows why
  world.blocks(p2, {r2});
  EXPECT_THAT(world.leaves(p1), IsEmpty());  // a provider that waits for nobody
  world.provides(p3, r2);
  EXPECT_THAT(world.leaves(p1), ElementsAre(p3));
  world.favour(p1);
  EXPECT_FALSE(world.model.has_choice(p1, world.path[p1]));
}

TEST(Candidates, ACascadeOfEightIsFollowedToItsEnd) {
  World world;
  world.enroll(0, 8);
  for (int i = 0; i < 8; ++i) {
    world.provides(thread(i + 1), resource(i));
    world.blocks(thread(i), {resource(i)});
  }
  const auto found = world.model.candidates(thread(0));
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].direct, thread(1));
  EXPECT_EQ(found[0].resource, resource(0));
  EXPECT_EQ(found[0].leaf, thread(8));
  EXPECT_THAT(found[0].path, SizeIs(8));
  EXPECT_EQ(found[0].path.front(), thread(1));
  EXPECT_EQ(found[0].path.back(), thread(8));
  EXPECT_DOUBLE_EQ(found[0].confidence, 20);
}

TEST(Candidates, IndirectConfidenceIsTheProductOverTheInnerK) {
  model::Settings settings;
  settings.kinds[static_cast<std::size_t>(ResourceKind::pipe)].base_confidence = 10;
  World world(settings);
  world.enroll(1, 4);
  const Resource pipe{ResourceKind::pipe, {7, 1}};
  world.provides(p2, r1);
  world.blocks(p2, {pipe});
  world.wakes(p2, p3, pipe);  // C(P2, P3, pipe) = 11 of K = 10
  world.blocks(p1, {r1});
  world.wakes(p1, p2, r1);  // C(P1, P2, R1) = 21 of K = 20
  world.blocks(p1, {r1});
  world.blocks(p2, {pipe});
  EXPECT_DOUBLE_EQ(world.value(p1, p3), 21.0 * 11 / 10);
  EXPECT_DOUBLE_EQ(world.value(p2, p3), 11);
}

TEST(Candidates, CyclesAreCut) {
  World world;
  world.enroll(1, 4);
  world.provides(p2, r1);
  world.provides(p1, r2);
  world.blocks(p1, {r1});
  world.blocks(p2, {r2});
  EXPECT_THAT(world.leaves(p1), IsEmpty());  // they wait for each other
  // Out of the cycle there is a way through P3, whichever of the two asks.
  world.provides(p3, r2);
  EXPECT_THAT(world.leaves(p1), ElementsAre(p3));
  EXPECT_THAT(world.leaves(p2), ElementsAre(p3));
  EXPECT_THAT(world.model.candidates(p1)[0].path, ElementsAre(p2, p3));
  EXPECT_THAT(world.model.candidates(p2)[0].path, ElementsAre(p3));
  world.blocks(p3, {r1});
  EXPECT_THAT(world.leaves(p1), IsEmpty());
}

TEST(Candidates, AWayThroughACycleIsNotForgottenForTheSecondWhoTakesIt) {
  // P1 waits for P2 and P3, which wait for each other; P2 also waits for P4.
  World world;
  world.enroll(1, 4);
  world.provides(p2, r1);
  world.provides(p3, r1);
  world.provides(p3, r2);
  world.provides(p4, r2);
  world.provides(p2, r3);
  world.blocks(p1, {r1});
  world.blocks(p2, {r2});
  world.blocks(p3, {r3});
  // Through P2 directly, and through P3 and P2: both direct providers are virtual runnable.
  EXPECT_THAT(world.model.candidates(p1)[0].path, ElementsAre(p2, p4));
  world.favour(p1);
  EXPECT_TRUE(world.model.has_choice(p1, world.path[p1]));
}

TEST(Candidates, ALadderOfDiamondsIsNotExponential) {
  World world;
  constexpr int rungs = 100;
  world.enroll(0, 2 * rungs + 1);
  // Both threads of each rung wait for both of the next.
  world.blocks(thread(0), {resource(0)});
  for (int rung = 0; rung < rungs; ++rung) {
    for (const int side : {1, 2}) {
      world.provides(thread(2 * rung + side), resource(rung));
      world.blocks(thread(2 * rung + side), {resource(rung + 1)});
    }
  }
  world.provides(thread(2 * rungs + 1), resource(rungs));
  const auto found = world.model.candidates(thread(0));
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].leaf, thread(2 * rungs + 1));
  EXPECT_THAT(found[0].path, SizeIs(rungs + 1));
  world.favour(thread(0));
  EXPECT_TRUE(world.model.has_choice(thread(0), world.path[thread(0)]));
}

TEST(Candidates, AGraphBeyondReasonIsCutOff) {
  // Everybody waits for everybody: every way is a cycle. One runs.
  World world(all_kinds({.max_providers = 300}));
  constexpr int threads = 200;
  world.enroll(0, threads);
  for (int i = 0; i <= threads; ++i) world.provides(thread(i), r1);
  for (int i = 0; i < threads; ++i) world.blocks(thread(i), {r1});
  EXPECT_EQ(world.favour(thread(0)), thread(threads));
  EXPECT_THAT(world.leaves(thread(0)), ElementsAre(thread(threads)));
}

TEST(Candidates, AVeryLongChainIsCutOff) {
  World world;
  constexpr int threads = 5000;
  world.enroll(0, threads);
  for (int i = 0; i < threads; ++i) {
    world.provides(thread(i + 1), resource(i));
    world.blocks(thread(i), {resource(i)});
  }
  EXPECT_THAT(world.leaves(thread(0)), IsEmpty());
  EXPECT_THAT(world.leaves(thread(threads - 500)), ElementsAre(thread(threads)));
  EXPECT_EQ(world.model.wait_tree(thread(0)).size(), static_cast<std::size_t>(threads));
}

TEST(Candidates, OneForEachLeafByItsBestWay) {
  // P4 is at the end of two ways and on its own of a third.
  World world;
  world.enroll(1, 4);
  world.provides(p2, r1);
  world.provides(p3, r1);
  world.blocks(p2, {r2});
  world.wakes(p2, p4, r2);
  world.provides(p4, r3);
  world.blocks(p1, {r1});
  world.blocks(p2, {r2});
  world.blocks(p3, {r3});
  const auto found = world.model.candidates(p1);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].path, ElementsAre(p2, p4));
  EXPECT_DOUBLE_EQ(found[0].confidence, 21);
  world.favour(p1);
  EXPECT_TRUE(world.model.has_choice(p1, world.path[p1]));
}

TEST(Candidates, ColdStartGoesByEvidenceAndThenByAge) {
  World world;
  world.enroll(1, 6);
  world.provides(p6, r1, Evidence::holder);
  world.provides(p5, r1, Evidence::holder);
  world.provides(p4, r1, Evidence::owner);
  world.provides(p3, r1, Evidence::sent_to);
  world.provides(p2, r1, Evidence::accessed);
  world.blocks(p1, {r1});
  EXPECT_THAT(world.leaves(p1), ElementsAre(p2, p3, p4, p6, p5));
  // What is learnt later never makes the evidence worse.
  world.provides(p2, r1, Evidence::child);
  world.provides(p5, r1, Evidence::accessed);
  EXPECT_THAT(world.leaves(p1), ElementsAre(p5, p2, p3, p4, p6));
}

TEST(Candidates, AgeIsCountedOverAllAwaitedResources) {
  World world;
  world.enroll(1, 4);
  world.provides(p4, r2);
  world.provides(p2, r1);
  world.provides(p3, r2);
  world.blocks(p1, {r1, r2});
  EXPECT_THAT(world.leaves(p1), ElementsAre(p4, p2, p3));
}

TEST(Candidates, KindsThatDoNotCountGiveNone) {
  model::Settings settings;
  settings.kinds[static_cast<std::size_t>(ResourceKind::futex)].counts = false;
  World world(settings);
  world.enroll(1, 3);
  const Resource futex{ResourceKind::futex, {1, 2, 3, 0}};
  world.provides(p2, futex);
  world.provides(p3, r1);
  world.blocks(p1, {futex});
  EXPECT_THAT(world.leaves(p1), IsEmpty());
  EXPECT_THAT(world.model.unprovided(p1), IsEmpty());
  world.blocks(p1, {futex, r1});
  EXPECT_THAT(world.leaves(p1), ElementsAre(p3));
  EXPECT_THAT(world.model.thread(p1)->awaited, ElementsAre(futex, r1));
}

TEST(Candidates, UnderPaperFeedbackAProviderAtZeroIsNone) {
  World world(all_kinds({.base_confidence = 1, .feedback = Feedback::paper}));
  world.enroll(1, 3);
  world.provides(p2, r1);
  world.provides(p3, r1);
  world.blocks(p1, {r1});
  EXPECT_EQ(world.favour(p1), p2);
  world.uses_quantum(p1);
  EXPECT_THAT(world.leaves(p1), ElementsAre(p3));
  // One is left: it is neither consulted nor charged.
  world.favour(p1);
  world.uses_quantum(p1);
  EXPECT_THAT(world.leaves(p1), ElementsAre(p3));
  EXPECT_EQ(world.confidence(p3, r1), 1);
}

}  // namespace
}  // namespace swapd::test
