// If a real-time priority would do harm or is refused, the boost is the second best.
#include "fixture.h"

namespace swapd::actuate {
namespace {

class SecondBestTest : public ActuatorTest {
 protected:
  static Boost boost(pid_t tid, const SchedAttr& best = fifo(49)) {
    Boost asked = ActuatorTest::boost(tid, best);
    asked.second_best = lent(nice_of(-20));
    return asked;
  }
  Ineffective limited(pid_t tid) { return actuator().active(id(tid)).value_or(Actuator::Active{}).limited; }
};

TEST_F(SecondBestTest, ThreadWhoseProcessLimitsItsRealTimeIsLentANiceValue) {
  scheduler_.add(10, nice_of(5)).rttime = true;
  scheduler_.add(11, nice_of(5));
  apply({boost(10), boost(11)});
  EXPECT_EQ(attr(10), lent(nice_of(-20)));
  EXPECT_EQ(attr(11).rt_priority, 49);
  EXPECT_EQ(limited(10), Ineffective::rttime);
  EXPECT_EQ(actuator().active(id(10))->reason, Ineffective::none) << "it helps";
  EXPECT_EQ(actuator().active(id(10))->lent, lent(nice_of(-20)));
  EXPECT_EQ(limited(11), Ineffective::none);
  EXPECT_THAT(heard(), testing::Each(testing::Pair(What::begun, Ineffective::none)));
  apply({});
  EXPECT_EQ(attr(10), nice_of(5));
  for (const SchedAttr& given : scheduler_.given) EXPECT_LE(given.rt_priority, 49);
}

TEST_F(SecondBestTest, NothingIsLentWhereThereIsNoSecondBestAndThatIsSaidOnce) {
  scheduler_.add(10, nice_of(-20)).rttime = true;
  scheduler_.add(11, nice_of(0)).rttime = true;
  for (int i = 0; i < 200; ++i) {
    apply({boost(10), ActuatorTest::boost(11, fifo(49))});
    clock_.advance(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(scheduler_.sets, 0);
  for (const pid_t tid : {10, 11}) EXPECT_EQ(actuator().active(id(tid))->reason, Ineffective::rttime);
  EXPECT_EQ(heard(), (Heard{{What::ineffective, Ineffective::rttime}, {What::ineffective, Ineffective::rttime}}));
}

TEST_F(SecondBestTest, ThreadThatIsRealTimeOfItsOwnIsLentAsEver) {
  SchedAttr own = fifo(20);
  own.policy = SchedPolicy::rr;
  own.reset_on_fork = true;
  scheduler_.add(10, own).rttime = true;
  apply({boost(10)});
  EXPECT_EQ(attr(10), lent(fifo(49)));
  EXPECT_EQ(limited(10), Ineffective::none);
  apply({});
  EXPECT_EQ(attr(10), own);
}

TEST_F(SecondBestTest, LimitThatComesAndGoesIsHeededAtTheNextAudit) {
  auto& thread = scheduler_.add(10, nice_of(0));
  apply({boost(10)});
  EXPECT_EQ(attr(10), lent(fifo(49)));
  heard();
  thread.rttime = true;
  clock_.advance(std::chrono::milliseconds(20));
  apply({boost(10)});
  EXPECT_EQ(attr(10), lent(nice_of(-20)));
  EXPECT_EQ(heard(), (Heard{{What::ineffective, Ineffective::rttime}}));
  thread.rttime = false;
  clock_.advance(std::chrono::milliseconds(20));
  apply({boost(10)});
  EXPECT_EQ(attr(10), lent(fifo(49)));
  apply({});
  EXPECT_EQ(attr(10), nice_of(0)) << "what was lent in between is not its own";
}

TEST_F(SecondBestTest, NewbornWithThatLimitHasNoHeadStart) {
  auto chosen = options();
  chosen.newborn = [](ThreadId) { return true; };
  chosen.rest = [](Duration) {};
  start(std::move(chosen));
  scheduler_.add(10, nice_of(0)).rttime = true;
  apply({ActuatorTest::boost(10, nice_of(-5))});
  EXPECT_EQ(attr(10), lent(nice_of(-5)));
  EXPECT_EQ(scheduler_.sets, 1);
}

TEST_F(SecondBestTest, KernelThatRefusesRealTimeIsAskedAgainAfterASecond) {
  auto& thread = scheduler_.add(10, nice_of(3));
  thread.realtime_error = EPERM;
  apply({boost(10)});
  EXPECT_EQ(attr(10), lent(nice_of(-20)));
  EXPECT_EQ(limited(10), Ineffective::rt_refused);
  const int sets = scheduler_.sets;
  for (int i = 0; i < 45; ++i) {
    clock_.advance(std::chrono::milliseconds(20));
    apply({boost(10)});
  }
  EXPECT_EQ(scheduler_.sets, sets) << "not before";
  clock_.advance(std::chrono::milliseconds(100));
  apply({boost(10)});
  EXPECT_EQ(scheduler_.sets, sets + 1);
  EXPECT_EQ(attr(10), lent(nice_of(-20)));
  thread.realtime_error = 0;
  clock_.advance(std::chrono::milliseconds(1000));
  apply({boost(10)});
  EXPECT_EQ(attr(10), lent(fifo(49)));
  EXPECT_EQ(limited(10), Ineffective::none);
  apply({});
  EXPECT_EQ(attr(10), nice_of(3));
}

TEST_F(SecondBestTest, NiceBoostUsesTheGroupAsAnyOther) {
  groups_.enabled = true;
  groups_.autogroup_of[10] = 100;
  auto& thread = scheduler_.add(10, nice_of(0));
  thread.rttime = true;
  apply({boost(10)});
  EXPECT_EQ(groups_.autogroup(10)->nice, -20);
  thread.rttime = false;
  clock_.advance(std::chrono::milliseconds(20));
  apply({boost(10)});
  EXPECT_EQ(groups_.autogroup(10)->nice, 0) << "a real-time thread needs none";
  apply({});
}

TEST_F(SecondBestTest, DonorThatAsksForItGetsItStepByStep) {
  scheduler_.add(10, nice_of(0));
  Boost asked = boost(10);
  apply({asked});
  EXPECT_EQ(attr(10), lent(fifo(49)));
  heard();
  asked.limited = Ineffective::no_progress;
  apply({asked});
  EXPECT_EQ(attr(10), lent(nice_of(-20)));
  asked.second_best.reset();
  apply({asked});
  EXPECT_EQ(attr(10), nice_of(0));
  EXPECT_EQ(actuator().active(id(10))->reason, Ineffective::no_progress);
  EXPECT_EQ(heard(),
            (Heard{{What::ineffective, Ineffective::no_progress}, {What::ineffective, Ineffective::no_progress}}));
  apply({boost(10)});
  EXPECT_EQ(attr(10), lent(fifo(49))) << "and all of it again";
  apply({});
  EXPECT_EQ(attr(10), nice_of(0));
}

TEST_F(SecondBestTest, DonorStepsANiceBoostDownToo) {
  scheduler_.add(10, nice_of(0));
  Boost asked = ActuatorTest::boost(10, nice_of(-10));
  asked.limited = Ineffective::no_progress;
  apply({asked});
  EXPECT_EQ(attr(10), nice_of(0));
  EXPECT_EQ(actuator().active(id(10))->reason, Ineffective::no_progress);
}

TEST_F(SecondBestTest, ReniceUnderALoanChangesTheOwnValueOnly) {
  scheduler_.add(10, nice_of(0)).rttime = true;
  apply({boost(10)});
  EXPECT_TRUE(actuator().set_base(id(10), nice_of(7)).ok());
  EXPECT_EQ(attr(10), lent(nice_of(-20))) << "and not what the requester would have lent otherwise";
  apply({});
  EXPECT_EQ(attr(10), nice_of(7));
}

TEST_F(SecondBestTest, ReniceBetweenTwoStepsIsKept) {
  scheduler_.add(10, nice_of(0));
  Boost asked = boost(10);
  apply({asked});
  scheduler_.renice(10, 4);
  asked.limited = Ineffective::no_progress;
  clock_.advance(std::chrono::milliseconds(1));
  apply({asked});
  EXPECT_EQ(attr(10), lent(nice_of(-20)));
  apply({});
  EXPECT_EQ(attr(10), nice_of(4));
}

TEST_F(SecondBestTest, DeadlineThreadIsNeverChanged) {
  const SchedAttr own{
      .policy = SchedPolicy::deadline, .runtime_ns = 1'000'000, .deadline_ns = 10'000'000, .period_ns = 10'000'000};
  scheduler_.add(10, own).rttime = true;
  for (const SchedAttr& best : {fifo(90), nice_of(-20)}) {
    apply({boost(10, best)});
    clock_.advance(std::chrono::milliseconds(20));
    apply({boost(10, best)});
  }
  apply({});
  EXPECT_EQ(scheduler_.sets, 0);
  EXPECT_EQ(attr(10), own);
  EXPECT_TRUE(heard().empty());
}

}  // namespace
}  // namespace swapd::actuate
