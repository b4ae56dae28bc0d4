// Parallel jobs beside others on a machine that is made up: what is demanded, and what each has of the CPUs.
#include "decide/coscheduling/coscheduling_decider.h"

#include <gmock/gmock.h>

#include "unit/decide/parallel_machine.h"

namespace swapd::test {
namespace {

using decide::CoschedulingConfig;
using Mode = CoschedulingConfig::Mode;
using State = decide::JobFinder::State;
using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Key;
using testing::SizeIs;
using namespace std::chrono_literals;

double seconds_of(Duration time) { return std::chrono::duration<double>(time).count(); }

CoschedulingConfig with_cpus(int cpus) {
  CoschedulingConfig config;
  config.cpus = cpus;
  return config;
}

// Two threads that spin for each other, each with a hog beside it.
class Coscheduling : public testing::Test {
 protected:
  explicit Coscheduling(const CoschedulingConfig& config = ParallelRun::two_cpus()) : run(config) {}
  void two_and_two(double waits = 0.8) {
    run.spinner(p1, 0, 1, waits);
    run.spinner(p2, 1, 1, waits);
    hogs = {run.hog(0), run.hog(1)};
  }
  // Until the job runs in slots.
  void begin() {
    ASSERT_TRUE(run.run_until([&] { return run.in_slot(p1); })) << "no slot within a second";
  }
  void hogs_end() {
    for (const ThreadId hog : hogs) run.machine.remove(hog);
    hogs.clear();
  }
  // F of the job's threads from then on.
  struct Counted {
    std::map<ThreadId, Duration> used;
    Time since{};
  };
  Counted count(const std::vector<ThreadId>& threads) {
    Counted counted{.used = {}, .since = run.now()};
    for (const ThreadId thread : threads) counted.used[thread] = run.used(thread);
    return counted;
  }
  double share_since(const Counted& counted) {
    Duration used{};
    for (const auto& [thread, before] : counted.used) used += run.used(thread) - before;
    return seconds_of(used) / seconds_of(run.now() - counted.since) / static_cast<double>(counted.used.size());
  }

  ParallelRun run;
  std::vector<ThreadId> hogs;
};

TEST_F(Coscheduling, JobThatWaitsOnItsCpusRunsInSlotsAfterTwoWindows) {
  two_and_two();
  run.run(ParallelRun::window * 2 - 1ms);
  EXPECT_FALSE(run.touched(p1));
  run.run(10ms);
  EXPECT_EQ(run.state(), State::wanted);
  EXPECT_TRUE(run.touched(p1));
  EXPECT_TRUE(run.touched(p2));
}

TEST_F(Coscheduling, InItsSlotAllThreadsAreRealTimeAndInBetweenIdle) {
  two_and_two();
  begin();
  int slots = 0, gaps = 0;
  run.after_turn = [&] {
    ASSERT_EQ(run.in_slot(p1), run.in_slot(p2));
    ASSERT_EQ(run.between_slots(p1), run.between_slots(p2));
    ASSERT_NE(run.in_slot(p1), run.between_slots(p1));
    ++(run.in_slot(p1) ? slots : gaps);
  };
  run.run(1s);
  EXPECT_GT(slots, 20);
  EXPECT_GT(gaps, 20);
}

TEST_F(Coscheduling, SlotHasTheLowestRealTimePriorityAndASecondBest) {
  two_and_two();
  begin();
  const decide::Grant* grant = run.turns().grant(p1);
  ASSERT_NE(grant, nullptr);
  EXPECT_EQ(grant->run.attr, donated(fifo(1)));
  EXPECT_EQ(grant->run.second_best, donated(nice(-20)));
  EXPECT_FALSE(grant->run.lowers);
  EXPECT_TRUE(grant->run.quiet);
  EXPECT_EQ(grant->run.cause.by, decide::CoschedulingDecider::decider_name);
  EXPECT_FALSE(grant->run.cause.on_behalf_of.valid());
}

TEST_F(Coscheduling, BetweenSlotsAThreadIsLoweredAndKeepsItsNiceValue) {
  run.spinner(p1, 0, 1, 0.8, nice(5));
  run.spinner(p2, 1, 1, 0.8, nice(5));
  for (const int cpu : {0, 1}) run.hog(cpu);
  ASSERT_TRUE(run.run_until([&] { return run.between_slots(p1); }));
  const decide::Grant* grant = run.turns().grant(p1);
  EXPECT_TRUE(grant->run.lowers);
  EXPECT_TRUE(grant->run.quiet);
  EXPECT_EQ(grant->run.attr.nice, 5);
}

TEST_F(Coscheduling, ThreadsAreMeasuredWhenTheyHaveLostTheirCpus) {
  two_and_two();
  begin();
  ASSERT_TRUE(run.run_until([&] { return run.between_slots(p1); }));
  // The turn that has ended the slot.
  EXPECT_THAT(run.turns().looks, SizeIs(2));
  EXPECT_THAT(run.turns().looks, Each(testing::Field(&decide::Look::at, decide::Look::At::run_time)));
  EXPECT_GT(run.turns().rounds, 1);
}

TEST_F(Coscheduling, SlotsArePunctual) {
  two_and_two();
  EXPECT_EQ(run.turns().panel->punctual_next(), std::nullopt);
  begin();
  EXPECT_EQ(run.turns().panel->punctual_next(), run.decider->gangs().next());
  EXPECT_NE(run.turns().panel->punctual_next(), std::nullopt);
}

TEST_F(Coscheduling, JobHasItsFairShareOverALongTime) {
  two_and_two();
  run.run(1s);
  const Counted counted = count({p1, p2});
  run.run(60s);
  EXPECT_NEAR(share_since(counted) / 0.5, 1, 0.02);
  const double apart = seconds_of(std::chrono::abs(run.used(p1) - run.used(p2)));
  EXPECT_LT(apart, 0.2);
}

TEST_F(Coscheduling, ItHasItsFairShareAlsoIfThatChangesEverySecond) {
  two_and_two();
  run.run(1s);
  const Counted counted = count({p1, p2});
  std::vector<ThreadId> more;
  for (int second = 0; second < 60; ++second) {
    if (second % 2 == 0) {
      for (const int cpu : {0, 1})
        for (int i = 0; i < 3; ++i) more.push_back(run.hog(cpu));
    } else {
      for (const ThreadId hog : std::exchange(more, {})) run.machine.remove(hog);
    }
    run.run(1s);
  }
  EXPECT_NEAR(share_since(counted) / ((0.5 + 0.2) / 2), 1, 0.02);
}

TEST_F(Coscheduling, ItsShareFollowsItsNiceValue) {
  run.spinner(p1, 0, 1, 0.8, nice(5));
  run.spinner(p2, 1, 1, 0.8, nice(5));
  for (const int cpu : {0, 1}) run.hog(cpu);
  run.run(1s);
  const Counted counted = count({p1, p2});
  run.run(20s);
  const double weight = ParallelMachine::weight(nice(5));
  EXPECT_NEAR(share_since(counted) / (weight / (weight + 1024)), 1, 0.03);
}

TEST_F(Coscheduling, TwoJobsOnTheSameCpusHaveEachTheirShareAndNeverASlotTogether) {
  two_and_two();
  run.spinner(p3, 0, 2);
  run.spinner(p4, 1, 2);
  run.run(1s);
  const Counted first = count({p1, p2}), second = count({p3, p4});
  bool together = false;
  run.after_turn = [&] { together = together || (run.in_slot(p1) && run.in_slot(p3)); };
  run.run(60s);
  EXPECT_FALSE(together);
  EXPECT_NEAR(share_since(first) / (1.0 / 3), 1, 0.02);
  EXPECT_NEAR(share_since(second) / (1.0 / 3), 1, 0.02);
}

TEST_F(Coscheduling, TwoJobsAloneOnTheirCpusHaveHalfOfThemEach) {
  for (const auto& [thread, cpu, job] : {std::tuple(p1, 0, 1U), {p2, 1, 1U}, {p3, 0, 2U}, {p4, 1, 2U}})
    run.spinner(thread, cpu, job);
  run.run(1s);
  const Counted first = count({p1, p2}), second = count({p3, p4});
  run.run(30s);
  EXPECT_EQ(run.state(1), State::wanted);
  EXPECT_EQ(run.state(2), State::wanted);
  EXPECT_NEAR(share_since(first) / 0.5, 1, 0.02);
  EXPECT_NEAR(share_since(second) / 0.5, 1, 0.02);
}

class CoschedulingOnFourCpus : public Coscheduling {
 protected:
  CoschedulingOnFourCpus() : Coscheduling(with_cpus(4)) {}
};

TEST_F(CoschedulingOnFourCpus, TwoJobsOnDifferentCpusDoNotWaitForEachOther) {
  for (const auto& [thread, cpu, job] : {std::tuple(p1, 0, 1U), {p2, 1, 1U}, {p3, 2, 2U}, {p4, 3, 2U}}) {
    run.spinner(thread, cpu, job);
    run.hog(cpu);
  }
  begin();
  bool together = false;
  run.after_turn = [&] { together = together || (run.in_slot(p1) && run.in_slot(p3)); };
  run.run(5s);
  EXPECT_TRUE(together);
  for (const auto& [id, gang] : run.decider->gangs().all()) EXPECT_EQ(gang.refused.busy, 0U);
}

TEST_F(Coscheduling, JobWhoseThreadsDoNotWaitIsLeftAlone) {
  two_and_two(0.01);
  run.after_turn = [&] { ASSERT_THAT(run.turns().panel->grants(), IsEmpty()); };
  run.run(5s);
  EXPECT_EQ(run.state(), State::useful);
}

TEST_F(Coscheduling, JobThatBlocksIsLeftAlone) {
  two_and_two(0);
  run.after_turn = [&] {
    ASSERT_THAT(run.turns().panel->grants(), IsEmpty());
    for (const ThreadId thread : {p1, p2}) run.machine.of(thread).blocked = run.turns_taken() % 2 == 0;
  };
  run.run(5s);
}

TEST_F(Coscheduling, JobAloneOnTheMachineIsLeftAlone) {
  run.spinner(p1, 0);
  run.spinner(p2, 1);
  run.after_turn = [&] { ASSERT_THAT(run.turns().panel->grants(), IsEmpty()); };
  run.run(3s);
  EXPECT_EQ(run.state(), State::alone);
}

TEST_F(Coscheduling, WithoutAJobItAsksForNoTurn) {
  two_and_two(0.01);
  run.run(1s);
  EXPECT_LE(run.turns_taken(), 1s / ParallelRun::window + 2) << "one for each window";
}

TEST_F(Coscheduling, MoreThreadsThanCpusAreAsTheyWereAndTakeShortTurns) {
  two_and_two();
  run.spinner(p3, 0);
  run.after_turn = [&] { ASSERT_THAT(run.turns().panel->grants(), IsEmpty()); };
  run.run(3s);
  EXPECT_EQ(run.state(), State::round_robin);
  EXPECT_THAT(run.short_turns(), ElementsAre(Key(0), Key(1)));
  for (const ThreadId one : {p1, p2, p3}) run.leaves(one);
  run.turns().turn();
  EXPECT_THAT(run.short_turns(), IsEmpty()) << "they end with the job, at once";
}

TEST_F(Coscheduling, MoreThreadsThanCpusThatComputeAreLeftAlone) {
  for (const auto& [one, cpu] : {std::pair(p1, 0), std::pair(p2, 1), std::pair(p3, 0)}) run.spinner(one, cpu, 1, 0.05);
  run.run(3s);
  EXPECT_EQ(run.state(), State::crowded);
  EXPECT_THAT(run.short_turns(), IsEmpty());
}

TEST_F(Coscheduling, ThreadsOfAnotherSchedulingClassAreNotTouched) {
  int number = 1;
  for (const SchedPolicy policy : {SchedPolicy::batch, SchedPolicy::idle, SchedPolicy::rr}) {
    const std::uint8_t priority = policy == SchedPolicy::rr ? 1 : 0;
    const auto job = static_cast<std::uint64_t>(number);
    for (const int cpu : {0, 1})
      run.spinner(thread(number++), cpu, job, 0.8, {.policy = policy, .rt_priority = priority});
  }
  for (const int cpu : {0, 1}) run.hog(cpu);
  run.after_turn = [&] { ASSERT_THAT(run.turns().panel->grants(), IsEmpty()); };
  run.run(3s);
}

TEST_F(Coscheduling, ThreadThatTakesAClassOfItsOwnIsLetGo) {
  two_and_two();
  begin();
  run.turns().take(Enrolled{run.now(), p1, p1.tid, 1000, {.policy = SchedPolicy::batch}, 0, usual_weight});
  run.run(50ms);
  EXPECT_FALSE(run.touched(p1));
}

TEST_F(Coscheduling, JobWhoseThreadsAllBlockIsNotLoweredMeanwhile) {
  two_and_two();
  begin();
  for (const ThreadId thread : {p1, p2}) run.machine.of(thread).blocked = true;
  run.run(100ms);
  EXPECT_FALSE(run.touched(p1));
  EXPECT_FALSE(run.touched(p2));
  for (const ThreadId thread : {p1, p2}) run.machine.of(thread).blocked = false;
  run.run(100ms);
  EXPECT_TRUE(run.touched(p1));
}

TEST_F(Coscheduling, DemandsEndWhenNobodyCompetesAnyMore) {
  two_and_two();
  begin();
  hogs_end();
  run.run(8 * ParallelRun::window);  // its share is the median of seven
  EXPECT_THAT(run.turns().panel->grants(), IsEmpty());
  EXPECT_THAT(run.decider->gangs().all(), IsEmpty());
  run.run(1s);
  EXPECT_EQ(run.state(), State::alone);
}

TEST_F(Coscheduling, AndBeginAgainWhenSomebodyDoes) {
  two_and_two();
  begin();
  hogs_end();
  run.run(1s);
  for (const int cpu : {0, 1}) run.hog(cpu);
  run.run(1s);
  EXPECT_TRUE(run.touched(p1));
}

TEST_F(Coscheduling, ForgottenThreadInMidSlotIsNamedNowhere) {
  two_and_two();
  run.spinner(p3, 0, 9, 0);  // a program that goes on
  begin();
  run.leaves(p1);
  const auto named = [&] {
    for (const decide::Look& look : run.turns().looks) EXPECT_NE(look.thread, p1);
    EXPECT_FALSE(run.touched(p1));
    for (const decide::CoschedulingDecider::JobView& job : run.decider->jobs())
      for (const decide::JobFinder::Member& member : job.members) EXPECT_NE(member.thread, p1);
  };
  run.after_turn = named;
  run.run(1s);
  EXPECT_FALSE(run.touched(p2)) << "one thread is no job";
}

// A compiler starts and ends thousands of processes.
TEST(CoschedulingDecider, ExitOfAThreadOfNoJobChangesNoDemands) {
  decide::CoschedulingDecider decider(ParallelRun::two_cpus());
  const model::Model model{model::Settings{}};
  decide::Plan plan;
  decider.forget(p1);
  decider.decide(model, {.now = Time{1h}}, plan);
  EXPECT_TRUE(plan.keeps_demands);
}

TEST_F(Coscheduling, JobThatEndsLeavesNothing) {
  two_and_two();
  run.spinner(p3, 0, 9, 0);
  begin();
  run.leaves(p1);
  run.leaves(p2);
  run.run(1s);
  EXPECT_THAT(run.turns().panel->grants(), IsEmpty());
  EXPECT_THAT(run.decider->gangs().all(), IsEmpty());
  EXPECT_FALSE(run.decider->finder().jobs().contains(1));
}

TEST_F(Coscheduling, JobThatEndsAsksForNoMoreTurnsThoughNoWindowComes) {
  two_and_two();
  begin();
  run.leaves(p1);
  run.leaves(p2);  // the profile is closed: no thread is left to be coscheduled
  run.run(100ms);
  const int before = run.turns_taken();
  run.run(5s);
  EXPECT_LE(run.turns_taken() - before, 5s / ParallelRun::window + 2) << "one a window, and no slots";
}

TEST_F(Coscheduling, RestOfAJobOfWhichNothingIsHeardAnyMoreIsLetGo) {
  two_and_two();
  begin();
  run.leaves(p1);
  run.machine.of(p2).job = 0;  // one thread needs no profile: no window comes
  run.run(5s);
  EXPECT_FALSE(run.touched(p2));
}

TEST_F(Coscheduling, DonationToAThreadOverrulesItsSlotByRank) {
  two_and_two();
  run.turns().enroll(p5, fifo(50));
  begin();
  run.turns().provides(p1, r1);
  run.turns().blocks(p5, {r1});
  run.turns().turn();
  EXPECT_EQ(run.turns().on_behalf_of(p1), p5);
  EXPECT_EQ(run.runs_as(p1)->rt_priority, 49);
  EXPECT_TRUE(run.in_slot(p2)) << "its mate runs as before";
  run.turns().wakes(p5, p1, r1);
  run.run(100ms);
  EXPECT_FALSE(run.turns().on_behalf_of(p1).valid());
  EXPECT_TRUE(run.touched(p1));
}

TEST_F(Coscheduling, DonationOfANiceValueHoldsBetweenSlotsOnly) {
  two_and_two();
  run.turns().enroll(p5, nice(-5));
  ASSERT_TRUE(run.run_until([&] { return run.between_slots(p1); }));
  run.turns().provides(p1, r1);
  run.turns().blocks(p5, {r1});
  run.turns().turn();
  EXPECT_EQ(run.turns().on_behalf_of(p1), p5) << "nice -5 is more than SCHED_IDLE";
  EXPECT_TRUE(run.run_until([&] { return run.in_slot(p1); })) << "and less than a slot";
}

class CoschedulingClasses : public Coscheduling {
 protected:
  static CoschedulingConfig config() {
    CoschedulingConfig config = ParallelRun::two_cpus();
    config.mode = Mode::off;
    config.classes = {Mode::automatic, Mode::on};
    return config;
  }
  CoschedulingClasses() : Coscheduling(config()) {}
  void two_of(ClassId class_id, double waits) {
    run.spinner(p1, 0, 1, waits, {}, class_id);
    run.spinner(p2, 1, 1, waits, {}, class_id);
    for (const int cpu : {0, 1}) run.hog(cpu);
    run.run(1s);
  }
};

TEST_F(CoschedulingClasses, OffIsLeftAlone) {
  two_of(0, 0.8);
  EXPECT_FALSE(run.touched(p1));
}

TEST_F(CoschedulingClasses, AutomaticIsCoscheduledWhereItWaits) {
  two_of(1, 0.8);
  EXPECT_TRUE(run.touched(p1));
}

TEST_F(CoschedulingClasses, AutomaticIsLeftAloneWhereItDoesNot) {
  two_of(1, 0);
  EXPECT_FALSE(run.touched(p1));
}

TEST_F(CoschedulingClasses, OnIsCoscheduledThoughItIsNotSeenWaiting) {
  two_of(2, 0);
  EXPECT_TRUE(run.touched(p1));
}

TEST_F(CoschedulingClasses, ClassWithoutAModeOfItsOwnHasTheFirstOnes) {
  EXPECT_EQ(config().of(0), Mode::off);
  EXPECT_EQ(config().of(2), Mode::on);
  EXPECT_EQ(config().of(3), Mode::off);
}

TEST(CoschedulingConfig, IsWantedIfSomeClassMayBe) {
  CoschedulingConfig config;
  config.mode = Mode::off;
  EXPECT_FALSE(config.wanted());
  config.classes = {Mode::off, Mode::automatic};
  EXPECT_TRUE(config.wanted());
  EXPECT_TRUE(CoschedulingConfig{}.wanted());
}

class CoschedulingByNice : public Coscheduling {
 protected:
  static CoschedulingConfig config() {
    CoschedulingConfig config = ParallelRun::two_cpus();
    config.realtime = false;
    return config;
  }
  CoschedulingByNice() : Coscheduling(config()) {}
};

TEST_F(CoschedulingByNice, SlotsAreGivenByNiceValues) {
  two_and_two();
  run.run(1s);
  const Counted counted = count({p1, p2});
  int slots = 0;
  run.after_turn = [&] {
    const auto attr = run.runs_as(p1);
    ASSERT_TRUE(attr);
    ASSERT_FALSE(attr->realtime());
    slots += attr == donated(nice(-20)) ? 1 : 0;
  };
  run.run(20s);
  EXPECT_GT(slots, 500);
  EXPECT_NEAR(share_since(counted) / 0.5, 1, 0.03);
}

TEST_F(Coscheduling, PeopleAreToldOfTheJob) {
  two_and_two();
  run.run(2s);
  const auto jobs = run.decider->jobs();
  ASSERT_THAT(jobs, SizeIs(1));
  EXPECT_EQ(jobs[0].id, 1U);
  EXPECT_EQ(jobs[0].state, State::wanted);
  EXPECT_THAT(jobs[0].members, SizeIs(2));
  EXPECT_THAT(jobs[0].gang, SizeIs(2)) << "in slots";
  EXPECT_GT(jobs[0].slots, 10U);
  EXPECT_EQ(jobs[0].refused.busy, 0U);
  EXPECT_NEAR(seconds_of(jobs[0].used) / seconds_of(jobs[0].entitled), 1, 0.05);
}

}  // namespace
}  // namespace swapd::test
