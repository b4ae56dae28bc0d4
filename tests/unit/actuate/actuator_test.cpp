// One thread is lent something: begin, change, end, and what others do to it meanwhile (docs/design.md, Donation).
#include "fixture.h"

namespace swapd::actuate {
namespace {

TEST_F(ActuatorTest, ADonationIsSetWithResetOnForkAndTakenBack) {
  scheduler_.add(10, nice_of(5));
  apply({boost(10, fifo(49))});
  EXPECT_EQ(attr(10), lent(fifo(49)));
  EXPECT_EQ(actuator().base(id(10)), nice_of(5));
  EXPECT_EQ(actuator().total(), 1U);
  apply({});
  EXPECT_EQ(attr(10), nice_of(5));
  EXPECT_EQ(actuator().base(id(10)), std::nullopt);
  EXPECT_EQ(heard(), (Heard{{What::begun, Ineffective::none}, {What::ended, Ineffective::none}}));
}

TEST_F(ActuatorTest, ARealTimeDonationCostsAtMostTwoCallsAtEitherEnd) {
  scheduler_.add(10, nice_of(0));
  apply({boost(10, fifo(49))});
  EXPECT_EQ(scheduler_.gets, 1);
  EXPECT_EQ(scheduler_.sets, 1);
  EXPECT_EQ(groups_.reads, 0);
  for (int i = 0; i < 100; ++i) apply({boost(10, fifo(49))});
  EXPECT_EQ(scheduler_.gets + scheduler_.sets, 2) << "what is renewed costs nothing";
  apply({});
  EXPECT_EQ(scheduler_.gets, 2);
  EXPECT_EQ(scheduler_.sets, 2);
}

TEST_F(ActuatorTest, OwnAttributesThatAreAsGoodAreLeftAloneAndNotReported) {
  scheduler_.add(10, fifo(49));
  scheduler_.add(11, nice_of(-10));
  SchedAttr deadline;
  deadline.policy = SchedPolicy::deadline;
  deadline.runtime_ns = 1;
  scheduler_.add(12, deadline);
  apply({boost(10, fifo(49)), boost(11, nice_of(-5)), boost(12, fifo(90))});
  apply({});
  EXPECT_EQ(scheduler_.sets, 0);
  EXPECT_TRUE(heard().empty());
  EXPECT_EQ(actuator().total(), 0U);
}

TEST_F(ActuatorTest, OwnResetOnForkIsGivenBackExactly) {
  SchedAttr own = fifo(3);
  own.reset_on_fork = true;
  scheduler_.add(10, own);
  scheduler_.add(11, fifo(3));
  apply({boost(10, fifo(20)), boost(11, fifo(20))});
  apply({});
  EXPECT_EQ(attr(10), own);
  EXPECT_EQ(attr(11), fifo(3));
}

TEST_F(ActuatorTest, ClassesAndSlicesComeBack) {
  SchedAttr batch = nice_of(7);
  batch.policy = SchedPolicy::batch;
  batch.runtime_ns = 5'000'000;
  SchedAttr idle;
  idle.policy = SchedPolicy::idle;
  SchedAttr rr = fifo(4);
  rr.policy = SchedPolicy::rr;
  scheduler_.add(10, batch);
  scheduler_.add(11, idle);
  scheduler_.add(12, rr);
  apply({boost(10, nice_of(-3)), boost(11, nice_of(0)), boost(12, fifo(30))});
  EXPECT_EQ(attr(10).runtime_ns, 5'000'000U) << "a slice is the thread's own affair";
  EXPECT_EQ(attr(10).nice, -3);
  EXPECT_EQ(attr(11), lent(nice_of(0)));
  EXPECT_EQ(attr(12), lent(fifo(30)));
  apply({});
  EXPECT_EQ(attr(10), batch);
  EXPECT_EQ(attr(11), idle);
  EXPECT_EQ(attr(12), rr);
}

TEST_F(ActuatorTest, AnotherDonorChangesIt) {
  scheduler_.add(10, nice_of(0));
  apply({boost(10, nice_of(-5), 900)});
  apply({boost(10, fifo(10), 901)});
  EXPECT_EQ(attr(10), lent(fifo(10)));
  apply({boost(10, fifo(10), 902)});
  apply({boost(10, nice_of(-5), 900)});
  EXPECT_EQ(attr(10), lent(nice_of(-5)));
  apply({});
  EXPECT_EQ(attr(10), nice_of(0));
  EXPECT_EQ(actuator().total(), 1U);
  EXPECT_EQ(heard(), (Heard{{What::begun, Ineffective::none},
                            {What::changed, Ineffective::none},
                            {What::changed, Ineffective::none},
                            {What::changed, Ineffective::none},
                            {What::ended, Ineffective::none}}));
}

TEST_F(ActuatorTest, ADonorThatFallsBelowTheThreadsOwnEndsIt) {
  scheduler_.add(10, nice_of(0));
  apply({boost(10, nice_of(-5))});
  apply({boost(10, nice_of(5))});
  EXPECT_EQ(attr(10), nice_of(0));
  EXPECT_EQ(actuator().active(id(10)), std::nullopt);
  apply({boost(10, nice_of(-5))});
  EXPECT_EQ(attr(10), lent(nice_of(-5)));
}

TEST_F(ActuatorTest, AReniceIsTheNewBaseAndTheBetterBoostGoesOn) {
  scheduler_.add(10, nice_of(0));
  apply({boost(10, nice_of(-5))});
  scheduler_.add(10, nice_of(3));
  clock_.advance(std::chrono::milliseconds(25));
  apply({boost(10, nice_of(-5))});
  EXPECT_EQ(attr(10), lent(nice_of(-5)));
  EXPECT_EQ(actuator().base(id(10)), nice_of(3));
  apply({});
  EXPECT_EQ(attr(10), nice_of(3));
  EXPECT_EQ(heard(), (Heard{{What::begun, Ineffective::none},
                            {What::rebased, Ineffective::none},
                            {What::changed, Ineffective::none},
                            {What::ended, Ineffective::none}}));
}

TEST_F(ActuatorTest, AReniceJustBeforeTheEndIsNotUndone) {
  scheduler_.add(10, nice_of(0));
  apply({boost(10, nice_of(-5))});
  scheduler_.add(10, nice_of(-7));
  apply({});
  EXPECT_EQ(attr(10), nice_of(-7));
  EXPECT_EQ(outcomes_.back().base, nice_of(-7));
}

class SliceTest : public ActuatorTest {
 protected:
  SliceTest() { scheduler_.slice = 3'000'000; }
  static Boost slice(pid_t tid, int nice, std::uint64_t ns = 100'000) {
    SchedAttr attr = nice_of(nice);
    attr.runtime_ns = ns;
    Boost asked{id(tid), {}, {}, attr};
    asked.slice_only = asked.quiet = asked.stands = true;
    return asked;
  }
};

TEST_F(SliceTest, AloneIsLentAndGivenBack) {
  scheduler_.add(10, nice_of(-5));
  apply({slice(10, -5)});
  EXPECT_EQ(attr(10).runtime_ns, 100'000U);
  EXPECT_EQ(attr(10).nice, -5);
  EXPECT_FALSE(attr(10).reset_on_fork) << "its children are born with what they would have anyhow";
  apply({});
  EXPECT_EQ(attr(10), nice_of(-5));
}

TEST_F(SliceTest, AReniceMeanwhileStands) {
  scheduler_.add(10, nice_of(-10));
  apply({slice(10, -10)});
  scheduler_.add(10, nice_of(5));
  clock_.advance(std::chrono::milliseconds(25));
  apply({slice(10, -10)});
  EXPECT_EQ(attr(10).nice, 5);
  EXPECT_EQ(actuator().base(id(10)), nice_of(5));
  apply({});
  EXPECT_EQ(attr(10), nice_of(5));
}

TEST_F(SliceTest, AnOldNiceValueIsNotGivenToAThreadThatHasAnother) {
  scheduler_.add(10, nice_of(5));
  apply({slice(10, -10)});
  EXPECT_EQ(attr(10).nice, 5);
}

TEST_F(SliceTest, AThreadThatInsistsOnItsOwnIsLeftAlone) {
  scheduler_.add(10, nice_of(0));
  for (int i = 0; i < 6; ++i) {
    apply({slice(10, 0)});
    SchedAttr own = nice_of(0);
    own.runtime_ns = 20'000'000;
    scheduler_.add(10, own);
    clock_.advance(std::chrono::milliseconds(25));
  }
  const int sets = scheduler_.sets;
  apply({slice(10, 0)});
  EXPECT_EQ(scheduler_.sets, sets);
  EXPECT_EQ(attr(10).runtime_ns, 20'000'000U);
}

TEST_F(SliceTest, IsNotLentToAThreadThatHasAShorterOneOrAClassOfItsOwn) {
  SchedAttr quick = nice_of(-5), batch = nice_of(0), idle;
  quick.runtime_ns = 100'000;
  batch.policy = SchedPolicy::batch;
  idle.policy = SchedPolicy::idle;
  scheduler_.add(10, quick);
  scheduler_.add(11, batch);
  scheduler_.add(12, fifo(1));
  scheduler_.add(13, idle);
  apply({slice(10, -5, 200'000), slice(11, 0), slice(12, 0), slice(13, 0)});
  EXPECT_EQ(scheduler_.sets, 0);
}

TEST_F(SliceTest, ADonationFollowsAndTheSliceStays) {
  scheduler_.add(10, nice_of(0));
  apply({slice(10, 0)});
  SchedAttr lent_attr = nice_of(-5);
  lent_attr.runtime_ns = 100'000;
  apply({boost(10, lent_attr)});
  EXPECT_EQ(attr(10).nice, -5);
  apply({slice(10, 0)});
  EXPECT_EQ(attr(10).nice, 0);
  EXPECT_EQ(attr(10).runtime_ns, 100'000U);
  apply({});
  EXPECT_EQ(attr(10), nice_of(0));
}

TEST_F(SliceTest, AKernelWithoutSlicesIsAskedForNone) {
  scheduler_.slice = 0;
  scheduler_.add(10, nice_of(-5));
  scheduler_.add(11, nice_of(0));
  SchedAttr lent_attr = nice_of(-5);
  lent_attr.runtime_ns = 100'000;
  apply({slice(10, -5), boost(11, lent_attr)});
  EXPECT_EQ(attr(10), nice_of(-5));
  EXPECT_EQ(attr(11), lent(nice_of(-5)));
}

TEST_F(ActuatorTest, ANiceDonationComesWithAShorterSlice) {
  scheduler_.slice = 3'000'000;
  SchedAttr quick = nice_of(0);
  quick.runtime_ns = 200'000;
  scheduler_.add(10, nice_of(0));
  scheduler_.add(11, quick);
  scheduler_.add(12, nice_of(0));
  apply({boost(10, nice_of(-5)), boost(11, nice_of(-5)), boost(12, fifo(3))});
  EXPECT_EQ(attr(10).runtime_ns, 1'500'000U);
  EXPECT_EQ(attr(11).runtime_ns, 200'000U) << "shorter already";
  EXPECT_EQ(attr(12).runtime_ns, 0U) << "real-time classes have none";
  apply({});
  EXPECT_EQ(attr(10), nice_of(0));
  EXPECT_EQ(attr(11), quick);
}

TEST_F(ActuatorTest, AReniceLeavesNothingOfOurs) {
  scheduler_.slice = 3'000'000;
  scheduler_.add(10, nice_of(0));
  scheduler_.add(11, nice_of(0));
  apply({boost(10, nice_of(-5)), boost(11, nice_of(-5))});
  scheduler_.renice(10, -7);
  clock_.advance(std::chrono::milliseconds(25));
  apply({boost(10, nice_of(-5)), boost(11, nice_of(-5))});
  EXPECT_EQ(attr(10), nice_of(-7)) << "seen in mid-donation";
  scheduler_.renice(11, -7);
  apply({});
  EXPECT_EQ(attr(11), nice_of(-7)) << "seen at the end only";
}

// A thread that may not raise its priority may lower it: to a little less than the boost, to keep it.
TEST_F(ActuatorTest, ALoanCannotBeKeptByLoweringIt) {
  for (const bool in_mid_donation : {true, false}) {
    for (const bool privileged : {true, false}) {
      scheduler_.add(10, nice_of(0)).privileged = privileged;
      scheduler_.add(11, nice_of(0)).privileged = privileged;
      apply({boost(10, fifo(49)), boost(11, nice_of(-10))});
      scheduler_.threads.at(10).attr.rt_priority = 47;
      scheduler_.renice(11, -9);
      clock_.advance(std::chrono::milliseconds(25));
      if (in_mid_donation) apply({boost(10, fifo(49)), boost(11, nice_of(-10))});
      apply({});
      EXPECT_EQ(attr(10).realtime(), privileged);
      EXPECT_EQ(attr(11).nice, privileged ? -9 : 0);
      EXPECT_FALSE(attr(10).reset_on_fork && !privileged);
    }
  }
}

TEST_F(ActuatorTest, WhatIsLowerThanItsOwnIsRespectedOfAnybody) {
  scheduler_.add(10, nice_of(0)).privileged = false;
  apply({boost(10, nice_of(-10))});
  scheduler_.renice(10, 7);
  apply({});
  EXPECT_EQ(attr(10), nice_of(7));
}

// execve(2) by another thread than the leader: it becomes the leader, and keeps its attributes.
TEST_F(ActuatorTest, AThreadThatHasBecomeAnotherIsGivenItsOwnThere) {
  scheduler_.add(11, nice_of(4));
  apply({boost(11, fifo(30))});
  scheduler_.add(10, attr(11));
  scheduler_.renice(10, 4);
  scheduler_.threads.erase(11);
  actuator().became(id(11), id(10));
  EXPECT_EQ(attr(10).policy, SchedPolicy::other);
  EXPECT_EQ(attr(10).nice, 4);
  EXPECT_TRUE(actuator().active().empty());
  EXPECT_EQ(outcomes_.back().what, What::ended);
}

TEST_F(ActuatorTest, AReniceHiddenUnderARealTimeDonationIsNotUndone) {
  scheduler_.add(10, nice_of(0));
  scheduler_.add(11, nice_of(0));
  apply({boost(10, fifo(10)), boost(11, fifo(10))});
  scheduler_.renice(10, 8);
  clock_.advance(std::chrono::milliseconds(25));
  apply({boost(10, fifo(10)), boost(11, fifo(10))});
  EXPECT_EQ(actuator().base(id(10)), nice_of(8)) << "seen in mid-donation";
  EXPECT_EQ(attr(10), lent(fifo(10)));
  scheduler_.renice(11, 9);
  apply({});
  EXPECT_EQ(attr(10), nice_of(8));
  EXPECT_EQ(attr(11), nice_of(9)) << "seen at the end only";
}

TEST_F(ActuatorTest, SomebodyWhoInsistsIsLeftTheThread) {
  scheduler_.add(10, nice_of(0));
  apply({boost(10, nice_of(-5))});
  for (int i = 0; i < 10; ++i) {
    scheduler_.add(10, nice_of(1));
    clock_.advance(std::chrono::milliseconds(25));
    apply({boost(10, nice_of(-5))});
  }
  EXPECT_EQ(attr(10), nice_of(1));
  EXPECT_EQ(scheduler_.sets, 3) << "the boost and two more tries";
  apply({});
  EXPECT_EQ(attr(10), nice_of(1));
}

TEST_F(ActuatorTest, SetBaseChangesWhatADonationHides) {
  scheduler_.add(10, nice_of(0));
  apply({boost(10, fifo(10))});
  ASSERT_TRUE(actuator().set_base(id(10), nice_of(12)).ok());
  EXPECT_EQ(attr(10), lent(fifo(10)));
  EXPECT_EQ(actuator().base(id(10)), nice_of(12));
  apply({});
  EXPECT_EQ(attr(10), nice_of(12));
}

TEST_F(ActuatorTest, SetBaseAboveTheDonationEndsIt) {
  scheduler_.add(10, nice_of(0));
  apply({boost(10, fifo(10))});
  ASSERT_TRUE(actuator().set_base(id(10), fifo(50)).ok());
  EXPECT_EQ(attr(10), fifo(50));
  apply({boost(10, fifo(10))});
  EXPECT_EQ(attr(10), fifo(50));
  ASSERT_TRUE(actuator().set_base(id(10), fifo(5)).ok());
  apply({boost(10, fifo(10))});
  EXPECT_EQ(attr(10), lent(fifo(10)));
}

TEST_F(ActuatorTest, SetBaseOfARecycledTidIsRefused) {
  scheduler_.add(10, nice_of(0));
  start_times_[10] = 2;
  const auto answer = actuator().set_base(id(10), nice_of(5));
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), ESRCH);
  EXPECT_EQ(attr(10), nice_of(0));
}

TEST_F(ActuatorTest, AThreadThatEndsIsNormal) {
  scheduler_.add(10, nice_of(0));
  scheduler_.add(11, nice_of(0));
  apply({boost(10, fifo(10)), boost(11, fifo(10)), boost(12, fifo(10))});
  scheduler_.threads.clear();
  actuator().forget(id(10));
  clock_.advance(std::chrono::milliseconds(25));
  apply({boost(11, fifo(10))});
  apply({});
  EXPECT_TRUE(actuator().active().empty());
  EXPECT_EQ(heard(), (Heard{{What::begun, Ineffective::none},
                            {What::begun, Ineffective::none},
                            {What::ended, Ineffective::none},
                            {What::ended, Ineffective::none}}));
}

TEST_F(ActuatorTest, AMissingPrivilegeIsReportedOnce) {
  scheduler_.add(10, nice_of(0)).set_error = EPERM;
  Boost realtime = boost(10, fifo(10));
  realtime.second_best = lent(nice_of(-20));
  for (int i = 0; i < 3; ++i) apply({realtime});
  apply({});
  EXPECT_EQ(heard(), (Heard{{What::failed, Ineffective::none}}));
  EXPECT_EQ(scheduler_.sets, 2) << "the best, the second best";
}

TEST_F(ActuatorTest, AGroupWithoutRealTimeRuntimeIsTheReason) {
  scheduler_.add(10, nice_of(0)).set_error = EPERM;
  groups_.group_of_tid[10] = "/batch";
  groups_.weighted["/batch"].rt_runtime_us = 0;
  apply({boost(10, fifo(10))});
  ASSERT_TRUE(actuator().active(id(10)));
  EXPECT_EQ(actuator().active(id(10))->reason, Ineffective::rt_group);
  EXPECT_EQ(actuator().base(id(10)), std::nullopt);
  apply({});
  EXPECT_EQ(heard(), (Heard{{What::ineffective, Ineffective::rt_group}, {What::ended, Ineffective::none}}));
}

TEST_F(ActuatorTest, AThreadConfinedToCpusOfHigherRankGainsNothing) {
  scheduler_.add(10, nice_of(0));
  scheduler_.add(11, nice_of(0));
  CPU_SET(1, &scheduler_.threads[11].cpus);
  Competitors rivals;
  rivals.cpu_ranks = {100 + 80, 20};
  actuator().set_competitors(rivals);
  apply({boost(10, fifo(30)), boost(11, fifo(30))});
  EXPECT_EQ(actuator().active(id(10))->reason, Ineffective::affinity);
  EXPECT_EQ(actuator().active(id(11))->reason, Ineffective::none);
}

TEST_F(ActuatorTest, TellsWhetherAnythingIsLentAndWhatIsRealTimeOfIt) {
  scheduler_.add(10, nice_of(0));
  scheduler_.add(11, nice_of(0));
  start(options());
  EXPECT_FALSE(actuator().any_active());
  auto quiet = boost(11, nice_of(-5));
  quiet.quiet = true;
  apply({quiet});
  EXPECT_FALSE(actuator().any_active());
  apply({boost(10, fifo(10)), boost(11, nice_of(-5))});
  EXPECT_TRUE(actuator().any_active());
  const auto realtime = actuator().realtime();
  ASSERT_EQ(realtime.size(), 1U);
  EXPECT_EQ(realtime[0].boost.thread, id(10));
}

// Two actuators that are told of the same boosts, one always of all, one of what has changed where it takes that.
TEST_F(ActuatorTest, ChangesAloneDoWhatTheWholeSetDoes) {
  fakes::FakeScheduler other_scheduler;
  auto without_journal = options();
  without_journal.state_dir.clear();
  start(without_journal);
  Actuator other(other_scheduler, groups_, without_journal);
  const auto expect_the_same = [&] {
    for (pid_t tid = 10; tid < 18; ++tid) EXPECT_EQ(attr(tid), other_scheduler.threads.at(tid).attr) << tid;
  };
  for (pid_t tid = 10; tid < 18; ++tid)
    for (auto* scheduler : {&scheduler_, &other_scheduler}) scheduler->add(tid, nice_of(0));
  std::map<pid_t, Boost> boosts;
  unsigned state = 1;
  const auto any = [&](unsigned below) { return (state = state * 1103515245U + 12345U) / 65536U % below; };
  int changes = 0;
  for (int step = 0; step < 2000; ++step) {
    clock_.advance(std::chrono::milliseconds(any(8)));
    const auto tid = static_cast<pid_t>(10 + any(8));
    std::vector<Boost> whole, changed;
    std::vector<ThreadId> over;
    if (any(3) == 0) {
      over.push_back(id(tid));
      boosts.erase(tid);
    } else {
      boosts[tid] = boost(tid, any(3) == 0 ? fifo(10) : nice_of(-static_cast<int>(any(20))));
      boosts[tid].quiet = any(4) == 0;
      boosts[tid].slice_only = any(4) == 0;
      changed.push_back(boosts[tid]);
    }
    for (const auto& [of, one] : boosts) whole.push_back(one);
    actuator().apply(whole, clock_.now());
    if (other.takes_changes(clock_.now())) {
      other.apply_changes(changed, over, clock_.now());
      ++changes;
    } else {
      other.apply(whole, clock_.now());
    }
    expect_the_same();
    ASSERT_FALSE(HasFailure()) << step;
  }
  EXPECT_GT(changes, 1000);
  actuator().restore_all();
  other.restore_all();
  expect_the_same();
}

TEST_F(ActuatorTest, TheWholeSetIsWantedAtFirstAndEachTwentyMilliseconds) {
  scheduler_.add(10, nice_of(0));
  start(options());
  EXPECT_FALSE(actuator().takes_changes(clock_.now()));
  apply({boost(10, nice_of(-5))});
  EXPECT_TRUE(actuator().takes_changes(clock_.now()));
  actuator().set_competitors({.cpu_groups = {"/a"}});
  EXPECT_FALSE(actuator().takes_changes(clock_.now())) << "what a boost can do may have changed";
  apply({boost(10, nice_of(-5))});
  clock_.advance(std::chrono::milliseconds(19));
  EXPECT_TRUE(actuator().takes_changes(clock_.now()));
  clock_.advance(std::chrono::milliseconds(1));
  EXPECT_FALSE(actuator().takes_changes(clock_.now()));
}

TEST_F(ActuatorTest, DryRunTouchesNothingAndTellsAll) {
  auto dry = options();
  dry.dry_run = true;
  start(dry);
  groups_.enabled = true;
  groups_.autogroup_of = {{11, 5}};
  scheduler_.add(10, nice_of(0));
  scheduler_.add(11, nice_of(0));
  apply({boost(10, fifo(10)), boost(11, nice_of(-5))});
  clock_.advance(std::chrono::seconds(1));
  apply({boost(10, fifo(10)), boost(11, nice_of(-5))});
  EXPECT_EQ(actuator().active().size(), 2U);
  apply({});
  EXPECT_EQ(scheduler_.sets, 0);
  EXPECT_EQ(groups_.autogroup_nice[5], 0);
  EXPECT_FALSE(std::filesystem::exists(dir_ + "/journal"));
  EXPECT_EQ(heard().size(), 4U);
}

TEST_F(ActuatorTest, TheDestructorRestoresAndSpeaksToNobody) {
  scheduler_.add(10, nice_of(0));
  apply({boost(10, fifo(10))});
  (void)heard();
  actuator_.reset();
  EXPECT_EQ(attr(10), nice_of(0));
  EXPECT_TRUE(outcomes_.empty());
}

TEST(IneffectiveName, IsTheContractsWord) {
  EXPECT_EQ(name(Ineffective::none), "none");
  EXPECT_EQ(name(Ineffective::autogroup), "autogroup");
  EXPECT_EQ(name(Ineffective::cgroup_weight), "cgroup-weight");
  EXPECT_EQ(name(Ineffective::cgroup_quota), "cgroup-quota");
  EXPECT_EQ(name(Ineffective::frozen), "frozen");
  EXPECT_EQ(name(Ineffective::unmanaged), "unmanaged");
  EXPECT_EQ(name(Ineffective::rt_group), "rt-group");
  EXPECT_EQ(name(Ineffective::affinity), "affinity");
  EXPECT_EQ(name(Ineffective::ceiling), "ceiling");
  EXPECT_EQ(name(Ineffective::policy), "policy");
}

}  // namespace
}  // namespace swapd::actuate
