// Boosts that lower a thread, and quiet ones, which come and go many times a second: what a job in slots gets.
#include "fixture.h"

namespace swapd::actuate {
namespace {

namespace fs = std::filesystem;

SchedAttr idle_with(int nice) {
  SchedAttr attr = nice_of(nice);
  attr.policy = SchedPolicy::idle;
  return attr;
}

class LoweredTest : public ActuatorTest {
 protected:
  // Between slots.
  static Boost lowered(pid_t tid) {
    SchedAttr attr;
    attr.policy = SchedPolicy::idle;
    Boost asked{id(tid), {}, {}, lent(attr)};
    asked.lowers = asked.quiet = true;
    return asked;
  }
  // In its slot.
  static Boost in_slot(pid_t tid) {
    Boost asked{id(tid), {}, {}, lent(fifo(1))};
    asked.second_best = lent(nice_of(-20));
    asked.quiet = true;
    return asked;
  }
  void pass(std::vector<Boost> boosts, int milliseconds = 25) {
    clock_.advance(std::chrono::milliseconds(milliseconds));
    apply(std::move(boosts));
  }
};

TEST_F(LoweredTest, ThreadIsIdleWithItsOwnNiceValueAndSlice) {
  SchedAttr own = nice_of(5);
  own.runtime_ns = 3'000'000;
  scheduler_.slice = 2'000'000;
  scheduler_.add(10, own);
  apply({lowered(10)});
  SchedAttr expected = own;
  expected.policy = SchedPolicy::idle;
  EXPECT_EQ(attr(10), lent(expected));
}

TEST_F(LoweredTest, ItGetsExactlyItsOwnBack) {
  SchedAttr own = nice_of(-3);
  own.runtime_ns = 3'000'000;
  own.reset_on_fork = true;
  scheduler_.slice = 2'000'000;
  scheduler_.add(10, own);
  apply({lowered(10)});
  apply({});
  EXPECT_EQ(attr(10), own);
}

TEST_F(LoweredTest, SoItDoesAfterManySlots) {
  SchedAttr own = nice_of(4);
  own.runtime_ns = 3'000'000;
  scheduler_.slice = 2'000'000;
  scheduler_.add(10, own);
  for (int i = 0; i < 50; ++i) {
    pass({in_slot(10)}, 8);
    EXPECT_EQ(attr(10).policy, SchedPolicy::fifo);
    EXPECT_EQ(attr(10).rt_priority, 1);
    pass({lowered(10)}, 8);
    EXPECT_EQ(attr(10).policy, SchedPolicy::idle);
    EXPECT_EQ(attr(10).nice, 4);
  }
  apply({});
  EXPECT_EQ(attr(10), own);
  EXPECT_EQ(actuator().base(id(10)), std::nullopt);
}

TEST_F(LoweredTest, WhatIsRenewedCostsNothing) {
  scheduler_.add(10, nice_of(0));
  apply({lowered(10)});
  const int calls = scheduler_.gets + scheduler_.sets;
  for (int i = 0; i < 10; ++i) apply({lowered(10)});
  EXPECT_EQ(scheduler_.gets + scheduler_.sets, calls);
}

TEST_F(LoweredTest, WithoutTheWordNobodyIsLowered) {
  scheduler_.add(10, nice_of(0));
  Boost asked = lowered(10);
  asked.lowers = false;
  apply({asked});
  EXPECT_EQ(attr(10), nice_of(0));
}

TEST_F(LoweredTest, SlotWithoutRealTimeIsTheSecondBest) {
  scheduler_.add(10, nice_of(0)).realtime_error = EPERM;
  for (int i = 0; i < 3; ++i) {
    pass({in_slot(10)}, 8);
    EXPECT_EQ(attr(10).policy, SchedPolicy::other);
    EXPECT_EQ(attr(10).nice, -20);
    pass({lowered(10)}, 8);
    EXPECT_EQ(attr(10), lent(idle_with(0)));
  }
  apply({});
  EXPECT_EQ(attr(10), nice_of(0));
}

// --- the journal

class LoweredCrashTest : public LoweredTest {
 protected:
  void keep_journal() { fs::copy_file(dir_ + "/journal", dir_ + "/kept", fs::copy_options::overwrite_existing); }
  // Ends without a word, with the journal as it was kept.
  void crash() {
    const auto threads = scheduler_.threads;
    scheduler_.before_set = nullptr;
    actuator_.reset();
    scheduler_.threads = threads;
    fs::rename(dir_ + "/kept", dir_ + "/journal");
  }
  int recover() {
    start(options());
    return actuator().recover().value_or(-1);
  }
};

TEST_F(LoweredCrashTest, TheNextRunGivesBackWhatThreadsHad) {
  SchedAttr own = nice_of(5);
  own.runtime_ns = 3'000'000;
  scheduler_.add(10, own);
  scheduler_.add(11, nice_of(2));
  for (int i = 0; i < 3; ++i) {
    pass({in_slot(10), lowered(11)}, 8);
    pass({lowered(10), in_slot(11)}, 8);
  }
  keep_journal();
  crash();
  ASSERT_EQ(attr(10).policy, SchedPolicy::idle);
  ASSERT_EQ(attr(11).policy, SchedPolicy::fifo);
  EXPECT_EQ(recover(), 2);
  EXPECT_EQ(attr(10), own);
  EXPECT_EQ(attr(11), nice_of(2));
}

TEST_F(LoweredCrashTest, TheRecordIsWrittenBeforeTheChange) {
  scheduler_.add(10, nice_of(5));
  scheduler_.before_set = [&] { keep_journal(); };
  apply({lowered(10)});
  crash();
  ASSERT_EQ(attr(10).policy, SchedPolicy::idle);
  EXPECT_EQ(recover(), 1);
  EXPECT_EQ(attr(10), nice_of(5));
}

TEST_F(LoweredCrashTest, ReniceBeforeItIsKept) {
  scheduler_.add(10, nice_of(5));
  apply({lowered(10)});
  scheduler_.renice(10, 7);
  keep_journal();
  crash();
  (void)recover();
  EXPECT_EQ(attr(10), nice_of(7));
}

TEST_F(LoweredTest, DryRunLowersNobody) {
  auto chosen = options();
  chosen.dry_run = true;
  start(std::move(chosen));
  scheduler_.add(10, nice_of(0));
  apply({lowered(10)});
  apply({});
  EXPECT_EQ(scheduler_.sets, 0);
}

// --- what others do meanwhile

TEST_F(LoweredTest, AnotherClassThatAProgramGaveItIsItsOwnFromThenOn) {
  scheduler_.add(10, nice_of(0));
  apply({lowered(10)});
  SchedAttr batch = nice_of(3);
  batch.policy = SchedPolicy::batch;
  scheduler_.add(10, batch);
  pass({lowered(10)});
  EXPECT_EQ(heard(), (Heard{{What::rebased, Ineffective::none}})) << "for the model";
  apply({});
  EXPECT_EQ(attr(10), batch);
}

TEST_F(LoweredTest, ReniceBetweenSlotsIsKeptAndDoesNotLeaveItIdle) {
  scheduler_.add(10, nice_of(0));
  apply({lowered(10)});
  scheduler_.renice(10, 7);
  pass({lowered(10)});
  EXPECT_EQ(attr(10), lent(idle_with(7))) << "it goes on";
  EXPECT_EQ(actuator().base(id(10)), nice_of(7));
  apply({});
  EXPECT_EQ(attr(10), nice_of(7));
}

TEST_F(LoweredTest, ReniceJustBeforeTheEndIsKeptToo) {
  scheduler_.add(10, nice_of(0));
  apply({lowered(10)});
  scheduler_.renice(10, 7);
  apply({});
  EXPECT_EQ(attr(10), nice_of(7));
}

TEST_F(LoweredTest, ReniceInASlotIsKept) {
  scheduler_.add(10, nice_of(0));
  apply({in_slot(10)});
  scheduler_.renice(10, 7);
  pass({lowered(10)}, 8);
  EXPECT_EQ(attr(10), lent(idle_with(7)));
  apply({});
  EXPECT_EQ(attr(10), nice_of(7));
}

TEST_F(LoweredTest, ProgramThatTakesSchedIdleForItselfKeepsIt) {
  scheduler_.add(10, nice_of(0));
  apply({lowered(10)});
  scheduler_.add(10, idle_with(0));  // without reset-on-fork: not what swapd had set
  pass({lowered(10)});
  apply({});
  EXPECT_EQ(attr(10), idle_with(0));
}

TEST_F(LoweredTest, WhoInsistsIsLeftAlone) {
  scheduler_.add(10, nice_of(0));
  apply({lowered(10)});
  for (int i = 1; i <= 5; ++i) {
    scheduler_.add(10, nice_of(i));
    pass({lowered(10)});
  }
  const int sets = scheduler_.sets;
  pass({lowered(10)});
  EXPECT_EQ(scheduler_.sets, sets);
  EXPECT_EQ(attr(10), nice_of(5));
}

TEST_F(LoweredTest, OwnNiceValueCanBeSetUnderIt) {
  scheduler_.add(10, nice_of(0));
  apply({lowered(10)});
  EXPECT_TRUE(actuator().set_base(id(10), nice_of(9)).ok());
  EXPECT_EQ(attr(10), lent(idle_with(9)));
  apply({});
  EXPECT_EQ(attr(10), nice_of(9));
}

TEST_F(LoweredTest, ChildOfALoweredThreadIsNotLowered) {
  scheduler_.add(10, nice_of(2));
  apply({lowered(10)});
  // The reset-on-fork flag spares a child a high priority, not a low class.
  scheduler_.add(11, idle_with(2));
  actuator().adopt_child(id(11), id(10));
  EXPECT_EQ(attr(11), nice_of(2));
}

TEST_F(LoweredTest, ThreadThatEndsIsForgotten) {
  scheduler_.add(10, nice_of(0));
  apply({lowered(10)});
  scheduler_.threads.erase(10);
  actuator().forget(id(10));
  apply({});
  EXPECT_EQ(actuator().active(id(10)), std::nullopt);
  EXPECT_TRUE(heard().empty());
}

// --- quiet

class QuietTest : public LoweredTest {
 protected:
  QuietTest() {
    groups_.enabled = true;
    groups_.autogroup_of[10] = 100;
    groups_.group_of_tid[10] = "/a";
    groups_.weighted["/a"].weight = 100;
  }
};

TEST_F(QuietTest, NoOutcomeTellsOfIt) {
  scheduler_.add(10, nice_of(0));
  for (int i = 0; i < 10; ++i) {
    pass({in_slot(10)}, 8);
    pass({lowered(10)}, 8);
  }
  apply({});
  EXPECT_TRUE(heard().empty());
  EXPECT_EQ(actuator().total(), 0U);
}

TEST_F(QuietTest, ItIsNotAmongTheActiveOnesButKnown) {
  scheduler_.add(10, nice_of(0));
  for (const Boost& boost : {in_slot(10), lowered(10)}) {
    pass({boost}, 8);
    EXPECT_TRUE(actuator().active().empty());
    ASSERT_TRUE(actuator().active(id(10)));
    EXPECT_TRUE(actuator().active(id(10))->in_force);
  }
}

TEST_F(QuietTest, GroupsAndIoPriorityStayAsTheyAre) {
  scheduler_.add(10, nice_of(0)).io_priority = 2 << 13 | 4;
  Boost by_nice = in_slot(10);
  by_nice.attr = lent(nice_of(-20));
  for (int i = 0; i < 5; ++i) {
    for (const Boost& boost : {in_slot(10), lowered(10), by_nice}) {
      pass({boost});
      EXPECT_EQ(groups_.autogroup(10)->nice, 0);
      EXPECT_EQ(groups_.weighted["/a"].weight, 100U);
      EXPECT_EQ(scheduler_.threads.at(10).io_priority, 2 << 13 | 4);
    }
  }
  apply({});
}

TEST_F(QuietTest, WhatADonationGaveTheGroupEndsWithIt) {
  scheduler_.add(10, nice_of(0));
  apply({boost(10, nice_of(-5))});
  ASSERT_NE(groups_.weighted["/a"].weight, 100U);
  pass({lowered(10)});
  EXPECT_EQ(groups_.weighted["/a"].weight, 100U);
  EXPECT_EQ(attr(10), lent(idle_with(0)));
}

TEST_F(QuietTest, DonationToAThreadInASlotIsToldAndSoIsItsEnd) {
  scheduler_.add(10, nice_of(0));
  apply({in_slot(10)});
  pass({boost(10, fifo(49))}, 1);
  EXPECT_EQ(attr(10).rt_priority, 49);
  EXPECT_EQ(heard(), (Heard{{What::begun, Ineffective::none}}));
  EXPECT_EQ(actuator().active().size(), 1U);
  EXPECT_EQ(actuator().total(), 1U);
  pass({in_slot(10)}, 1);
  EXPECT_EQ(attr(10).rt_priority, 1);
  EXPECT_EQ(heard(), (Heard{{What::ended, Ineffective::none}}));
  EXPECT_TRUE(actuator().active().empty());
}

TEST_F(QuietTest, DonationBetweenSlotsIsToldAndSoIsItsEnd) {
  scheduler_.add(10, nice_of(0));
  apply({lowered(10)});
  pass({boost(10, nice_of(-5))}, 1);
  EXPECT_EQ(attr(10).nice, -5);
  EXPECT_EQ(attr(10).policy, SchedPolicy::other);
  EXPECT_EQ(heard(), (Heard{{What::begun, Ineffective::none}}));
  pass({lowered(10)}, 1);
  EXPECT_EQ(attr(10), lent(idle_with(0)));
  EXPECT_EQ(heard(), (Heard{{What::ended, Ineffective::none}}));
}

// The job's session shall not compete with others.
class LoweredGroupTest : public LoweredTest {
 protected:
  LoweredGroupTest() {
    groups_.enabled = true;
    groups_.autogroup_of = {{10, 5}, {11, 5}, {20, 6}};
    for (const pid_t tid : {10, 11, 20}) scheduler_.add(tid, nice_of(0));
    actuator().set_competitors({{5, 6}, {}, {}});
  }
  static Boost with_group(Boost asked) {
    asked.lowers_group = true;
    return asked;
  }
  static Boost group_lowered(pid_t tid) { return with_group(lowered(tid)); }
  static Boost group_in_slot(pid_t tid) { return with_group(in_slot(tid)); }
  int group_nice(std::int64_t id) { return groups_.autogroup_nice[id]; }
};

TEST_F(LoweredGroupTest, HasTheWorstNiceValueAndItsOwnBack) {
  apply({group_lowered(10), group_lowered(11)});
  EXPECT_EQ(group_nice(5), 19);
  EXPECT_EQ(group_nice(6), 0);
  apply({group_in_slot(10), group_in_slot(11)});
  EXPECT_EQ(group_nice(5), 19) << "real-time threads need no group";
  apply({group_lowered(10)});
  EXPECT_EQ(group_nice(5), 19);
  apply({});
  EXPECT_EQ(group_nice(5), 0);
}

TEST_F(LoweredGroupTest, WithANiceValueOfItsOwnIsLeftAlone) {
  groups_.autogroup_nice[5] = 4;
  apply({group_lowered(10)});
  EXPECT_EQ(group_nice(5), 4);
  EXPECT_EQ(attr(10).policy, SchedPolicy::idle);
}

TEST_F(LoweredGroupTest, IsLeftAloneWhereThePolicyForbidsIt) {
  actuator().set_rules({.group_action = false});
  apply({group_lowered(10)});
  EXPECT_EQ(group_nice(5), 0);
}

TEST_F(LoweredGroupTest, IsLeftAloneInAControlGroup) {
  groups_.group_of_tid[10] = "/job";
  apply({group_lowered(10)});
  EXPECT_EQ(group_nice(5), 0);
}

TEST_F(LoweredGroupTest, ABoostOfTheSameSessionCountsForMore) {
  apply({group_lowered(10), boost(11, nice_of(-8))});
  EXPECT_EQ(group_nice(5), -8);
  apply({group_lowered(10)});
  EXPECT_EQ(group_nice(5), 19);
  apply({boost(11, nice_of(-8)), group_lowered(10)});
  EXPECT_EQ(group_nice(5), -8);
  apply({boost(11, nice_of(-8))});
  EXPECT_EQ(group_nice(5), -8);
  apply({});
  EXPECT_EQ(group_nice(5), 0);
}

TEST_F(LoweredGroupTest, NoMoreAskedForIsGivenBackAtOnce) {
  apply({group_lowered(10)});
  apply({lowered(10)});
  EXPECT_EQ(group_nice(5), 0);
}

}  // namespace
}  // namespace swapd::actuate
