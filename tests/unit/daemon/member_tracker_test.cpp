// The managed set through forks, execs, exits and rosters.
#include "unit/daemon/member_tracker_world.h"

namespace swapd::daemon {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

// --- fork ---

TEST_F(MemberTrackerTest, AChildOfAManagedProcessIsEnrolledWithItsParentsClass) {
  manage();
  make(20, 5);
  fork(20, 10);
  ASSERT_NE(members_.process(20), nullptr);
  EXPECT_EQ(members_.process(20)->class_name, "batch");
  EXPECT_EQ(told_.enrolled.back().thread, (ThreadId{20, 5}));
  EXPECT_THAT(told_.born, ElementsAre(std::pair(20, 10)));
  EXPECT_THAT(told_.forked, ElementsAre(10));
}

TEST_F(MemberTrackerTest, AStrangersChildIsNotEnrolled) {
  make(20, 5);
  fork(20, 99);
  EXPECT_EQ(members_.process(20), nullptr);
  EXPECT_THAT(observer_.released, ElementsAre(20)) << "the kernel's set may have it";
}

TEST_F(MemberTrackerTest, AChildOfAReleasedProcessThatIsKnownByItsFilterIsReleasedToo) {
  begin({}, true);
  manage();
  ASSERT_TRUE(tracker_->release(10, now_));
  make(20, 5);
  fork(20, 10);
  ASSERT_NE(members_.process(20), nullptr);
  EXPECT_FALSE(members_.process(20)->managed);
  EXPECT_THAT(told_.born, IsEmpty());
}

TEST_F(MemberTrackerTest, WhatAKernelThreadStartsIsNotManaged) {
  manage();
  proc_.add(30, {.start_time = 3, .kernel = true});
  scheduler_.add(30, nice_of(0));
  tracker_->enroll_kernel_threads(
      {.time = now_, .thread = {10, 1}, .call = 0, .awaited = {Resource{ResourceKind::kernel_work, {30, 3}}}});
  ASSERT_NE(members_.thread(30), nullptr);
  make(31, 5);
  fork(31, 30);
  EXPECT_EQ(members_.process(31), nullptr);
}

TEST_F(MemberTrackerTest, AnOrdinaryThreadIsNotTakenForAKernelThread) {
  manage();
  make(30, 3);
  tracker_->enroll_kernel_threads(
      {.time = now_, .thread = {10, 1}, .call = 0, .awaited = {Resource{ResourceKind::kernel_work, {30, 3}}}});
  EXPECT_EQ(members_.thread(30), nullptr);
}

TEST_F(MemberTrackerTest, AWaitForAChildIsAWaitForThatChild) {
  manage();
  make(20, 5);
  fork(20, 10);
  EXPECT_THAT(told_.accessed, ElementsAre(Resource{ResourceKind::child_exit, {20, 5}},
                                          Resource{ResourceKind::child_exit, {0, 0, 10, 1}}));
}

TEST_F(MemberTrackerTest, ANewThreadIsEnrolledWithItsProcess) {
  manage();
  make(11, 5);
  fork_thread(11, 10);
  ASSERT_NE(members_.thread(11), nullptr);
  EXPECT_EQ(members_.thread(11)->tgid, 10);
  EXPECT_THAT(told_.forked, IsEmpty()) << "no process was started";
  EXPECT_THAT(told_.accessed, IsEmpty());
}

TEST_F(MemberTrackerTest, AChangedWeightIsToldOnce) {
  manage();
  tracker_->set_weight(*members_.thread(10), 300, now_);
  EXPECT_EQ(told_.enrolled.back().weight, 300U);
  const std::size_t told = told_.enrolled.size();
  tracker_->set_weight(*members_.thread(10), 300, now_);
  EXPECT_THAT(told_.enrolled, SizeIs(told));
  tracker_->set_base(*members_.thread(10), nice_of(3), now_);
  EXPECT_EQ(told_.enrolled.back().weight, 300U) << "other attributes leave it as it is";
}

TEST_F(MemberTrackerTest, NewThreadsAndChildrenBeginWithTheLeadersWeight) {
  manage();
  tracker_->set_weight(*members_.thread(10), 300, now_);
  make(11, 5);
  fork_thread(11, 10);
  EXPECT_EQ(told_.enrolled.back().weight, 300U);
  make(20, 5);
  fork(20, 10);
  EXPECT_EQ(told_.enrolled.back().thread, (ThreadId{20, 5}));
  EXPECT_EQ(told_.enrolled.back().weight, 300U);
}

TEST_F(MemberTrackerTest, AChildAboveTheQuotaIsNotEnrolledAndTheKernelIsTold) {
  begin({.processes = 1, .threads = 0});
  manage();
  make(20, 5);
  fork(20, 10);
  EXPECT_EQ(members_.process(20), nullptr);
  EXPECT_THAT(observer_.released, ElementsAre(20));
  EXPECT_EQ(tracker_->counts().over_quota, 1U);
  EXPECT_THAT(notes(), Not(Contains(Note::Type::spawned)));
}

TEST_F(MemberTrackerTest, AChildOfABoostedThreadBeginsWithItsParentsOwnAttributes) {
  manage();
  boost(10, nice_of(-10));
  make(20, 5, 0);  // reset-on-fork's
  fork(20, 10);
  EXPECT_EQ(told_.enrolled.back().base.nice, 0);
}

TEST_F(MemberTrackerTest, AGrandchildIsFoundThroughAParentThatHadEndedBeforeAnybodyLooked) {
  manage();
  fork(20, 10, 0);  // told without a start time, and gone
  make(30, 7);
  fork(30, 20, 0);
  ASSERT_NE(members_.process(30), nullptr);
  EXPECT_EQ(members_.process(30)->class_name, "batch");
}

TEST_F(MemberTrackerTest, AnEndedParentIsForgottenWithItsExit) {
  manage();
  fork(20, 10, 0);
  exit(20);
  make(30, 7);
  fork(30, 20, 0);
  EXPECT_EQ(members_.process(30), nullptr);
}

TEST_F(MemberTrackerTest, AChildIsUnderItsParentsListener) {
  begin({}, true);
  const auto receiver = std::make_shared<IdleReceiver>();
  listeners_.add(receiver, 10);
  listeners_.bind(10, receiver.get());
  make(10);
  tracker_->enroll_launched(10, "batch", now_);
  make(20, 5);
  fork(20, 10);
  EXPECT_TRUE(listeners_.contains(20));
  EXPECT_EQ(members_.process(20)->launch, 10);
}

TEST_F(MemberTrackerTest, ARecycledPidIsAnotherProcess) {
  manage();
  make(20, 5);
  fork(20, 10);
  end(20);
  make(20, 9);
  fork(20, 10, 9);
  EXPECT_THAT(told_.exited, ElementsAre(20)) << "its end was not told";
  EXPECT_EQ(members_.process(20)->start_time, 9U);
}

TEST_F(MemberTrackerTest, AThreadIsKnownWithTheStartOfItsProcess) {
  manage();
  make(11, 5);
  fork_thread(11, 10);
  ASSERT_TRUE(tracker_->identify(11));
  EXPECT_EQ(tracker_->identify(11)->process_start, 1U);
  make(20, 5);
  fork(20, 10);
  EXPECT_EQ(tracker_->identify(20)->process_start, 5U);
  end(20);
  make(20, 9);
  fork(20, 10, 9);
  EXPECT_EQ(tracker_->identify(20)->process_start, 9U) << "of the process that has the number now";
}

// --- exit ---

TEST_F(MemberTrackerTest, AProcessLeavesWithItsLastThread) {
  manage();
  make(11, 5);
  fork_thread(11, 10);
  end(10);
  exit(10);
  EXPECT_NE(members_.process(10), nullptr);
  EXPECT_THAT(told_.images_gone, IsEmpty());
  end(11);
  exit(11);
  EXPECT_EQ(members_.process(10), nullptr);
  EXPECT_THAT(told_.images_gone, ElementsAre(10));
  EXPECT_THAT(told_.left, ElementsAre(std::pair(10, true), std::pair(11, true)));
}

TEST_F(MemberTrackerTest, TheNumberOfAThreadThatEndsIsFreeEvenIfItWasNotManaged) {
  exit(77);
  EXPECT_THAT(told_.numbers_free, ElementsAre(77));
  EXPECT_THAT(told_.exited, IsEmpty());
}

TEST_F(MemberTrackerTest, TheProcessLivesOnIfAnUnknownThreadHasTakenTheLeadersPlace) {
  manage();
  exit(10);  // of the leader that was: /proc has the same start time still
  ASSERT_NE(members_.process(10), nullptr);
  EXPECT_EQ(members_.process(10)->class_name, "batch");
  EXPECT_THAT(told_.enrolled, SizeIs(2));
}

// --- exec ---

TEST_F(MemberTrackerTest, AnExecOfTheLeaderIsToldAndItsImageIsGone) {
  manage();
  exec(10);
  EXPECT_THAT(told_.execed, ElementsAre(10));
  EXPECT_THAT(told_.images_gone, ElementsAre(10));
}

TEST_F(MemberTrackerTest, AnExecOfAnotherThreadMakesItTheLeaderAndEndsItsOldNumber) {
  manage();
  make(11, 5);
  fork_thread(11, 10);
  end(11);
  exec(10, 11);
  EXPECT_EQ(members_.thread(11), nullptr);
  EXPECT_NE(members_.thread(10), nullptr);
  EXPECT_THAT(told_.exited, ElementsAre(11));
}

TEST_F(MemberTrackerTest, AnExecMayChangeTheUser) {
  manage();
  make(10, 1, 0, 1001);
  exec(10);
  EXPECT_EQ(members_.process(10)->uid, 1001U);
  EXPECT_EQ(told_.enrolled.back().uid, 1001U);
}

TEST_F(MemberTrackerTest, AnExecOfAStrangerIsNothing) {
  exec(99);
  EXPECT_THAT(told_.execed, IsEmpty());
}

// --- roster ---

TEST_F(MemberTrackerTest, TheRosterIsDueOnceASecond) {
  manage();
  EXPECT_TRUE(tracker_->next_roster(now_, true));
  EXPECT_FALSE(tracker_->next_roster(now_ + 900ms, true));
  EXPECT_TRUE(tracker_->next_roster(now_ + 1s, true));
}

TEST_F(MemberTrackerTest, ItLooksForDescendantsOnlyIfChildrenAreNotTold) {
  manage();
  EXPECT_FALSE(tracker_->next_roster(now_, true)->descendants);
  EXPECT_TRUE(tracker_->next_roster(now_ + 1s, false)->descendants);
}

TEST_F(MemberTrackerTest, AfterLostEventsItIsDueAtOnceAndLooksForDescendantsOnce) {
  manage();
  (void)tracker_->next_roster(now_, true);
  tracker_->on_lost(3, now_ + 1ms);
  const auto roster = tracker_->next_roster(now_ + 1ms, true);
  ASSERT_TRUE(roster);
  EXPECT_TRUE(roster->descendants);
  EXPECT_EQ(tracker_->counts().lost, 3U);
  EXPECT_FALSE(tracker_->next_roster(now_ + 2s, true)->descendants);
}

TEST_F(MemberTrackerTest, KernelThreadsAreReleasedWithTheLastProcessThatTheyCouldWorkFor) {
  manage();
  proc_.add(30, {.start_time = 3, .kernel = true});
  scheduler_.add(30, nice_of(0));
  tracker_->enroll_kernel_threads(
      {.time = now_, .thread = {10, 1}, .call = 0, .awaited = {Resource{ResourceKind::kernel_work, {30, 3}}}});
  EXPECT_THAT(tracker_->next_roster(now_, true)->members, ElementsAre(10)) << "kernel threads are not looked at";
  end(10);
  exit(10);
  EXPECT_FALSE(tracker_->next_roster(now_ + 1s, true));
  EXPECT_TRUE(members_.empty());
}

TEST_F(MemberTrackerTest, ARosterFindsADescendantThatWasMissed) {
  manage();
  make(20, 5);
  tracker_->take_roster({.threads = {entry(10, 10), entry(20, 20, 5, 10)}, .question = {{10}, true}}, now_);
  ASSERT_NE(members_.process(20), nullptr);
  EXPECT_EQ(members_.process(20)->class_name, "batch");
}

TEST_F(MemberTrackerTest, ADescendantThatIsNotInTheKernelsSetStaysOut) {
  manage();
  make(20, 5);
  observer_.strangers.insert(20);
  tracker_->take_roster({.threads = {entry(20, 20, 5, 10)}, .question = {{10}, true}}, now_);
  EXPECT_EQ(members_.process(20), nullptr);
}

TEST_F(MemberTrackerTest, ARosterEndsThreadsThatAreGone) {
  manage();
  end(10);
  tracker_->take_roster({.threads = {}, .question = {{10}, false}}, now_);
  EXPECT_TRUE(members_.empty());
}

TEST_F(MemberTrackerTest, AThreadThatTheRosterMissedAndThatLivesStays) {
  manage();
  tracker_->take_roster({.threads = {}, .question = {{10}, false}}, now_);
  EXPECT_NE(members_.thread(10), nullptr);
}

TEST_F(MemberTrackerTest, ARosterTakesANewPriorityAsTheKernelHasItByNow) {
  manage();
  RosterAnswer::Entry read = entry(10, 10);
  read.attr = nice_of(3);
  scheduler_.threads[10].attr.nice = 4;
  tracker_->take_roster({.threads = {read}, .question = {{10}, false}}, now_);
  EXPECT_EQ(members_.thread(10)->base.nice, 4);
}

TEST_F(MemberTrackerTest, ARosterDoesNotTakeWhatIsLentForItsOwn) {
  manage();
  boost(10, nice_of(-10));
  RosterAnswer::Entry read = entry(10, 10);
  read.attr = nice_of(-10);
  tracker_->take_roster({.threads = {read}, .question = {{10}, false}}, now_);
  EXPECT_EQ(members_.thread(10)->base.nice, 0);
}

TEST_F(MemberTrackerTest, AnotherUserIsToldForEachThread) {
  manage();
  make(11, 1);
  fork_thread(11, 10, 1);
  told_.enrolled.clear();
  tracker_->take_roster({.threads = {entry(10, 10, 1, 0, 1001), entry(11, 10, 1, 0, 1001)}, .question = {{10}, false}},
                        now_);
  ASSERT_THAT(told_.enrolled, SizeIs(2));
  EXPECT_EQ(told_.enrolled[0].uid, 1001U);
  EXPECT_EQ(told_.enrolled[1].uid, 1001U);
}

TEST_F(MemberTrackerTest, APidThatIsAnotherProcesssByNowIsNotTaken) {
  manage();
  tracker_->take_roster({.threads = {entry(10, 10, 50)}, .question = {{10}, false}}, now_);
  EXPECT_THAT(told_.exited, ElementsAre(10));
}

}  // namespace
}  // namespace swapd::daemon
