// The managed set as people order it: enrolled, released, moved to a class, taken over from an earlier swapd.
#include "unit/daemon/member_tracker_world.h"

namespace swapd::daemon {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// --- enrolment ---

TEST_F(MemberTrackerTest, AnEnrolledThreadIsToldWithItsClassAndAttributes) {
  make(10, 1, 7);
  const auto added = tracker_->enroll_threads({entry(10, 10)}, "batch", now_);
  ASSERT_TRUE(added);
  EXPECT_EQ(*added, 1U);
  ASSERT_THAT(told_.enrolled, SizeIs(1));
  EXPECT_EQ(told_.enrolled[0].class_id, 1);
  EXPECT_EQ(told_.enrolled[0].base.nice, 7) << "as the kernel has it now, not as it was read";
  EXPECT_THAT(observer_.managed, Contains(10));
}

TEST_F(MemberTrackerTest, EnrollingTheSameAgainAddsNothing) {
  manage();
  const auto again = tracker_->enroll_threads({entry(10, 10)}, "batch", now_);
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, 0U);
  EXPECT_THAT(told_.enrolled, SizeIs(1));
}

TEST_F(MemberTrackerTest, SwapdItselfIsNeverEnrolled) {
  const pid_t self = ::getpid();
  make(self);
  (void)tracker_->enroll_threads({entry(self, self)}, "batch", now_);
  EXPECT_THAT(told_.enrolled, IsEmpty());
}

TEST_F(MemberTrackerTest, APriorityThatIsLentIsNotTakenForItsOwn) {
  manage();
  boost(10, nice_of(-10));
  ASSERT_EQ(scheduler_.threads[10].attr.nice, -10);
  ASSERT_TRUE(tracker_->enroll_threads({entry(10, 10)}, "interactive", now_));
  EXPECT_EQ(told_.enrolled.back().base.nice, 0);
}

TEST_F(MemberTrackerTest, AThreadThatCannotBeObservedIsAnErrorOfTheCommand) {
  make(10);
  observer_.full = true;
  const auto added = tracker_->enroll_threads({entry(10, 10)}, "batch", now_);
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code(), ENOSPC);
  EXPECT_EQ(tracker_->counts().lost, 1U);
}

TEST_F(MemberTrackerTest, AUserAtItsQuotaIsToldEdquot) {
  begin({.processes = 1, .threads = 0});
  manage(10);
  make(20);
  const auto added = tracker_->enroll_threads({entry(20, 20)}, "batch", now_);
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code(), EDQUOT);
  EXPECT_EQ(members_.process(20), nullptr);
  EXPECT_EQ(tracker_->counts().over_quota, 1U);
  EXPECT_THAT(notes(), Contains(Note::Type::limit_reached));
}

TEST_F(MemberTrackerTest, WhatIsAboveAQuotaIsLeftOutAndTheRestIsEnrolled) {
  begin({.processes = 1, .threads = 0});
  make(10);
  make(20);
  const auto added = tracker_->enroll_threads({entry(10, 10), entry(20, 20)}, "batch", now_);
  ASSERT_TRUE(added);
  EXPECT_EQ(*added, 1U);
}

// --- release, again, classes ---

TEST_F(MemberTrackerTest, AReleasedProcessIsGoneToTheModelAndLetGoByTheKernel) {
  manage();
  ASSERT_TRUE(tracker_->release(10, now_));
  EXPECT_THAT(told_.exited, ElementsAre(10));
  EXPECT_THAT(told_.left, ElementsAre(std::pair(10, false))) << "it lives, and gets its own attributes back";
  EXPECT_THAT(observer_.managed, IsEmpty());
  EXPECT_THAT(told_.processes_released, ElementsAre(10));
  EXPECT_TRUE(members_.empty());
}

TEST_F(MemberTrackerTest, ItIsToldAsAReleaseAndNotAsAnEnd) {
  manage();
  (void)feed_.take();
  ASSERT_TRUE(tracker_->release(10, now_));
  EXPECT_THAT(notes(), ElementsAre(Note::Type::unenrolled));
}

TEST_F(MemberTrackerTest, AReleasedProcessIsRememberedByItsStartTime) {
  manage();
  ASSERT_TRUE(tracker_->release(10, now_));
  EXPECT_TRUE(tracker_->knows(10, 1));
  EXPECT_FALSE(tracker_->knows(10, 2)) << "another process";
  const auto left = tracker_->memberships();
  ASSERT_THAT(left, SizeIs(1));
  EXPECT_FALSE(left[0].managed);
}

TEST_F(MemberTrackerTest, WhatIsNotManagedCannotBeReleased) {
  EXPECT_EQ(tracker_->release(10, now_).error().code(), ENOENT);
  begin({}, true);
  manage();
  ASSERT_TRUE(tracker_->release(10, now_));
  EXPECT_EQ(tracker_->release(10, now_).error().code(), ENOENT) << "released already";
}

TEST_F(MemberTrackerTest, UnderItsFilterAReleasedProcessIsManagedAgain) {
  begin({}, true);
  manage();
  ASSERT_TRUE(tracker_->release(10, now_));
  told_.enrolled.clear();
  ASSERT_TRUE(tracker_->manage_again(10, "interactive", now_));
  ASSERT_THAT(told_.enrolled, SizeIs(1));
  EXPECT_EQ(told_.enrolled[0].class_id, 2);
}

TEST_F(MemberTrackerTest, AProcessThatIsInNoTreeIsNotManagedAgain) {
  EXPECT_EQ(tracker_->manage_again(99, "batch", now_).error().code(), ENOENT);
}

TEST_F(MemberTrackerTest, AClassIsMovedWithAllItsProcesses) {
  manage(10);
  manage(20);
  tracker_->move_class("batch", "interactive", now_);
  EXPECT_EQ(members_.process(10)->class_name, "interactive");
  EXPECT_EQ(members_.process(20)->class_name, "interactive");
}

TEST_F(MemberTrackerTest, AThreadOfAReleasedProcessIsNotIdentified) {
  begin({}, true);
  manage();
  EXPECT_TRUE(tracker_->identify(10));
  ASSERT_TRUE(tracker_->release(10, now_));
  EXPECT_FALSE(tracker_->identify(10));
  EXPECT_FALSE(tracker_->identify(99));
}

// --- an earlier swapd's ---

TEST_F(MemberTrackerTest, AnEarlierSwapdsProcessComesBackWithItsListenerAndClass) {
  begin({}, true);
  const auto receiver = std::make_shared<IdleReceiver>();
  listeners_.add(receiver, 10);
  make(20, 5);
  const auto back = tracker_->reenroll(
      {entry(20, 20, 5)},
      {.pid = 20, .start_time = 5, .class_name = "batch", .managed = true, .launch = 10, .io = true}, now_);
  ASSERT_TRUE(back);
  EXPECT_TRUE(listeners_.has_io(20));
  EXPECT_EQ(members_.process(20)->launch, 10);
}

TEST_F(MemberTrackerTest, WhereItsListenerIsLostItDoesNotComeBack) {
  begin({}, true);
  make(20, 5);
  const auto back = tracker_->reenroll(
      {entry(20, 20, 5)}, {.pid = 20, .start_time = 5, .class_name = "batch", .managed = true, .launch = 10}, now_);
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().code(), ENOENT);
}

TEST_F(MemberTrackerTest, AProcessThatHadBeenReleasedComesBackReleased) {
  make(20, 5);
  ASSERT_TRUE(tracker_->reenroll({entry(20, 20, 5)},
                                 {.pid = 20, .start_time = 5, .class_name = "batch", .managed = false}, now_));
  EXPECT_TRUE(members_.empty());
  EXPECT_TRUE(tracker_->knows(20, 5));
}

}  // namespace
}  // namespace swapd::daemon
