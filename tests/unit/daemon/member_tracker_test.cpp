// The managed set through forks, execs, exits, rosters and commands; kernel, observer and receivers are fakes.
#include "engine/member_tracker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fakes/fake_groups.h"
#include "fakes/fake_proc.h"
#include "fakes/fake_scheduler.h"
#include "unit/daemon/engine_words.h"

namespace swapd::daemon {
namespace {

using namespace std::chrono_literals;
using sys::ProcEvent;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::UnorderedElementsAre;

class FakeObserver final : public observe::Observer {
 public:
  [[nodiscard]] bool follows_children() const override { return follows; }
  [[nodiscard]] Status manage(const observe::Member& member) override {
    if (full) return Error(ENOSPC, "manage");
    managed.insert(member.id.tid);
    return Done{};
  }
  void release(ThreadId thread) override {
    managed.erase(thread.tid);
    released.push_back(thread.tid);
  }
  [[nodiscard]] bool inherits(pid_t tid) const override { return !strangers.contains(tid); }
  [[nodiscard]] Status listen(sys::EventLoop& /*loop*/) override { return Done{}; }
  [[nodiscard]] std::optional<Time> deadline() const override { return std::nullopt; }
  void drain(Time /*now*/, std::vector<Event>& /*out*/) override {}
  void report_new(Time /*now*/, std::vector<Event>& /*out*/) override {}
  void watch(const observe::Member& /*member*/, bool /*sender*/) override {}
  void unwatch(ThreadId /*thread*/) override {}
  void look(ThreadId /*thread*/, Time /*now*/, std::vector<Event>& /*out*/) override {}
  void resolve_again(ThreadId /*thread*/) override {}
  void trace_wakes(ThreadId /*thread*/, bool /*at_once*/) override {}
  void untrace_wakes(ThreadId /*thread*/) override {}
  void answer(const observe::WaitAnswer& /*answer*/, std::vector<Event>& /*out*/) override {}
  void answer(const observe::AccessAnswer& /*answer*/, std::vector<Event>& /*out*/) override {}
  void forget(ThreadId /*thread*/) override {}
  [[nodiscard]] observe::Costs costs() const override { return {}; }

  bool follows = true, full = false;
  std::set<pid_t> managed, strangers;
  std::vector<pid_t> released;
};

class IdleReceiver final : public observe::ReceiverHandle {
 public:
  [[nodiscard]] std::uint64_t received() const override { return 0; }
  [[nodiscard]] pid_t last_caller() const override { return 0; }
  [[nodiscard]] std::uint64_t lost() const override { return 0; }
  [[nodiscard]] Duration cpu_time() const override { return {}; }
  void set_urgent(bool /*urgent*/) override {}
  [[nodiscard]] Status follow(int /*cpu*/, int /*priority*/) override { return Done{}; }
};

class Told final : public MemberTracker::Followers {
 public:
  void on_event(const Event& event) override {
    if (const auto* in = std::get_if<Enrolled>(&event)) enrolled.push_back(*in);
    if (const auto* out = std::get_if<Exited>(&event)) exited.push_back(out->thread.tid);
    if (const auto* child = std::get_if<Accessed>(&event)) accessed.push_back(child->resource);
    if (const auto* exec = std::get_if<Execed>(&event)) execed.push_back(exec->thread.tid);
  }
  void on_left(ThreadId thread, bool ended) override { left.emplace_back(thread.tid, ended); }
  void on_forked(ThreadId parent, Time /*now*/) override { forked.push_back(parent.tid); }
  void on_process_born(pid_t child, pid_t parent) override { born.emplace_back(child, parent); }
  void on_process_released(pid_t tgid, std::uint64_t /*start_time*/) override { processes_released.push_back(tgid); }
  void on_image_gone(pid_t tgid) override { images_gone.push_back(tgid); }
  void on_number_free(pid_t tid) override { numbers_free.push_back(tid); }

  std::vector<Enrolled> enrolled;
  std::vector<pid_t> exited, execed, forked, processes_released, images_gone, numbers_free;
  std::vector<std::pair<pid_t, bool>> left;
  std::vector<std::pair<pid_t, pid_t>> born;
  std::vector<Resource> accessed;
};

class MemberTrackerTest : public testing::Test {
 protected:
  MemberTrackerTest() {
    groups_.enabled = false;
    feed_.want(Notes::all);
    begin({.processes = 4, .threads = 6});
  }
  void begin(UserQuota::Limits limits, bool by_filter = false) {
    quota_.emplace(members_, limits);
    tracker_.emplace(MemberTracker::Parts{kernel_, members_, observer_, actuator_, listeners_, *quota_, feed_, told_},
                     by_filter);
  }
  // A thread that /proc and the scheduler know.
  void make(pid_t tid, std::uint64_t start = 1, int nice = 0, std::uint32_t uid = alice) {
    proc_.add(tid, {.start_time = start, .uid = uid});
    scheduler_.add(tid, nice_of(nice));
  }
  void end(pid_t tid) {
    proc_.remove(tid);
    scheduler_.threads.erase(tid);
  }
  static RosterAnswer::Entry entry(pid_t tid, pid_t tgid, std::uint64_t start = 1, pid_t parent = 0,
                                   std::uint32_t uid = alice) {
    return {.id = {tid, start}, .tgid = tgid, .parent = parent, .uid = uid, .attr = nice_of(0), .process_start = start};
  }
  // Process 10 is managed, in class "batch".
  void manage(pid_t pid = 10, std::uint32_t uid = alice) {
    make(pid, 1, 0, uid);
    ASSERT_TRUE(tracker_->enroll_threads({entry(pid, pid, 1, 0, uid)}, "batch", now_));
  }
  void fork(pid_t child, pid_t parent, std::uint64_t start = 5) {
    tracker_->on_process_event({.what = ProcEvent::What::fork,
                                .tid = child,
                                .tgid = child,
                                .parent_tid = parent,
                                .parent_tgid = parent,
                                .start_time = start},
                               now_);
  }
  void fork_thread(pid_t tid, pid_t tgid, std::uint64_t start = 5) {
    tracker_->on_process_event({.what = ProcEvent::What::fork,
                                .tid = tid,
                                .tgid = tgid,
                                .parent_tid = tgid,
                                .parent_tgid = tgid,
                                .start_time = start},
                               now_);
  }
  void exit(pid_t tid) { tracker_->on_process_event({.what = ProcEvent::What::exit, .tid = tid, .tgid = tid}, now_); }
  void exec(pid_t tgid, pid_t former = 0) {
    tracker_->on_process_event({.what = ProcEvent::What::exec, .tid = tgid, .tgid = tgid, .former_tid = former}, now_);
  }
  std::vector<Note::Type> notes() {
    std::vector<Note::Type> out;
    for (const Note& note : feed_.take()) out.push_back(note.type);
    return out;
  }
  void boost(pid_t tid, const SchedAttr& attr) {
    actuate::Boost boost;
    boost.thread = {tid, 1};
    boost.requester = {99, 1};
    boost.attr = attr;
    actuator_.apply({&boost, 1}, now_);
  }

  Time now_{100s};
  fakes::FakeProc proc_;
  const sys::Procfs procfs_{proc_.root()};
  fakes::FakeScheduler scheduler_;
  fakes::FakeGroups groups_;
  ManualClock clock_;
  Kernel kernel_{procfs_, scheduler_, groups_, clock_};
  model::ManagedSet members_{{"batch", "interactive"}};
  FakeObserver observer_;
  actuate::Actuator actuator_{scheduler_, groups_, {.boot_id = "this-boot", .start_time = [](pid_t) {
                                                      return std::optional<std::uint64_t>(1);
                                                    }}};
  ListenerTable listeners_;
  EventFeed feed_{members_, clock_};
  Told told_;
  std::optional<UserQuota> quota_;
  std::optional<MemberTracker> tracker_;
};

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
