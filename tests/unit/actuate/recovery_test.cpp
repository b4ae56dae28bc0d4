// The next start after a crash: what the journal names is given back, if it is still as swapd left it.
#include "actuate/head_start.h"
#include "actuate/journal.h"
#include "fixture.h"

namespace swapd::actuate {
namespace {

class RecoveryTest : public ActuatorTest {
 protected:
  // A run that ends without a word: its threads and groups stay as they are.
  void crash() {
    std::filesystem::copy_file(dir_ + "/journal", dir_ + "/kept");
    const auto threads = scheduler_.threads;
    const auto nices = groups_.autogroup_nice;
    const auto weights = groups_.weighted;
    actuator_.reset();
    scheduler_.threads = threads;
    groups_.autogroup_nice = nices;
    groups_.weighted = weights;
    std::filesystem::rename(dir_ + "/kept", dir_ + "/journal");
    scheduler_.sets = 0;
  }
  int recover() {
    start(options());
    const auto count = actuator().recover();
    EXPECT_TRUE(count.ok());
    return count.ok() ? *count : -1;
  }
};

TEST_F(RecoveryTest, ThreadsAndGroupsGetTheirOwnBack) {
  groups_.enabled = true;
  groups_.autogroup_of = {{11, 5}};
  groups_.group_of_tid = {{12, "/a"}};
  groups_.weighted["/a"].weight = 100;
  for (const pid_t tid : {10, 11, 12}) scheduler_.add(tid, nice_of(tid - 5));
  apply({boost(10, fifo(10)), boost(11, nice_of(-5)), boost(12, nice_of(-6))});
  ASSERT_EQ(groups_.autogroup_nice[5], -5);
  ASSERT_NE(groups_.weighted["/a"].weight, 100U);
  crash();
  EXPECT_EQ(attr(10), lent(fifo(10)));
  EXPECT_EQ(recover(), 5);
  for (const pid_t tid : {10, 11, 12}) EXPECT_EQ(attr(tid), nice_of(tid - 5));
  EXPECT_EQ(groups_.autogroup_nice[5], 0);
  EXPECT_EQ(groups_.weighted["/a"].weight, 100U);
  EXPECT_EQ(recover(), 0) << "once";
}

TEST_F(RecoveryTest, AGroupThatWasIdleIsIdleAgain) {
  groups_.group_of_tid = {{10, "/a"}};
  groups_.weighted["/a"] = {.weight = 3, .idle = true};
  scheduler_.add(10, nice_of(0));
  apply({boost(10, nice_of(-6))});
  ASSERT_FALSE(groups_.weighted["/a"].idle);
  crash();
  EXPECT_EQ(recover(), 3) << "the thread, the weight on loan, and the group's own state";
  EXPECT_TRUE(groups_.weighted["/a"].idle);
  EXPECT_EQ(recover(), 0) << "once";
}

TEST_F(RecoveryTest, ASessionThatWasLoweredHasItsOwnBack) {
  groups_.enabled = true;
  groups_.autogroup_of = {{10, 5}};
  scheduler_.add(10, nice_of(0));
  SchedAttr lowest;
  lowest.policy = SchedPolicy::idle;
  Boost between_slots{id(10), {}, {}, lent(lowest)};
  between_slots.lowers = between_slots.quiet = between_slots.lowers_group = true;
  apply({between_slots});
  ASSERT_EQ(groups_.autogroup_nice[5], 19);
  crash();
  EXPECT_EQ(recover(), 2);
  EXPECT_EQ(groups_.autogroup_nice[5], 0);
  EXPECT_EQ(attr(10), nice_of(0));
}

TEST_F(RecoveryTest, AGroupThatIsNoLongerAsItWasMadeIsLeftAlone) {
  groups_.group_of_tid = {{10, "/a"}};
  groups_.weighted["/a"] = {.weight = 3, .idle = true};
  scheduler_.add(10, nice_of(0));
  apply({boost(10, nice_of(-6))});
  crash();
  groups_.weighted["/a"] = {.weight = 3, .idle = true};
  EXPECT_EQ(recover(), 1) << "the thread alone";
  EXPECT_TRUE(groups_.weighted["/a"].idle);
}

TEST_F(RecoveryTest, ABoostThatChangedHasOneOwner) {
  scheduler_.add(10, nice_of(4));
  apply({boost(10, nice_of(-5))});
  apply({boost(10, fifo(5))});
  apply({boost(10, nice_of(-7))});
  crash();
  EXPECT_EQ(recover(), 1);
  EXPECT_EQ(attr(10), nice_of(4));
}

TEST_F(RecoveryTest, OneKilledBetweenTheRecordAndTheChangeHasItsOlderOne) {
  for (const bool reniced : {false, true}) {
    scheduler_.add(10, nice_of(4));
    apply({boost(10, nice_of(-7))});
    const SchedAttr before = attr(10);
    // The moment is caught in set(): the record is there, the change is not.
    scheduler_.before_set = [&] { std::filesystem::copy_file(dir_ + "/journal", dir_ + "/then"); };
    apply({boost(10, nice_of(-8))});
    scheduler_.before_set = nullptr;
    crash();
    std::filesystem::rename(dir_ + "/then", dir_ + "/journal");
    scheduler_.threads.at(10).attr = before;
    if (reniced) scheduler_.threads.at(10).attr.nice = -2;
    EXPECT_EQ(recover(), reniced ? 0 : 1);
    EXPECT_EQ(attr(10), nice_of(reniced ? -2 : 4));
    EXPECT_EQ(recover(), 0);
  }
}

TEST_F(RecoveryTest, ARecycledTidIsAnotherThread) {
  scheduler_.add(10, nice_of(4));
  apply({boost(10, fifo(5))});
  crash();
  start_times_[10] = 2;
  EXPECT_EQ(recover(), 0);
  EXPECT_EQ(attr(10), lent(fifo(5)));
}

TEST_F(RecoveryTest, WhatSomebodyChangedSinceIsTheirs) {
  scheduler_.add(10, nice_of(4));
  scheduler_.add(11, nice_of(4));
  apply({boost(10, fifo(5)), boost(11, fifo(5))});
  crash();
  scheduler_.add(10, fifo(6));
  scheduler_.renice(11, 9);
  EXPECT_EQ(recover(), 1);
  EXPECT_EQ(attr(10), fifo(6));
  EXPECT_EQ(attr(11), nice_of(9));
}

TEST_F(RecoveryTest, AThreadThatWasJustGivingWayIsOurs) {
  scheduler_.add(10, nice_of(4));
  apply({boost(10, fifo(5))});
  crash();
  scheduler_.threads.at(10).attr = lent(fifo(4));
  EXPECT_EQ(recover(), 1);
  EXPECT_EQ(attr(10), nice_of(4));
}

TEST_F(RecoveryTest, AThreadInItsHeadStartIsOurs) {
  scheduler_.add(10, nice_of(4));
  Actuator::Options chosen = options();
  chosen.newborn = [](ThreadId) { return true; };
  chosen.rest = [&](Duration) { std::filesystem::copy_file(dir_ + "/journal", dir_ + "/then"); };
  start(chosen);
  apply({boost(10, nice_of(-5))});
  crash();
  std::filesystem::rename(dir_ + "/then", dir_ + "/journal");
  scheduler_.threads.at(10).attr = head_start();
  scheduler_.threads.at(10).nice = 4;
  EXPECT_EQ(recover(), 1);
  EXPECT_EQ(attr(10), nice_of(4));
}

TEST_F(RecoveryTest, SetBaseUnderADonationSurvives) {
  scheduler_.add(10, nice_of(4));
  apply({boost(10, fifo(5))});
  ASSERT_TRUE(actuator().set_base(id(10), nice_of(11)).ok());
  crash();
  EXPECT_EQ(recover(), 1);
  EXPECT_EQ(attr(10), nice_of(11));
}

TEST_F(RecoveryTest, AThreadThatIsGoneIsNormal) {
  scheduler_.add(10, nice_of(4));
  apply({boost(10, fifo(5))});
  crash();
  scheduler_.threads.clear();
  EXPECT_EQ(recover(), 0);
  EXPECT_TRUE(actuator().recovery_notes().empty());
}

TEST_F(RecoveryTest, WhatCannotBeGivenBackStaysInTheJournal) {
  scheduler_.add(10, nice_of(4));
  apply({boost(10, fifo(5))});
  crash();
  scheduler_.threads[10].set_error = EPERM;
  EXPECT_EQ(recover(), 0);
  EXPECT_EQ(actuator().recovery_notes().size(), 1U);
  actuator_.reset();
  scheduler_.threads[10].set_error = 0;
  EXPECT_EQ(recover(), 1);
  EXPECT_EQ(attr(10), nice_of(4));
}

TEST_F(RecoveryTest, AnotherBootsThreadsAreNotTouched) {
  scheduler_.add(10, nice_of(4));
  apply({boost(10, fifo(5))});
  crash();
  auto later = options();
  later.boot_id = "next-boot";
  start(later);
  ASSERT_TRUE(actuator().recover().ok());
  EXPECT_EQ(scheduler_.sets, 0);
}

TEST_F(RecoveryTest, WithoutAJournalNothingIsTouched) {
  auto bad = options();
  bad.state_dir = dir_ + "/no/such";
  start(bad);
  EXPECT_FALSE(actuator().recover().ok());
  scheduler_.add(10, nice_of(0));
  apply({boost(10, fifo(5))});
  EXPECT_EQ(scheduler_.sets, 0);
  EXPECT_EQ(heard(), (Heard{{What::failed, Ineffective::none}}));
}

TEST_F(RecoveryTest, AnEndThatFailsIsRepairedByTheNextStart) {
  scheduler_.add(10, nice_of(4));
  apply({boost(10, fifo(5))});
  scheduler_.threads[10].set_error = EPERM;
  apply({});
  actuator_.reset();
  scheduler_.threads[10].set_error = 0;
  EXPECT_EQ(recover(), 1);
  EXPECT_EQ(attr(10), nice_of(4));
}

}  // namespace
}  // namespace swapd::actuate
