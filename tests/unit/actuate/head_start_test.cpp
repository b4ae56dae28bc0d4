// A newborn that is lent a nice value is real-time for a moment, so that it has the CPU when the moment is over.
#include "actuate/head_start.h"

#include "fixture.h"
#include "sys/procfs/ticks.h"

namespace swapd::actuate {
namespace {

using testing::ElementsAre;

class HeadStart : public ActuatorTest {
 protected:
  HeadStart() { scheduler_.add(10, nice_of(0)); }
  Actuator::Options for_newborns() {
    Actuator::Options chosen = options();
    chosen.newborn = [](ThreadId thread) { return thread.tid == 10 || thread.tid == 12; };
    chosen.rest = [this](Duration time) {
      EXPECT_EQ(time, head_start_time);
      ++rests_;
      if (meanwhile_) meanwhile_();
    };
    return chosen;
  }
  int rests_ = 0;
  std::function<void()> meanwhile_;
};

TEST_F(HeadStart, IsForNewborns) {
  start(for_newborns());
  scheduler_.add(11, nice_of(0));
  apply({boost(10, nice_of(-10)), boost(11, nice_of(-10))});
  EXPECT_THAT(scheduler_.given, ElementsAre(head_start(), lent(nice_of(-10)), lent(nice_of(-10))));
  EXPECT_EQ(heard(), (Heard{{What::begun, Ineffective::none}, {What::begun, Ineffective::none}}));
  EXPECT_EQ(actuator().total(), 2U);
  EXPECT_EQ(actuator().base(id(10)), nice_of(0));
  apply({});
  EXPECT_EQ(attr(10), nice_of(0));
}

TEST_F(HeadStart, IsGivenOnce) {
  start(for_newborns());
  apply({boost(10, nice_of(-10))});
  apply({boost(10, nice_of(-5))});
  apply({});
  apply({boost(10, nice_of(-5))});
  EXPECT_THAT(scheduler_.given,
              ElementsAre(head_start(), lent(nice_of(-10)), lent(nice_of(-5)), nice_of(0), lent(nice_of(-5))));
}

TEST_F(HeadStart, IsOneRestForAllAndNobodyWaitsForIt) {
  start(for_newborns());
  scheduler_.add(12, nice_of(0));
  scheduler_.add(13, nice_of(0));
  meanwhile_ = [&] { EXPECT_EQ(attr(13), lent(fifo(40))); };
  apply({boost(10, nice_of(-10)), boost(12, nice_of(-10)), boost(13, fifo(40))});
  EXPECT_EQ(rests_, 1);
  for (const pid_t tid : {10, 12}) EXPECT_EQ(attr(tid), lent(nice_of(-10)));
}

// It runs then, and may be a daemon that renices itself.
TEST_F(HeadStart, WhatTheNewbornDoesMeanwhileIsItsOwn) {
  start(for_newborns());
  meanwhile_ = [&] { scheduler_.renice(10, 7); };
  apply({boost(10, nice_of(-10))});
  EXPECT_EQ(attr(10), lent(nice_of(-10)));
  apply({});
  EXPECT_EQ(attr(10), nice_of(7));
  scheduler_.add(12, nice_of(0));
  meanwhile_ = [&] { scheduler_.threads.at(12).attr = fifo(20); };
  apply({boost(12, nice_of(-10))});
  EXPECT_EQ(attr(12), fifo(20));
  apply({});
  EXPECT_EQ(attr(12), fifo(20));
}

TEST_F(HeadStart, OfAThreadThatHasGone) {
  start(for_newborns());
  meanwhile_ = [&] { scheduler_.threads.erase(10); };
  apply({boost(10, nice_of(-10))});
  actuator().forget(id(10));
  EXPECT_TRUE(actuator().active().empty());
}

TEST_F(HeadStart, ThatIsRefusedIsDoneWithout) {
  start(for_newborns());
  scheduler_.threads.at(10).realtime_error = EPERM;
  apply({boost(10, nice_of(-10))});
  EXPECT_EQ(attr(10), lent(nice_of(-10)));
  EXPECT_EQ(rests_, 0);
}

TEST_F(HeadStart, IsNothingForALoanThatIsRealTimeOrNotImportant) {
  for (const SchedAttr& loan : {fifo(1), nice_of(0)}) {
    start(for_newborns());
    scheduler_.threads.at(10).attr = nice_of(5);
    scheduler_.given.clear();
    apply({boost(10, loan)});
    EXPECT_THAT(scheduler_.given, testing::SizeIs(1));
  }
}

TEST_F(HeadStart, NeedsAPolicyThatAllowsRealTime) {
  Actuator::Options chosen = for_newborns();
  chosen.rules.realtime = false;
  start(chosen);
  apply({boost(10, nice_of(-10))});
  EXPECT_THAT(scheduler_.given, ElementsAre(lent(nice_of(-10))));
}

TEST_F(HeadStart, IsNothingInADryRun) {
  Actuator::Options chosen = for_newborns();
  chosen.dry_run = true;
  start(chosen);
  apply({boost(10, nice_of(-10))});
  EXPECT_EQ(scheduler_.sets, 0);
}

TEST(Newborn, IsWhoWasBornWithinTheLastTicks) {
  EXPECT_FALSE(newborn(1));
  EXPECT_FALSE(newborn(sys::ticks_since_boot() - 2));
  EXPECT_TRUE(newborn(sys::ticks_since_boot() + 100));
}

}  // namespace
}  // namespace swapd::actuate
