// I/O priorities of their own, laid aside while something is lent.
#include "actuate/io_priority.h"

#include "fixture.h"

namespace swapd::actuate {
namespace {

// ioprio_set(2): IOPRIO_PRIO_VALUE(class, level).
constexpr int idle = 3 << 13, best_effort_7 = 2 << 13 | 7, best_effort_0 = 2 << 13, realtime_0 = 1 << 13;

class IoPriorities : public ActuatorTest {
 protected:
  fakes::FakeScheduler::Thread& add(pid_t tid, int nice, int io_priority) {
    fakes::FakeScheduler::Thread& thread = scheduler_.add(tid, nice_of(nice));
    thread.io_priority = io_priority;
    return thread;
  }
  int io(pid_t tid) { return scheduler_.threads.at(tid).io_priority; }
};

TEST(IoPriority, IsRealTimeThenBestEffortThenIdle) {
  EXPECT_TRUE(worse(io_priority_of(idle), io_priority_of(best_effort_7)));
  EXPECT_TRUE(worse(io_priority_of(best_effort_7), io_priority_of(best_effort_0)));
  EXPECT_TRUE(worse(io_priority_of(best_effort_0), io_priority_of(realtime_0)));
  EXPECT_FALSE(worse(io_priority_of(idle), io_priority_of(idle | 5))) << "idle has no levels";
  EXPECT_FALSE(worse(io_priority_of(best_effort_0), io_priority_of(best_effort_0)));
}

TEST(IoPriority, WithoutOneOfItsOwnAThreadHasItsClasses) {
  EXPECT_EQ(io_priority_of(nice_of(0)), io_priority_of(2 << 13 | 4));
  EXPECT_EQ(io_priority_of(nice_of(-20)), io_priority_of(best_effort_0));
  EXPECT_EQ(io_priority_of(nice_of(19)), io_priority_of(best_effort_7));
  EXPECT_EQ(io_priority_of(fifo(50)).io_class, IoPriority::Class::realtime);
}

TEST_F(IoPriorities, AWorseOneIsLaidAsideAndGivenBack) {
  add(10, 19, idle);
  add(11, 19, best_effort_7);
  apply({boost(10, nice_of(-10)), boost(11, fifo(20))});
  EXPECT_EQ(io(10), 0);
  EXPECT_EQ(io(11), 0);
  apply({});
  EXPECT_EQ(io(10), idle);
  EXPECT_EQ(io(11), best_effort_7);
}

TEST_F(IoPriorities, ABetterOneIsLeftAlone) {
  add(10, 10, best_effort_0);
  add(11, 10, realtime_0);
  add(12, 10, 0);
  apply({boost(10, nice_of(-5)), boost(11, fifo(20)), boost(12, fifo(20))});
  EXPECT_EQ(io(10), best_effort_0);
  EXPECT_EQ(io(11), realtime_0);
  EXPECT_EQ(io(12), 0);
}

// Level 4 follows from nice 0, real-time from FIFO.
TEST_F(IoPriorities, WhereTheLoanChangesItIsWeighedAgain) {
  add(10, 19, best_effort_0);
  apply({boost(10, nice_of(0))});
  EXPECT_EQ(io(10), best_effort_0);
  apply({boost(10, fifo(20))});
  EXPECT_EQ(io(10), 0);
  apply({boost(10, nice_of(0))});
  EXPECT_EQ(io(10), best_effort_0);
}

TEST_F(IoPriorities, WhatSomebodySetsMeanwhileStays) {
  add(10, 19, idle);
  apply({boost(10, nice_of(-10))});
  scheduler_.threads.at(10).io_priority = best_effort_7;
  apply({});
  EXPECT_EQ(io(10), best_effort_7);
}

TEST_F(IoPriorities, AfterACrashTheyAreGivenBack) {
  add(10, 19, idle);
  add(11, 19, idle);
  {
    // A copy of the journal, from when both were lent to.
    apply({boost(10, nice_of(-10)), boost(11, nice_of(-10))});
    std::filesystem::copy_file(dir_ + "/journal", dir_ + "/kept");
    actuator_.reset();
    std::filesystem::rename(dir_ + "/kept", dir_ + "/journal");
  }
  scheduler_.add(10, lent(nice_of(-10))).io_priority = 0;
  scheduler_.add(11, lent(nice_of(-10))).io_priority = 0;
  start_times_[11] = 2;  // another thread by now
  start(options());
  const auto restored = actuator().recover();
  ASSERT_TRUE(restored.ok());
  EXPECT_EQ(io(10), idle);
  EXPECT_EQ(io(11), 0);
  EXPECT_EQ(attr(10), nice_of(19));
}

TEST_F(IoPriorities, AChildForkedMeanwhileHasItsParents) {
  add(10, 15, idle);
  apply({boost(10, fifo(10))});
  add(20, 0, 0);
  add(21, 0, best_effort_7);  // chose for itself
  actuator().adopt_child(id(20), id(10));
  actuator().adopt_child(id(21), id(10));
  EXPECT_EQ(io(20), idle);
  EXPECT_EQ(io(21), best_effort_7);
  add(30, 0, 0);  // news of it comes later
  apply({});
  actuator().adopt_child(id(30), id(10));
  EXPECT_EQ(io(30), idle);
}

// Forked by a child before anybody looked; of nice 0 both, so that their CPU attributes are right already.
TEST_F(IoPriorities, AGrandchildHasItsGrandparents) {
  add(10, 0, idle);
  apply({boost(10, fifo(10))});
  add(20, 0, 0);
  add(30, 0, 0);
  actuator().adopt_child(id(20), id(10));
  actuator().adopt_child(id(30), id(20));
  EXPECT_EQ(io(20), idle);
  EXPECT_EQ(io(30), idle);
}

// swapd may not know which thread of its process has made a new one.
TEST_F(IoPriorities, WhoseChildIsNotKnownKeepsWhatItHas) {
  add(10, 15, idle);
  apply({boost(10, fifo(10))});
  add(20, 0, 0);
  actuator().adopt_child(id(20), id(10), false);
  EXPECT_EQ(io(20), 0);
  EXPECT_EQ(attr(20), nice_of(15));
}

TEST_F(IoPriorities, WhatCannotBeGivenBackIsTriedAgain) {
  add(10, 19, idle);
  apply({boost(10, nice_of(-10))});
  scheduler_.threads.at(10).io_error = ENOMEM;
  apply({});
  EXPECT_EQ(io(10), 0);
  scheduler_.threads.at(10).io_error = 0;
  apply({boost(10, nice_of(-10))});
  apply({});
  EXPECT_EQ(io(10), idle);
}

TEST_F(IoPriorities, WhereTheCeilingSuspendsALoanItIsGivenBackToo) {
  add(10, 19, idle);
  apply({boost(10, fifo(10))});
  EXPECT_EQ(io(10), 0);
  Boost resting = boost(10, fifo(10));
  resting.ceiling_until = clock_.now() + std::chrono::milliseconds(60);
  apply({resting});
  EXPECT_EQ(io(10), idle);
}

TEST_F(IoPriorities, OneThatBecomesAnotherIsGivenItsOwnThere) {
  add(10, 15, idle);
  apply({boost(10, fifo(10))});
  scheduler_.threads[12] = scheduler_.threads.at(10);
  actuator().became(id(10), id(12));
  EXPECT_EQ(io(12), idle);
}

TEST_F(IoPriorities, WithoutARecordOrARightNothingIsLaidAside) {
  add(10, 19, idle).io_error = EPERM;
  apply({boost(10, nice_of(-10))});
  EXPECT_EQ(io(10), idle);
  EXPECT_EQ(attr(10).nice, -10) << "the loan is made all the same";
  apply({});
  EXPECT_EQ(attr(10).nice, 19);
}

TEST_F(IoPriorities, ADryRunTouchesNone) {
  add(10, 19, idle);
  Actuator::Options dry = options();
  dry.dry_run = true;
  start(std::move(dry));
  apply({boost(10, nice_of(-10))});
  EXPECT_EQ(io(10), idle);
}

}  // namespace
}  // namespace swapd::actuate
