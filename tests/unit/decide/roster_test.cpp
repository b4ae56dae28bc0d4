// The donation decider's knowledge of the managed threads.
#include "decide/donation/roster.h"

#include <gtest/gtest.h>

#include "unit/model/world.h"

namespace swapd::test {
namespace {

using decide::Roster;

class RosterTest : public testing::Test {
 protected:
  void enroll(ThreadId id, SchedAttr base = {}, std::uint32_t uid = 1000, ClassId class_id = 0,
              Weight weight = usual_weight) {
    roster.add(Enrolled{{}, id, id.tid, uid, base, class_id, weight});
  }
  Roster roster;
};

TEST_F(RosterTest, AThreadAboveTheLowestIsImportant) {
  enroll(p1, nice(-5));
  EXPECT_FALSE(roster.is_important(p1)) << "alone it has nothing to donate to";
  enroll(p2, nice(0));
  EXPECT_TRUE(roster.is_important(p1));
  EXPECT_FALSE(roster.is_important(p2));
}

TEST_F(RosterTest, TheLowestRankGoesWithItsLastThread) {
  enroll(p1, nice(0));
  enroll(p2, nice(10));
  enroll(p3, nice(10));
  roster.remove(p2);
  EXPECT_TRUE(roster.is_important(p1));
  roster.remove(p3);
  EXPECT_FALSE(roster.is_important(p1));
}

TEST_F(RosterTest, ASecondEnrolmentIsAnUpdate) {
  enroll(p1, nice(0));
  enroll(p2, nice(0));
  enroll(p1, fifo(10), 1001, 3);
  EXPECT_TRUE(roster.is_important(p1));
  EXPECT_EQ(roster.find(p1)->class_id, 3);
  EXPECT_EQ(roster.users(), 2U);
  EXPECT_EQ(roster.threads().size(), 2U);
}

TEST_F(RosterTest, TheLowestWeightIsThatOfTheLightestGroup) {
  EXPECT_EQ(roster.lowest_weight(), usual_weight);
  enroll(p1, {}, 1000, 0, 1000);
  enroll(p2, {}, 1000, 0, 300);
  EXPECT_EQ(roster.lowest_weight(), 300U);
  enroll(p2, {}, 1000, 0, 2000);
  EXPECT_EQ(roster.lowest_weight(), 1000U);
  EXPECT_EQ(roster.find(p2)->weight, 2000U);
}

TEST_F(RosterTest, UsersAreCountedWhileTheyHaveAThread) {
  enroll(p1, {}, 1000);
  enroll(p2, {}, 1001);
  enroll(p3, {}, 1001);
  EXPECT_EQ(roster.users(), 2U);
  roster.remove(p2);
  EXPECT_EQ(roster.users(), 2U);
  roster.remove(p3);
  EXPECT_EQ(roster.users(), 1U);
}

TEST_F(RosterTest, OfAnUnknownThreadNothingIsKnown) {
  EXPECT_EQ(roster.find(p1), nullptr);
  EXPECT_FALSE(roster.is_important(p1));
  roster.remove(p1);
  EXPECT_EQ(roster.lowest_rank(), 0);
}

}  // namespace
}  // namespace swapd::test
