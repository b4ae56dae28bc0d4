// Nodes, programs and rules of a simulation, where they can be counted by hand.
#include "simulate/simulator.h"

#include <gtest/gtest.h>

#include "unit/simulate/support.h"

namespace swapd::simulate::test {
namespace {

TEST(Simulator, TwoBusyLoopsShareACpuHalfAndHalf) {
  const Outcome outcome =
      run(scenario("nodes = 1\ncycles = 1000\n[scheduler]\nslice = 10\n[job.a]\nprogram = \"serial\"\n"
                   "[job.b]\nprogram = \"serial\"\n"));
  for (const JobOutcome& job : outcome.jobs) {
    EXPECT_DOUBLE_EQ(job.share, 0.5);
    EXPECT_DOUBLE_EQ(job.fairness, 1);
    EXPECT_DOUBLE_EQ(job.useful, 500);
  }
  EXPECT_EQ(outcome.called, 0U);
  EXPECT_NEAR(static_cast<double>(outcome.spontaneous), 100, 1);
}

TEST(Simulator, SwitchesCostWhatTheScenarioSays) {
  const Outcome outcome = run(
      scenario("nodes = 1\ncycles = 12000\n[scheduler]\nslice = 10\nswitch_cost = 2\n[job.a]\nprogram = \"serial\"\n"
               "[job.b]\nprogram = \"serial\"\n"));
  EXPECT_NEAR(outcome.switching, 2.0 / 12, 1e-3);
  EXPECT_NEAR(outcome.jobs[0].useful, 5000, 10);
}

// Alone, a token of two nodes goes round in twice grain and latency: 100 / (2 x (5 + 20)) rounds.
TEST(Simulator, ATokenAloneTakesGrainAndLatency) {
  const Outcome outcome =
      run(scenario("nodes = 2\ncycles = 5000\n[link]\nlatency = 20\n[job.pair]\nprogram = \"token\"\n"
                   "grain = 5\nreceive = \"spin\"\n"));
  EXPECT_NEAR(outcome.jobs[0].rounds, 100, 1);
  EXPECT_NEAR(outcome.jobs[0].efficiency, 5.0 / 50, 0.001);
  EXPECT_DOUBLE_EQ(outcome.jobs[0].share, 1);
}

TEST(Simulator, ATokenThatBlocksLeavesTheCpu) {
  const Outcome outcome =
      run(scenario("nodes = 2\ncycles = 5000\n[link]\nlatency = 20\n[job.pair]\nprogram = \"token\"\n"
                   "grain = 5\nreceive = \"block\"\n"));
  EXPECT_NEAR(outcome.jobs[0].rounds, 100, 1);
  EXPECT_NEAR(outcome.jobs[0].share, 5.0 / 50, 0.001);
  EXPECT_DOUBLE_EQ(outcome.jobs[0].efficiency, 1);
}

TEST(Simulator, SpinBlockSpinsAsLongAsItSays) {
  const Outcome outcome =
      run(scenario("nodes = 2\ncycles = 5000\n[link]\nlatency = 20\n[job.pair]\nprogram = \"token\"\n"
                   "grain = 5\nreceive = \"spin-block\"\nspin = 10\n"));
  EXPECT_NEAR(outcome.jobs[0].spun, 2 * 10 * 100, 25);
}

// Alone, a barrier takes its grain, a message to the root and one back.
TEST(Simulator, ABarrierWaitsForAll) {
  const Outcome outcome =
      run(scenario("nodes = 5\ncycles = 12000\n[link]\nlatency = 10\n[job.all]\nprogram = \"barrier\"\n"
                   "grain = 100\nreceive = \"spin\"\n"));
  // The root begins a round one latency before the others.
  EXPECT_NEAR(outcome.jobs[0].rounds, 12000.0 / 120, 1);
  EXPECT_NEAR(static_cast<double>(outcome.jobs[0].messages), 8 * 100, 10);
}

TEST(Simulator, WithoutLatencyABarrierTakesItsGrain) {
  const Outcome outcome =
      run(scenario("nodes = 5\ncycles = 10000\n[job.all]\nprogram = \"barrier\"\ngrain = 100\nreceive = \"block\"\n"));
  EXPECT_NEAR(outcome.jobs[0].rounds, 100, 1);
}

TEST(Simulator, AProcessThatSleepsLeavesItsCpuToTheOther) {
  const Outcome outcome =
      run(scenario("nodes = 1\ncycles = 200000\n[job.io]\nprogram = \"serial\"\nblocks = 0.1\n"
                   "block_cycles = 10\n"));
  EXPECT_NEAR(outcome.jobs[0].share, 0.5, 0.02);
}

constexpr std::string_view two_jobs =
    "nodes = 8\ncycles = 20000\n[job.A]\nmessages = 0.5\nswitches = 0.01\n[job.B]\nmessages = 0.5\nswitches = 0.01\n";

TEST(Simulator, WithoutCoschedulingNoMessageCalls) {
  Scenario without = scenario(two_jobs);
  without.scheduler.coschedule = false;
  const Outcome outcome = run(without);
  EXPECT_EQ(outcome.called, 0U);
  EXPECT_EQ(outcome.jobs[0].calls.granted, 0U);
  EXPECT_LT(outcome.coscheduled.mean, 0.05);
  EXPECT_GT(run(scenario(two_jobs)).coscheduled.mean, 0.3);
}

// [DCS97 §3.2]: with h = -H the equalising algorithm is always-schedule, with h = H no message calls.
TEST(Simulator, AHistoryAsLongAsTheRunIsAlwaysOrNever) {
  Scenario equalizing = scenario(two_jobs);
  equalizing.scheduler.equalize = true;
  equalizing.scheduler.history = -20001;
  const Outcome always = run(scenario(two_jobs)), same = run(equalizing);
  EXPECT_EQ(same.jobs[0].states, always.jobs[0].states);
  EXPECT_EQ(same.called, always.called);
  equalizing.scheduler.history = 20000;
  EXPECT_EQ(run(equalizing).called, 0U);
}

TEST(Simulator, RefusalsAreCountedByTheirReason) {
  Scenario strict = scenario(two_jobs);
  strict.scheduler.equalize = strict.scheduler.epochs = true;
  strict.scheduler.history = 5;
  const Outcome outcome = run(strict);
  for (const JobOutcome& job : outcome.jobs) {
    EXPECT_GT(job.calls.granted, 0U);
    EXPECT_GT(job.calls.refused_epoch, 0U);
    EXPECT_GT(job.calls.refused_equal, 0U);
    EXPECT_EQ(job.calls.refused_fair, 0U);
  }
  EXPECT_EQ(outcome.called, outcome.jobs[0].calls.granted + outcome.jobs[1].calls.granted);
}

TEST(Simulator, TheSameScenarioGivesTheSameOutcome) {
  Scenario other = scenario(two_jobs);
  const Outcome first = run(other), second = run(other);
  EXPECT_EQ(first.jobs[0].states, second.jobs[0].states);
  EXPECT_EQ(first.events, second.events);
  other.seed = 2;
  EXPECT_NE(run(other).events, first.events);
}

constexpr std::string_view pair_beside_loop =
    "nodes = 2\ncycle_us = 1\ncycles = 10000000\nwarmup = 12000000\n"
    "[scheduler]\nslice = 4000\nslice_variation = 0.2\n[link]\nlatency = 10\n"
    "[job.pair]\nprogram = \"token\"\ngrain = 5\n[job.loop]\nprogram = \"serial\"\ncopies = 4\n";

Scenario pair(Receive receive) {
  Scenario s = scenario(pair_beside_loop);
  s.jobs[0].receive = receive;
  s.jobs[0].spin = 50;
  return s;
}

// [DCS97 §1.2, §5]: without calls a job that blocks does next to nothing beside busy loops; with them it has its share.
TEST(Simulator, CallsBringAFineGrainedPairItsShare) {
  Scenario s = pair(Receive::spin_block);
  s.scheduler.coschedule = false;
  const double without = run(s).jobs[0].rounds;
  s.scheduler.coschedule = true;
  s.scheduler.predicate = Predicate::automatic;
  s.scheduler.window = 1'000'000;
  const Outcome with = run(s);
  EXPECT_GT(with.jobs[0].rounds, 50 * without);
  EXPECT_NEAR(with.jobs[0].fairness, 1, 0.05);
}

TEST(Simulator, TheControllerKeepsASpinningPairFair) {
  Scenario s = pair(Receive::spin);
  const double always = run(s).jobs[0].fairness;
  s.scheduler.predicate = Predicate::automatic;
  s.scheduler.window = 1'000'000;
  const double controlled = run(s).jobs[0].fairness;
  EXPECT_GT(always, 1.5);
  EXPECT_NEAR(controlled, 1, 0.05);
}

// A scheduler that charges calls pays them back by itself.
TEST(Simulator, AFairShareSchedulerKeepsAllCallsFair) {
  Scenario s = pair(Receive::spin);
  s.scheduler.pick = Pick::least_run;
  const Outcome with = run(s);
  s.scheduler.coschedule = false;
  const Outcome without = run(s);
  EXPECT_NEAR(with.jobs[0].fairness, 1, 0.02);
  EXPECT_GT(with.jobs[0].rounds, 2 * without.jobs[0].rounds);
}

TEST(Simulator, AWokenProcessMayHaveTheCpuAtOnce) {
  Scenario s = pair(Receive::block);
  s.scheduler.coschedule = false;
  const double queued = run(s).jobs[0].rounds;
  s.scheduler.wakeup_preempts = true;
  EXPECT_GT(run(s).jobs[0].rounds, 50 * queued);
}

}  // namespace
}  // namespace swapd::simulate::test
