// A boost that rests: its thread has its own attributes until the time that the boost names (decide/budget.h says
// when).
#include "fixture.h"

namespace swapd::actuate {
namespace {

using std::chrono::milliseconds;

class RestTest : public ActuatorTest {
 protected:
  RestTest() {
    clock_.advance(std::chrono::hours(1));
    start(options());
    scheduler_.add(10, nice_of(0));
  }
  Boost at_ceiling(const SchedAttr& attr_, Duration for_) {
    Boost one = boost(10, attr_);
    one.ceiling_until = clock_.now() + for_;
    return one;
  }
  Boost at_quota(const SchedAttr& attr_, Duration for_) {
    Boost one = boost(10, attr_);
    one.quota_until = clock_.now() + for_;
    return one;
  }
};

TEST_F(RestTest, AtTheCeilingTheThreadHasItsOwnUntilTheWindowEnds) {
  apply({boost(10, fifo(10))});
  EXPECT_EQ(attr(10), lent(fifo(10)));
  const Boost resting = at_ceiling(fifo(10), milliseconds(40));
  apply({resting});
  EXPECT_EQ(attr(10), nice_of(0));
  EXPECT_EQ(actuator().active(id(10))->reason, Ineffective::ceiling);
  EXPECT_FALSE(actuator().active(id(10))->in_force);
  clock_.advance(milliseconds(40));
  apply({boost(10, fifo(10))});
  EXPECT_EQ(attr(10), lent(fifo(10)));
  EXPECT_EQ(actuator().total(), 1U);
  EXPECT_EQ(heard(), (Heard{{What::begun, Ineffective::none},
                            {What::ineffective, Ineffective::ceiling},
                            {What::changed, Ineffective::none}}));
}

TEST_F(RestTest, ABoostMayBeginWithARest) {
  apply({at_ceiling(fifo(20), milliseconds(40))});
  EXPECT_EQ(attr(10), nice_of(0));
  EXPECT_EQ(heard(), (Heard{{What::ineffective, Ineffective::ceiling}}));
}

// Nice values share the CPU by themselves.
TEST_F(RestTest, OnlyRealTimeBoostsRestAtTheCeiling) {
  apply({at_ceiling(nice_of(-10), milliseconds(40))});
  EXPECT_EQ(attr(10), lent(nice_of(-10)));
}

TEST_F(RestTest, ANiceValueInsteadNeedNotWait) {
  apply({boost(10, fifo(10))});
  apply({at_ceiling(fifo(10), milliseconds(40))});
  EXPECT_EQ(attr(10), nice_of(0));
  apply({at_ceiling(nice_of(-10), milliseconds(40))});
  EXPECT_EQ(attr(10), lent(nice_of(-10)));
}

TEST_F(RestTest, AtTheQuotaEveryBoostRests) {
  apply({boost(10, nice_of(-10))});
  apply({at_quota(nice_of(-10), milliseconds(40))});
  EXPECT_EQ(attr(10), nice_of(0));
  EXPECT_EQ(actuator().active(id(10))->reason, Ineffective::quota);
}

TEST_F(RestTest, TheCeilingIsNamedBeforeTheQuota) {
  Boost both = at_quota(fifo(5), milliseconds(40));
  both.ceiling_until = clock_.now() + milliseconds(10);
  apply({both});
  EXPECT_EQ(actuator().active(id(10))->reason, Ineffective::ceiling);
}

TEST_F(RestTest, ARestWhoseTimeIsOverIsNone) {
  const Boost resting = at_ceiling(fifo(10), milliseconds(40));
  clock_.advance(milliseconds(40));
  apply({resting});
  EXPECT_EQ(attr(10), lent(fifo(10)));
}

TEST_F(RestTest, TheEndOfASuspendedBoostTouchesNothing) {
  apply({boost(10, fifo(10))});
  apply({at_ceiling(fifo(10), milliseconds(40))});
  scheduler_.add(10, nice_of(4));
  apply({});
  EXPECT_EQ(attr(10), nice_of(4));
}

TEST_F(RestTest, AReniceInTheMeantimeIsTheBase) {
  apply({boost(10, fifo(10))});
  apply({at_ceiling(fifo(10), milliseconds(40))});
  scheduler_.add(10, nice_of(4));
  clock_.advance(milliseconds(200));
  apply({boost(10, fifo(10))});
  apply({});
  EXPECT_EQ(attr(10), nice_of(4));
}

}  // namespace
}  // namespace swapd::actuate
