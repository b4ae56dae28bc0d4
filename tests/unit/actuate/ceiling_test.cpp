// The policy's ceiling: at most a share of a CPU in a window is lent to one provider.
#include "fixture.h"

namespace swapd::actuate {
namespace {

using std::chrono::milliseconds;

class CeilingTest : public ActuatorTest {
 protected:
  CeilingTest() {
    auto limited = options();
    limited.rules.ceiling_share = 0.5;
    limited.rules.ceiling_window = milliseconds(100);
    clock_.advance(std::chrono::hours(1));
    start(limited);
    scheduler_.add(10, nice_of(0));
  }
};

TEST_F(CeilingTest, AboveTheShareTheBoostIsSuspendedUntilTheWindowMovesOn) {
  apply({boost(10, fifo(10))});
  const Time began = clock_.now();
  clock_.advance(milliseconds(30));
  actuator().charge(id(10), milliseconds(30), clock_.now());
  EXPECT_EQ(actuator().next_resume(), std::nullopt);
  EXPECT_EQ(attr(10), lent(fifo(10)));
  clock_.advance(milliseconds(60));
  actuator().charge(id(10), milliseconds(30), clock_.now());
  EXPECT_EQ(attr(10), nice_of(0));
  EXPECT_EQ(actuator().active(id(10))->reason, Ineffective::ceiling);
  EXPECT_EQ(actuator().next_resume(), began + milliseconds(100));
  apply({boost(10, fifo(10))});
  EXPECT_EQ(attr(10), nice_of(0));
  clock_.set(began + milliseconds(100));
  apply({boost(10, fifo(10))});
  EXPECT_EQ(attr(10), lent(fifo(10)));
  EXPECT_EQ(actuator().total(), 1U);
  EXPECT_EQ(heard(), (Heard{{What::begun, Ineffective::none},
                            {What::ineffective, Ineffective::ceiling},
                            {What::changed, Ineffective::none}}));
}

TEST_F(CeilingTest, IsThatOfTheWaitersClass) {
  Rules rules{.ceiling_share = 1};
  rules.classes = {{.ceiling_share = 0.5}};
  actuator().set_rules(rules);
  Boost with = boost(10, fifo(10));
  with.requester_class = 1;
  apply({boost(10, fifo(10))});
  EXPECT_EQ(actuator().charge(id(10), milliseconds(60), clock_.now()), std::nullopt);
  EXPECT_EQ(attr(10), lent(fifo(10))) << "no limit";
  apply({with});
  EXPECT_EQ(actuator().charge(id(10), milliseconds(20), clock_.now()), milliseconds(30));
  EXPECT_EQ(actuator().charge(id(10), milliseconds(40), clock_.now()), std::nullopt);
  EXPECT_EQ(attr(10), nice_of(0)) << "it rests";
}

TEST_F(CeilingTest, TellsHowMuchIsLeft) {
  apply({boost(10, fifo(10))});
  EXPECT_EQ(actuator().charge(id(10), milliseconds(30), clock_.now()), milliseconds(20));
  clock_.advance(milliseconds(19));
  EXPECT_EQ(actuator().charge(id(10), milliseconds(19), clock_.now()), milliseconds(1));
  clock_.advance(milliseconds(1));
  EXPECT_EQ(actuator().charge(id(10), milliseconds(1), clock_.now()), std::nullopt);
  EXPECT_EQ(attr(10), nice_of(0));
}

// A loan that is over does not rest; the next one of the same waiter does.
TEST_F(CeilingTest, WhatALoanUsesToItsEndCountsForTheNext) {
  const Time began = clock_.now();
  apply({boost(10, fifo(10))});
  clock_.advance(milliseconds(60));
  actuator().charge_last(id(10), milliseconds(60), clock_.now());
  EXPECT_EQ(attr(10), lent(fifo(10)));
  apply({});
  apply({boost(10, fifo(10))});
  EXPECT_EQ(attr(10), nice_of(0));
  EXPECT_EQ(actuator().next_resume(), began + milliseconds(100));
}

// 30 ms of CPU cannot have been used in less time: what is told of late has begun then.
TEST_F(CeilingTest, AWindowBeginsWithWhatIsCharged) {
  const Time began = clock_.now();
  apply({boost(10, fifo(10))});
  clock_.advance(milliseconds(30));
  actuator().charge(id(10), milliseconds(30), clock_.now());
  clock_.advance(milliseconds(20));
  actuator().charge(id(10), milliseconds(20), clock_.now());
  EXPECT_EQ(actuator().next_resume(), began + milliseconds(100));
  clock_.set(began + milliseconds(100));
  apply({boost(10, fifo(10))});
  clock_.advance(milliseconds(10));
  EXPECT_EQ(actuator().charge(id(10), milliseconds(10), clock_.now()), milliseconds(40));
}

// Nice values share the CPU by themselves.
TEST_F(CeilingTest, OnlyRealTimeDonationsRest) {
  apply({boost(10, nice_of(-10))});
  EXPECT_EQ(actuator().charge(id(10), milliseconds(90), clock_.now()), std::nullopt);
  EXPECT_EQ(attr(10), lent(nice_of(-10)));
  EXPECT_EQ(actuator().next_resume(), std::nullopt);
}

TEST_F(CeilingTest, ANiceValueInsteadNeedNotWait) {
  apply({boost(10, fifo(10))});
  actuator().charge(id(10), milliseconds(60), clock_.now());
  EXPECT_EQ(attr(10), nice_of(0));
  apply({boost(10, nice_of(-10))});
  EXPECT_EQ(attr(10), lent(nice_of(-10)));
}

// All that one waiter's providers use: where they take turns, the CPU is as busy.
TEST_F(CeilingTest, ProvidersOfOneWaiterShareIt) {
  scheduler_.add(11, nice_of(0));
  apply({boost(10, fifo(10))});
  actuator().charge(id(10), milliseconds(40), clock_.now());
  apply({boost(11, fifo(10))});
  EXPECT_EQ(attr(11), lent(fifo(10)));
  EXPECT_EQ(actuator().charge(id(11), milliseconds(10), clock_.now()), std::nullopt);
  EXPECT_EQ(attr(11), nice_of(0));
}

TEST_F(CeilingTest, ANewDonationInTheSameWindowIsNotAFreshStart) {
  apply({boost(10, fifo(10))});
  actuator().charge(id(10), milliseconds(60), clock_.now());
  apply({});
  (void)heard();
  apply({boost(10, fifo(20))});
  EXPECT_EQ(attr(10), nice_of(0));
  EXPECT_EQ(heard(), (Heard{{What::ineffective, Ineffective::ceiling}}));
}

TEST_F(CeilingTest, TheEndOfASuspendedBoostTouchesNothing) {
  apply({boost(10, fifo(10))});
  actuator().charge(id(10), milliseconds(60), clock_.now());
  scheduler_.add(10, nice_of(4));
  apply({});
  EXPECT_EQ(attr(10), nice_of(4));
}

TEST_F(CeilingTest, LiftedByTheRules) {
  apply({boost(10, fifo(10))});
  actuator().charge(id(10), milliseconds(60), clock_.now());
  actuator().set_rules({});
  apply({boost(10, fifo(10))});
  EXPECT_EQ(attr(10), lent(fifo(10)));
}

TEST_F(CeilingTest, AReniceInTheMeantimeIsTheBase) {
  apply({boost(10, fifo(10))});
  actuator().charge(id(10), milliseconds(60), clock_.now());
  scheduler_.add(10, nice_of(4));
  clock_.advance(milliseconds(200));
  apply({boost(10, fifo(10))});
  apply({});
  EXPECT_EQ(attr(10), nice_of(4));
}

}  // namespace
}  // namespace swapd::actuate
