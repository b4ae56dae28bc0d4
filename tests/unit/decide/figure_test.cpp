// The scheduling example of [SWAP04 §4], step by step: P1 waits for R1, which P2 and P3 may provide; P3 waits for R2,
// which P4 and P5 may provide. P4 needs 40 ms for R2, P3 then 20 ms for R1. K = 20, T = 100 ms.
#include <gmock/gmock.h>

#include "unit/model/world.h"

namespace swapd::test {
namespace {

using decide::Donation;
using model::Feedback;
using testing::ElementsAre;

class Figure : public testing::TestWithParam<Feedback> {
 protected:
  Figure() {
    world.enroll(p1, fifo(50));
    world.enroll(2, 5);
    world.provides(p2, r1);
    world.provides(p3, r1);
    world.provides(p4, r2);
    world.provides(p5, r2);
    world.blocks(p3, {r2});
    world.blocks(p1, {r1});
  }
  // The one donation of P1; P3 asks for itself too, but at its own priority, which lifts nobody.
  Donation decide() {
    const auto all = decider.decide(world, {p3, p1});
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? Donation{} : all.front();
  }
  World world{figure(GetParam())};
  Chooser decider;
};
INSTANTIATE_TEST_SUITE_P(Both, Figure, testing::Values(Feedback::paper, Feedback::wait),
                         [](const auto& one) { return one.param == Feedback::wait ? "wait" : "paper"; });

TEST_P(Figure, StepByStep) {
  const bool paper = GetParam() == Feedback::paper;

  // Step 1. P2, P4 and P5 can run for P1, and all have 20: the first is P2.
  EXPECT_THAT(world.leaves(p1), ElementsAre(p2, p4, p5));
  for (const ThreadId leaf : {p2, p4, p5}) EXPECT_DOUBLE_EQ(world.value(p1, leaf), 20);
  Donation donation = decide();
  EXPECT_EQ(donation.requester, p1);
  EXPECT_THAT(donation.path, ElementsAre(p2));
  EXPECT_EQ(donation.resource, r1);
  EXPECT_TRUE(donation.choice);
  EXPECT_EQ(donation.quantum, milliseconds(100));
  EXPECT_EQ(donation.attr.policy, SchedPolicy::fifo);
  EXPECT_EQ(donation.attr.rt_priority, 49);

  // It keeps the processor for its whole quantum.
  EXPECT_EQ(decide(), donation);

  // 100 ms have gone, and P1 still waits: C(P1, P2, R1) is 19 and P4 the first of the best.
  world.uses_quantum(p1);
  EXPECT_DOUBLE_EQ(world.value(p1, p2), 19);
  EXPECT_EQ(world.confidence(p2, r1), paper ? 19 : 20);
  donation = decide();
  EXPECT_THAT(donation.path, ElementsAre(p3, p4));

  // Step 2. After 40 ms P4 provides R2: P3 wakes, and its 20 are more than P2's 19.
  world.wakes(p3, p4, r2);
  EXPECT_EQ(world.confidence(p4, r2), 21);
  EXPECT_THAT(world.leaves(p1), ElementsAre(p3, p2));
  donation = decider.decide(world, {p1}).at(0);
  EXPECT_THAT(donation.path, ElementsAre(p3));

  // Step 3. After 20 ms more P3 provides R1, and P1 runs.
  world.wakes(p1, p3, r1);
  EXPECT_TRUE(decider.decide(world, {p1}).empty());
  EXPECT_EQ(world.confidence(p3, r1), 21);
  EXPECT_EQ(world.confidence(p2, r1), 19);
}

TEST_P(Figure, NextTimeP3AndP4ComeFirst) {
  (void)decide();
  world.uses_quantum(p1);
  world.wakes(p3, p4, r2);
  world.wakes(p1, p3, r1);
  world.blocks(p3, {r2});
  world.blocks(p1, {r1});
  EXPECT_THAT(decide().path, ElementsAre(p3, p4));
  EXPECT_DOUBLE_EQ(world.value(p1, p4), 21.0 * 21 / 20);
}

TEST_P(Figure, AThreadThatBecomesRunnableBeatsALowerOneInMidQuantum) {
  // Without P4 and P5, P3 is no candidate while it waits. P6 takes P2's first place.
  const ThreadId p6 = thread(6);
  world.enroll(6, 6);
  world.provides(p6, r1);
  world.exits(p4);
  world.exits(p5);
  EXPECT_THAT(decider.decide(world, {p1}).at(0).path, ElementsAre(p2));
  world.uses_quantum(p1);
  EXPECT_THAT(decider.decide(world, {p1}).at(0).path, ElementsAre(p6));
  world.uses_quantum(p1);
  EXPECT_THAT(decider.decide(world, {p1}).at(0).path, ElementsAre(p2));
  world.wakes(p3, p6, r2);
  EXPECT_THAT(decider.decide(world, {p1}).at(0).path, ElementsAre(p3));
}

}  // namespace
}  // namespace swapd::test
