// Children that a boosted thread forks: the loan is not inherited, and neither is what reset-on-fork leaves behind.
#include "actuate/attributes.h"
#include "fixture.h"

namespace swapd::actuate {
namespace {

TEST_F(ActuatorTest, AChildOfABoostedThreadGetsWhatItsParentsOwnWouldHaveGiven) {
  scheduler_.add(10, nice_of(15));
  apply({boost(10, fifo(10))});
  scheduler_.add(20, nice_of(0));  // what sched_fork() leaves of FIFO with reset-on-fork
  actuator().adopt_child(id(20), id(10));
  EXPECT_EQ(attr(20), nice_of(15));
}

TEST_F(ActuatorTest, ALentNiceAboveZeroIsInheritedAndTakenBackToo) {
  scheduler_.add(10, nice_of(19));
  apply({boost(10, nice_of(4))});
  scheduler_.add(20, nice_of(4));
  actuator().adopt_child(id(20), id(10));
  EXPECT_EQ(attr(20), nice_of(19));
}

TEST_F(ActuatorTest, ARealTimeParentsChildIsRealTime) {
  scheduler_.add(10, fifo(5));
  apply({boost(10, fifo(40))});
  scheduler_.add(20, nice_of(0));
  actuator().adopt_child(id(20), id(10));
  EXPECT_EQ(attr(20), fifo(5));
}

TEST_F(ActuatorTest, NewsOfTheForkMayComeAfterTheDonation) {
  scheduler_.add(10, nice_of(15));
  apply({boost(10, fifo(10))});
  scheduler_.add(20, nice_of(0));
  scheduler_.add(30, nice_of(0));  // forked by 20 before anybody looked
  apply({});
  actuator().adopt_child(id(20), id(10));
  actuator().adopt_child(id(30), id(20));
  EXPECT_EQ(attr(20), nice_of(15));
  EXPECT_EQ(attr(30), nice_of(15));
}

TEST_F(ActuatorTest, AChildThatChoseForItselfIsLeftAlone) {
  scheduler_.add(10, nice_of(15));
  apply({boost(10, fifo(10))});
  scheduler_.add(20, nice_of(-3));
  scheduler_.add(21, nice_of(15));  // forked before the donation began
  actuator().adopt_child(id(20), id(10));
  actuator().adopt_child(id(21), id(10));
  actuator().adopt_child(id(22), id(10));  // gone already
  EXPECT_EQ(attr(20), nice_of(-3));
  EXPECT_EQ(attr(21), nice_of(15));
}

TEST_F(ActuatorTest, AChildForkedLongAfterTheDonationIsLeftAlone) {
  scheduler_.add(10, nice_of(15));
  apply({boost(10, fifo(10))});
  apply({});
  scheduler_.add(10, nice_of(0));  // reniced, then it forks
  scheduler_.add(20, nice_of(0));
  actuator().adopt_child(id(20), id(10));
  EXPECT_EQ(attr(20), nice_of(0));
}

TEST_F(ActuatorTest, AStrangersChildIsLeftAlone) {
  scheduler_.add(10, nice_of(15));
  scheduler_.add(20, nice_of(0));
  actuator().adopt_child(id(20), id(10));
  EXPECT_EQ(scheduler_.sets, 0);
}

TEST(Inherited, FollowsSchedFork) {
  EXPECT_EQ(inherited(nice_of(-5)), nice_of(-5));
  EXPECT_EQ(inherited(lent(nice_of(-5))), nice_of(0));
  EXPECT_EQ(inherited(lent(nice_of(5))), nice_of(5));
  EXPECT_EQ(inherited(lent(fifo(5))), nice_of(0));
  EXPECT_EQ(inherited(fifo(5)), fifo(5));
}

TEST(WeightOfNice, IsTheKernelsTable) {
  EXPECT_EQ(weight_of_nice(0), 1024U);
  EXPECT_EQ(weight_of_nice(-20), 88761U);
  EXPECT_EQ(weight_of_nice(-10), 9548U);
  EXPECT_EQ(weight_of_nice(19), 15U);
  EXPECT_EQ(weight_of_nice(40), 15U);
}

}  // namespace
}  // namespace swapd::actuate
