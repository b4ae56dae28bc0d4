// A lent real-time thread goes behind its equals: one step down, and up again.
#include "fixture.h"

namespace swapd::actuate {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;

class GiveWay : public ActuatorTest {
 protected:
  GiveWay() { scheduler_.add(10, nice_of(5)); }
  // And forgets what it took.
  void lend(const SchedAttr& attr) {
    apply({boost(10, attr)});
    scheduler_.given.clear();
  }
};

TEST_F(GiveWay, IsAStepDownAndUpAgain) {
  lend(fifo(40));
  EXPECT_TRUE(actuator().give_way(id(10)));
  EXPECT_THAT(scheduler_.given, ElementsAre(Field(&SchedAttr::rt_priority, 39), Field(&SchedAttr::rt_priority, 40)));
}

TEST_F(GiveWay, NeedsARealTimeDonationWithRoomBelow) {
  EXPECT_FALSE(actuator().give_way(id(10)));
  for (const SchedAttr& attr : {nice_of(-10), fifo(1)}) {
    lend(attr);
    EXPECT_FALSE(actuator().give_way(id(10)));
    EXPECT_THAT(scheduler_.given, IsEmpty());
  }
}

TEST_F(GiveWay, TouchesNothingThatSomebodyElseHasSet) {
  lend(fifo(40));
  scheduler_.threads.at(10).attr = fifo(70);
  EXPECT_FALSE(actuator().give_way(id(10)));
  EXPECT_EQ(attr(10), fifo(70));
}

TEST_F(GiveWay, CutShortItIsStillOurs) {
  lend(fifo(40));
  scheduler_.threads.at(10).attr = lent(fifo(39));
  apply({});
  EXPECT_EQ(attr(10), nice_of(5));
}

}  // namespace
}  // namespace swapd::actuate
