// Confidences that one model has learnt, restored by the next.
#include "model/saved_confidence.h"

#include <gmock/gmock.h>

#include "unit/model/world.h"

namespace swapd::test {
namespace {

using model::Feedback;
using model::SavedConfidence;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// P1 has waited for R1 once: P2 was tried in vain, P3 provided.
class AfterAWait : public testing::Test {
 protected:
  AfterAWait() {
    before.enroll(1, 3);
    before.provides(p2, r1);
    before.provides(p3, r1);
    before.provides(p3, r2);
    before.blocks(p1, {r1});
    EXPECT_EQ(before.favour(p1), p2);
    before.uses_quantum(p1);
    EXPECT_EQ(before.favour(p1), p3);
    before.wakes(p1, p3, r1);
  }
  World before{figure(Feedback::wait)};
};

TEST_F(AfterAWait, WhatIsAtKNeedNotBeKept) {
  EXPECT_THAT(before.model.learnt(10), ElementsAre(SavedConfidence{p3, r1, +1}, SavedConfidence{p2, r1, -1}));
  EXPECT_THAT(before.model.learnt(1), SizeIs(1));
  EXPECT_THAT(World(figure(Feedback::wait)).model.learnt(10), IsEmpty());
}

TEST_F(AfterAWait, TheNextModelFavoursTheRightOneAtOnce) {
  World after(figure(Feedback::wait));
  after.enroll(1, 3);
  after.model.restore_confidences(before.model.learnt(10));
  EXPECT_EQ(after.confidence(p3, r1), 21);
  EXPECT_EQ(after.confidence(p2, r1), 19);
  after.blocks(p1, {r1});
  EXPECT_EQ(after.favour(p1), p3);
  EXPECT_EQ(after.model.learnt(10), before.model.learnt(10));
}

TEST_F(AfterAWait, WhoIsKnownAlreadyKeepsItsPlaceOnly) {
  World after(figure(Feedback::wait));
  after.enroll(1, 3);
  after.provides(p3, r1, Evidence::holder);
  after.model.restore_confidences(before.model.learnt(10));
  EXPECT_EQ(after.confidence(p3, r1), 21);
  EXPECT_THAT(after.model.providers(r1, {}), SizeIs(2));
}

TEST_F(AfterAWait, WhoHasEndedIsForgotten) {
  World after(figure(Feedback::wait));
  after.enroll(1, 2);
  after.enroll({p3.tid, p3.start_time + 1});  // its tid, used again
  after.model.restore_confidences(before.model.learnt(10));
  EXPECT_EQ(after.confidence(p3, r1), -1);
  EXPECT_EQ(after.confidence(p2, r1), 19);
}

TEST_F(AfterAWait, WithAnotherKTheLeadCounts) {
  World after(all_kinds({.base_confidence = 5}));
  after.enroll(1, 3);
  after.model.restore_confidences(before.model.learnt(10));
  EXPECT_EQ(after.confidence(p3, r1), 6);
  EXPECT_EQ(after.confidence(p2, r1), 4);
}

// It comes from a file.
TEST(Recall, KeepsConfidencesWithinTheirBounds) {
  World world(figure(Feedback::wait));
  world.enroll(1, 3);
  world.model.restore_confidences(std::vector{SavedConfidence{p2, r1, 1'000'000}, SavedConfidence{p3, r1, INT32_MIN},
                                              SavedConfidence{p3, r1, 0}, SavedConfidence{{}, r2, 1}});
  EXPECT_EQ(world.confidence(p2, r1), 40);
  EXPECT_EQ(world.confidence(p3, r1), 0);
  EXPECT_THAT(world.model.providers(r2, {}), IsEmpty());
}

}  // namespace
}  // namespace swapd::test
