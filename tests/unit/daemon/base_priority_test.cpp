// `swapctl set` on threads that exist only here.
#include "engine/base_priority.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/fake_groups.h"
#include "fakes/fake_scheduler.h"
#include "unit/daemon/engine_words.h"

namespace swapd::daemon {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class BasePriorityTest : public testing::Test {
 protected:
  BasePriorityTest() {
    groups_.enabled = false;
    members_.add_process(10, 1, 1000, "default");
    for (const pid_t tid : {10, 11}) {
      members_.add_thread({.id = {tid, 1}, .tgid = 10, .base = nice_of(0)});
      scheduler_.add(tid, nice_of(0));
    }
  }
  Status set(pid_t pid, const AskedPriority& asked, bool may_raise = true) {
    changed_.clear();
    return BasePriority(members_, scheduler_, actuator_, dry_run_).set(pid, asked, may_raise, changed_);
  }
  void boost(pid_t tid, const SchedAttr& attr) {
    actuate::Boost boost;
    boost.thread = {tid, 1};
    boost.requester = {99, 1};
    boost.attr = attr;
    actuator_.apply({&boost, 1}, Time{});
  }

  fakes::FakeScheduler scheduler_;
  fakes::FakeGroups groups_;
  model::ManagedSet members_;
  actuate::Actuator actuator_{scheduler_, groups_, {.boot_id = "this-boot", .start_time = [](pid_t) {
                                                      return std::optional<std::uint64_t>(1);
                                                    }}};
  std::vector<BasePriority::Changed> changed_;
  bool dry_run_ = false;
};

TEST_F(BasePriorityTest, AProcessIsSetWithAllOfItsThreads) {
  ASSERT_TRUE(set(10, nice_of(5)));
  EXPECT_EQ(scheduler_.threads[10].attr.nice, 5);
  EXPECT_EQ(scheduler_.threads[11].attr.nice, 5);
  EXPECT_THAT(changed_, SizeIs(2));
}

TEST_F(BasePriorityTest, AThreadIsSetAlone) {
  ASSERT_TRUE(set(11, nice_of(5)));
  EXPECT_EQ(scheduler_.threads[10].attr.nice, 0);
  EXPECT_EQ(scheduler_.threads[11].attr.nice, 5);
}

TEST_F(BasePriorityTest, WhatIsNotManagedIsNotSet) {
  scheduler_.add(20, nice_of(0));
  EXPECT_EQ(set(20, nice_of(5)).error().code(), ENOENT);
  members_.set_managed(10, false);
  EXPECT_EQ(set(10, nice_of(5)).error().code(), ENOENT);
}

TEST_F(BasePriorityTest, WithoutPermissionNothingIsRaised) {
  scheduler_.add(11, nice_of(10));
  EXPECT_EQ(set(10, nice_of(5), false).error().code(), EACCES) << "the second thread would be raised";
  EXPECT_EQ(scheduler_.threads[10].attr.nice, 0) << "and so the first is not lowered";
  EXPECT_THAT(changed_, IsEmpty());
}

TEST_F(BasePriorityTest, WithoutPermissionItMayBeLowered) { EXPECT_TRUE(set(10, nice_of(5), false)); }

TEST_F(BasePriorityTest, WithoutPermissionNothingBecomesRealTime) {
  EXPECT_EQ(set(10, fifo(1), false).error().code(), EACCES);
}

TEST_F(BasePriorityTest, AHiddenNiceValueOfARealTimeThreadIsNotRaisedEither) {
  scheduler_.add(11, fifo(10)).nice = 5;
  EXPECT_EQ(set(11, AskedPriority::only_nice(0), false).error().code(), EACCES);
  EXPECT_TRUE(set(11, AskedPriority::only_nice(7), false));
  EXPECT_EQ(scheduler_.threads[11].nice, 7);
  EXPECT_TRUE(scheduler_.threads[11].attr.realtime());
}

TEST_F(BasePriorityTest, ABoostStaysAndTheNewBaseComesAfterIt) {
  boost(10, fifo(40));
  ASSERT_TRUE(scheduler_.threads[10].attr.realtime());
  ASSERT_TRUE(set(10, nice_of(5)));
  EXPECT_TRUE(scheduler_.threads[10].attr.realtime());
  EXPECT_EQ(actuator_.base({10, 1})->nice, 5);
  actuator_.restore_all();
  EXPECT_EQ(scheduler_.threads[10].attr.nice, 5);
}

TEST_F(BasePriorityTest, WhatIsLentDoesNotCountAsItsOwn) {
  boost(10, fifo(40));
  EXPECT_EQ(set(10, nice_of(-5), false).error().code(), EACCES) << "above its own nice value, below what it is lent";
}

TEST_F(BasePriorityTest, ADryRunChangesNothing) {
  dry_run_ = true;
  EXPECT_EQ(set(10, nice_of(5)).error().code(), EPERM);
  EXPECT_EQ(scheduler_.threads[10].attr.nice, 0);
}

TEST_F(BasePriorityTest, AThreadThatHasEndedIsLeftOut) {
  scheduler_.threads.erase(11);
  ASSERT_TRUE(set(10, nice_of(5)));
  EXPECT_THAT(changed_, SizeIs(1));
}

TEST_F(BasePriorityTest, WhatTheKernelRefusesIsAnErrorAndWhatWasSetBeforeIsSaid) {
  scheduler_.threads[11].set_error = EPERM;
  EXPECT_EQ(set(10, nice_of(5)).error().code(), EPERM);
  EXPECT_THAT(changed_, SizeIs(1));
}

}  // namespace
}  // namespace swapd::daemon
