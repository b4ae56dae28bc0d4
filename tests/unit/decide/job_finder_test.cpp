// Finds the threads of a parallel job that loses CPU time because they do not run together.
#include "decide/coscheduling/job_finder.h"

#include <gmock/gmock.h>

#include "unit/model/world.h"

namespace swapd::test {
namespace {

using decide::JobFinder;
using decide::ThreadProfiled;
using State = JobFinder::State;
using testing::SizeIs;
using namespace std::chrono_literals;

class Finder : public testing::Test {
 protected:
  static constexpr Duration window = 250ms;

  // A thread that had half a CPU, and the rest of which another one had; seen so often in a loop that waits.
  [[nodiscard]] ThreadProfiled busy(ThreadId thread, double waits = 0.8, int cpu = 0) const {
    return {.time = now,
            .thread = thread,
            .job = 1,
            .window = window,
            .cpu = window / 2,
            .spinning = waits,
            .inner = 0.5,
            .weight = 1024,
            .group = static_cast<std::uint64_t>(cpu) + 1,
            .cpu_number = cpu};
  }
  void end_window() {
    finder.end_window(cpus, now);
    now += window;
  }
  void see(const std::vector<ThreadProfiled>& threads, bool declared = false) {
    for (ThreadProfiled one : threads) {
      one.time = now;
      finder.add(one, declared);
    }
    end_window();
  }
  [[nodiscard]] const JobFinder::Job& job(JobFinder::JobId id = 1) const { return finder.jobs().at(id); }
  [[nodiscard]] const JobFinder::Member& member(ThreadId thread, JobFinder::JobId id = 1) const {
    return *std::ranges::find(job(id).members, thread, &JobFinder::Member::thread);
  }

  JobFinder finder;
  Time now{1h};
  int cpus = 2;
};

// Between slots there is hardly a look at the run queues, and at those a thread that passes by was there.
TEST_F(Finder, JobsThatHaveTheirCpusToThemselvesDivideThem) {
  const auto in_slots = [&](ThreadId thread, JobFinder::JobId id, int cpu, bool rivals) {
    ThreadProfiled one = busy(thread, 0.8, cpu);
    one.job = id;
    one.inner = 0.01;
    one.rivals = rivals;
    return one;
  };
  const auto windows = [&](bool rivals) {
    for (int i = 0; i < 7; ++i)
      see({in_slots(p1, 1, 0, rivals), in_slots(p2, 1, 1, rivals), in_slots(p3, 2, 0, rivals),
           in_slots(p4, 2, 1, rivals)});
  };
  windows(false);
  EXPECT_LT(member(p1).share, 0.02) << "they do not run in slots yet: it is as it was seen";
  finder.set_running(1, true);
  finder.set_running(2, true);
  windows(false);
  EXPECT_DOUBLE_EQ(member(p1).share, 0.5);
  EXPECT_DOUBLE_EQ(member(p4, 2).share, 0.5);
  windows(true);
  EXPECT_LT(member(p1).share, 0.02) << "some thread wants the CPU all the time";
}

TEST_F(Finder, WhereOthersHadAPartOfTheCpuJobsDoNotDivideIt) {
  finder = JobFinder();
  ThreadProfiled one = busy(p1), two = busy(p2, 0.8, 1);
  for (ThreadProfiled* each : {&one, &two}) {
    each->rivals = false;
    each->inner = 0.6;
  }
  see({one, two});
  finder.set_running(1, true);
  see({one, two});
  EXPECT_DOUBLE_EQ(member(p1).share, 0.6) << "it had half of its CPU";
}

// The launcher computes while the job starts, and then sleeps.
TEST_F(Finder, AThreadThatSleepsIsNoMoreOfTheJob) {
  see({busy(p1), busy(p2, 0.8, 1), busy(p3)});
  EXPECT_EQ(job().verdict, State::crowded) << "three, and two CPUs";
  ThreadProfiled asleep{.thread = p3, .job = 1, .window = window, .share_known = false, .demand = 0.01};
  see({busy(p1), busy(p2, 0.8, 1), asleep});
  EXPECT_THAT(job().members, SizeIs(2));
  EXPECT_EQ(job().verdict, State::wanted);
}

// No sample has met it in the window, because it had no CPU.
TEST_F(Finder, AMateThatHadNoCpuAtAllIsWaitedFor) {
  see({busy(p1), busy(p2, 0.8, 1)});
  ThreadProfiled starved{.thread = p2, .job = 1, .window = window, .share_known = false, .demand = 1};
  see({busy(p1), starved});
  EXPECT_DOUBLE_EQ(job().waste, 0.8) << "all that p1 used while it waited";
  EXPECT_EQ(member(p2).weight, 1024U);
  EXPECT_EQ(member(p2).cpu_number, 1);
  EXPECT_EQ(job().verdict, State::wanted);
}

TEST_F(Finder, ThreadsThatWaitForMatesWithoutACpuAreToRunTogether) {
  see({busy(p1), busy(p2, 0.8, 1)});
  EXPECT_EQ(job().verdict, State::wanted);
  EXPECT_DOUBLE_EQ(job().waste, 0.8 * 0.5) << "it waits so often, and its mate has no CPU half of the time";
  EXPECT_DOUBLE_EQ(job().due, 0.5);
}

TEST_F(Finder, YieldingIsWaitingToo) {
  ThreadProfiled one = busy(p1, 0), other = busy(p2, 0);
  one.yielding = other.yielding = 0.9;
  see({one, other});
  EXPECT_EQ(job().verdict, State::wanted);
}

TEST_F(Finder, JobThatComputesIsLeftAlone) {
  see({busy(p1, 0.02), busy(p2, 0.02)});
  EXPECT_EQ(job().verdict, State::useful);
}

TEST_F(Finder, OneThreadIsNoJob) {
  see({busy(p1)});
  EXPECT_EQ(job().verdict, State::alone);
}

TEST_F(Finder, ThreadsThatDoNotShareMemoryAreNoJob) {
  ThreadProfiled other = busy(p2);
  other.job = 2;
  see({busy(p1), other});
  EXPECT_EQ(job(1).verdict, State::alone);
  EXPECT_EQ(job(2).verdict, State::alone);
}

TEST_F(Finder, JobThatCompetesWithNobodyIsLeftAlone) {
  std::vector<ThreadProfiled> threads = {busy(p1), busy(p2)};
  for (ThreadProfiled& one : threads) one.inner = 1;
  see(threads);
  EXPECT_EQ(job().verdict, State::alone);
}

TEST_F(Finder, ThreadThatIsNotBusyIsNotOfTheJob) {
  ThreadProfiled idle = busy(p3);
  idle.cpu = window / 1000;
  see({busy(p1), busy(p2), idle});
  EXPECT_THAT(job().members, SizeIs(2));
}

TEST_F(Finder, MoreThreadsThanCpusAreCrowded) {
  see({busy(p1), busy(p2), busy(p3)});
  EXPECT_EQ(job().verdict, State::crowded);
  cpus = 3;
  see({busy(p1), busy(p2), busy(p3)});
  EXPECT_EQ(job().verdict, State::wanted);
}

// In a slot the one that waits would keep the only CPU that its mate may use.
TEST_F(Finder, ThreadsThatCannotRunTogetherAndWaitInLoopsTakeShortTurns) {
  const std::vector three = {busy(p1), busy(p2, 0.8, 1), busy(p3)};
  see(three);
  EXPECT_FALSE(job().takes_turns) << "one window says little";
  see(three);
  EXPECT_TRUE(job().takes_turns);
  EXPECT_EQ(job().verdict, State::round_robin);
  EXPECT_THAT(finder.short_turns(), testing::ElementsAre(testing::Pair(0, testing::Gt(0us)), testing::Key(1)));
  see({busy(p1, 0.01), busy(p2, 0.01, 1), busy(p3, 0.01)});
  see({busy(p1, 0.01), busy(p2, 0.01, 1), busy(p3, 0.01)});
  EXPECT_TRUE(job().takes_turns) << "they wait little because of the turns";
  for (int i = 0; i < 20; ++i) see({busy(p1)});
  EXPECT_FALSE(job().takes_turns) << "its mates are gone";
}

TEST_F(Finder, ThreadsThatAreOnlyPresumedToWaitTakeNone) {
  for (int i = 0; i < 8; ++i) {
    std::vector three = {busy(p1, 0), busy(p2, 0, 1), busy(p3, 0)};
    for (ThreadProfiled& one : three) one.shares_memory = true;
    see(three);
  }
  EXPECT_GT(job().waste, 0.1);
  EXPECT_FALSE(job().takes_turns);
}

TEST_F(Finder, ThreadsThatYieldTakeNone) {
  for (int i = 0; i < 8; ++i) {
    std::vector three = {busy(p1, 0), busy(p2, 0, 1), busy(p3, 0)};
    for (ThreadProfiled& one : three) one.yielding = 0.9;
    see(three);
  }
  EXPECT_FALSE(job().takes_turns) << "they give their CPUs away themselves";
}

TEST_F(Finder, SoAreThreadsThatCannotAllHaveCpusOfTheirOwn) {
  std::vector<ThreadProfiled> threads = {busy(p1), busy(p2)};
  for (ThreadProfiled& one : threads) one.fits = false;
  see(threads, true);
  EXPECT_EQ(job().verdict, State::crowded) << "whatever the policy says";
  see({busy(p1), busy(p2)});
  EXPECT_EQ(job().verdict, State::wanted);
}

TEST_F(Finder, DeclaredJobNeedNotBeSeenWaiting) {
  see({busy(p1, 0), busy(p2, 0)}, true);
  EXPECT_EQ(job().verdict, State::wanted);
}

TEST_F(Finder, DeclaredJobThatCompetesWithNobodyIsLeftAloneToo) {
  std::vector<ThreadProfiled> threads = {busy(p1), busy(p2)};
  for (ThreadProfiled& one : threads) one.inner = 1;
  see(threads, true);
  EXPECT_EQ(job().verdict, State::alone);
}

TEST_F(Finder, ShareIsByWeightWithinTheGroupAndByTheGroupsAbove) {
  ThreadProfiled one = busy(p1), other = busy(p2);
  one.inner = 0.25;
  other.upper = 0.5;
  see({one, other});
  EXPECT_DOUBLE_EQ(member(p1).share, 0.25);
  EXPECT_DOUBLE_EQ(member(p2).share, 0.25);
}

TEST_F(Finder, ShareIsTheMedianOfTheLastWindows) {
  ThreadProfiled disturbed = busy(p1);
  disturbed.inner = 0.1;
  for (int i = 0; i < 5; ++i) see({busy(p1), busy(p2)});
  for (int i = 0; i < 3; ++i) see({disturbed, busy(p2)});
  EXPECT_DOUBLE_EQ(member(p1).share, 0.5) << "who comes for a moment changes nothing";
  for (int i = 0; i < 3; ++i) see({disturbed, busy(p2)});
  EXPECT_DOUBLE_EQ(member(p1).share, 0.1);
}

TEST_F(Finder, ThreadThatYieldsInALoopIsOfTheJobThoughItHasHardlyAnyCpu) {
  ThreadProfiled yields = busy(p2, 0);
  yields.cpu = window / 1000;
  yields.yielding = 0.9;
  see({busy(p1), yields});
  EXPECT_THAT(job().members, SizeIs(2));
}

TEST_F(Finder, ShareThatCouldNotBeSeenStaysAsItWas) {
  ThreadProfiled one = busy(p1);
  one.inner = 0.25;
  see({one, busy(p2)});
  one.share_known = false;
  one.inner = 1;
  see({one, busy(p2)});
  EXPECT_DOUBLE_EQ(member(p1).share, 0.25);
}

TEST_F(Finder, ThreadBetweenSlotsStillCompetesForWhatItsNiceValueIsWorth) {
  ThreadProfiled rival = busy(p3), other_rival = busy(p4, 0.8, 1);
  rival.job = other_rival.job = 2;
  see({busy(p1), busy(p2, 0.8, 1), rival, other_rival});
  finder.set_running(2, true);
  // The run queues show threads of class SCHED_IDLE in place of the rivals.
  ThreadProfiled one = busy(p1), two = busy(p2, 0.8, 1);
  one.inner = two.inner = 1;
  see({one, two, rival, other_rival});
  EXPECT_DOUBLE_EQ(member(p1).share, 0.5);
  EXPECT_DOUBLE_EQ(member(p2).share, 0.5);
  finder.set_running(2, false);
  see({one, two, rival, other_rival});
  EXPECT_DOUBLE_EQ(member(p1).share, 1);
}

TEST_F(Finder, RivalOfAnotherRunQueueHidesNothing) {
  ThreadProfiled rival = busy(p3, 0.8, 1), other_rival = busy(p4, 0.8, 1);
  rival.job = other_rival.job = 2;
  see({busy(p1), rival, other_rival});
  finder.set_running(2, true);
  ThreadProfiled one = busy(p1);
  one.inner = 1;
  see({one, rival, other_rival});
  EXPECT_DOUBLE_EQ(member(p1).share, 1);
}

TEST_F(Finder, JobInSlotsIsJudgedByTheWasteThatItHadWithout) {
  see({busy(p1), busy(p2, 0.8, 1)});
  finder.set_running(1, true);
  see({busy(p1, 0), busy(p2, 0, 1)});  // together they do not wait
  EXPECT_EQ(job().verdict, State::wanted);
  EXPECT_GT(job().waste, 0.3);
}

TEST_F(Finder, WindowsInARowAreCounted) {
  for (int i = 0; i < 3; ++i) see({busy(p1), busy(p2)});
  EXPECT_EQ(job().for_, 3);
  EXPECT_EQ(job().against, 0);
  see({busy(p1, 0), busy(p2, 0)});
  EXPECT_EQ(job().for_, 0);
  EXPECT_EQ(job().against, 1);
}

TEST_F(Finder, WindowInWhichNothingWasSeenSaysNothing) {
  see({busy(p1), busy(p2)});
  end_window();
  EXPECT_EQ(job().for_, 1);
  EXPECT_EQ(job().against, 0);
}

TEST_F(Finder, WindowOfAnotherJobSaysNothingEither) {
  see({busy(p1), busy(p2)});
  ThreadProfiled other = busy(p3);
  other.job = 2;
  see({other});
  EXPECT_EQ(job().for_, 1);
  EXPECT_EQ(job().against, 0);
}

// Its process has begun to share memory with another one.
TEST_F(Finder, ThreadThatChangesItsJobIsOfTheNewOneAlone) {
  see({busy(p1), busy(p2), busy(p3)});
  ThreadProfiled moved = busy(p3);
  moved.job = 2;
  see({busy(p1), busy(p2), moved});
  EXPECT_THAT(job(1).members, SizeIs(2));
  EXPECT_THAT(job(2).members, SizeIs(1));
}

TEST_F(Finder, ThreadThatIsNotHeardOfIsForgotten) {
  see({busy(p1), busy(p2), busy(p3)});
  for (Duration time{}; time < decide::JobFinderConfig{}.forget_after + 2 * window; time += window)
    see({busy(p1), busy(p2)});
  EXPECT_THAT(job().members, SizeIs(2));
  EXPECT_EQ(job().verdict, State::wanted);
}

TEST_F(Finder, ForgottenThreadIsOfNoJob) {
  see({busy(p1), busy(p2)});
  finder.forget(p1);
  EXPECT_THAT(job().members, SizeIs(1));
  see({busy(p2)});
  EXPECT_EQ(job().verdict, State::alone);
}

TEST_F(Finder, JobWithoutThreadsEnds) {
  see({busy(p1), busy(p2)});
  finder.forget(p1);
  finder.forget(p2);
  ThreadProfiled other = busy(p3);
  other.job = 2;
  see({other});
  EXPECT_FALSE(finder.jobs().contains(1));
}

TEST_F(Finder, JobsAndTheirThreadsAreLimited) {
  decide::JobFinderConfig config;
  for (int i = 0; i < static_cast<int>(config.max_threads) + 5; ++i) finder.add(busy(thread(i + 1)), false);
  for (int i = 0; i < static_cast<int>(config.max_jobs) + 5; ++i) {
    ThreadProfiled one = busy(thread(1000 + i));
    one.job = static_cast<std::uint64_t>(100 + i);
    finder.add(one, false);
  }
  end_window();
  EXPECT_THAT(finder.jobs(), SizeIs(config.max_jobs));
  EXPECT_THAT(job().members, SizeIs(config.max_threads));
}

TEST_F(Finder, ThreadAloneThatPollsIsAJobWhileMessagesCallIt) {
  see({busy(p1)});
  EXPECT_TRUE(job().polls);
  EXPECT_EQ(job().verdict, State::alone);
  finder.called(p1, now);
  see({busy(p1)});
  EXPECT_EQ(job().verdict, State::wanted);
  now += 2s;
  see({busy(p1)});
  EXPECT_EQ(job().verdict, State::alone);
}

TEST_F(Finder, ThreadAloneThatComputesIsNotCalled) {
  see({busy(p1, 0.2)});
  EXPECT_FALSE(job().polls);
  finder.called(p1, now);
  see({busy(p1, 0.2)});
  EXPECT_EQ(job().verdict, State::alone);
}

TEST_F(Finder, ThreadAloneThatHasItsCpuIsNotCalled) {
  ThreadProfiled one = busy(p1);
  one.inner = 1;
  see({one});
  EXPECT_FALSE(job().polls);
}

TEST_F(Finder, ThreadInSlotsIsAJobAlsoWhereItHasNoNeedToPoll) {
  see({busy(p1)});
  finder.called(p1, now);
  finder.set_running(1, true);
  see({busy(p1, 0.05)});
  EXPECT_EQ(job().verdict, State::wanted);
}

}  // namespace
}  // namespace swapd::test
