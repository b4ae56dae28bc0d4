// Chapter 3 of [DCS97] by simulation: the chain is what the simulation shows, and the figures have the shapes and
// numbers that the text gives.
#include <cmath>

#include "simulate/markov.h"
#include "simulate/report.h"
#include "unit/simulate/support.h"

namespace swapd::simulate::test {
namespace {

// Each state's mean of independent runs is within three of its standard errors of the chain's probability.
void expect_chain(Scenario of) {
  const std::optional<TwoJobChain> chain = chain_of(of);
  ASSERT_TRUE(chain);
  const std::vector<double> expected = stationary(*chain);
  constexpr int runs = 40;
  std::vector<double> sum(expected.size()), squares(expected.size());
  for (int run_number = 0; run_number < runs; ++run_number) {
    of.seed = 1000 + run_number;
    const std::vector<double> states = run(of).jobs[1].states;  // state i: i nodes run the second job
    ASSERT_EQ(states.size(), expected.size());
    for (std::size_t i = 0; i < states.size(); ++i) {
      sum[i] += states[i];
      squares[i] += states[i] * states[i];
    }
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double mean = sum[i] / runs;
    const double error = std::sqrt((squares[i] / runs - mean * mean) / (runs - 1));
    EXPECT_NEAR(mean, expected[i], 3 * error) << "state " << i;
  }
}

TEST(Simulation, HasTheChainsProbabilitiesForEqualJobs) {
  expect_chain(
      scenario("nodes = 8\ncycles = 20000\nwarmup = 500\n"
               "[job.A]\nmessages = 0.5\nswitches = 0.01\n[job.B]\nmessages = 0.5\nswitches = 0.01\n"));
}

TEST(Simulation, HasTheChainsProbabilitiesForUnequalJobs) {
  expect_chain(
      scenario("nodes = 12\ncycles = 20000\nwarmup = 500\n"
               "[job.A]\nmessages = 0.4\nswitches = 0.02\n[job.B]\nmessages = 0.5\nswitches = 0.03\n"));
}

// The chain's line of the output says by how many standard errors the simulation is off.
double standard_errors(const Scenario& of, const Outcome& outcome) {
  const std::vector<double> p = stationary(*chain_of(of));
  return (outcome.coscheduled.mean - p.front() - p.back()) / outcome.coscheduled.error;
}

// Points at which all nodes run one job often enough for a standard error by batches.
TEST(Figure32, TheChainIsWithinThreeStandardErrors) {
  Scenario figure = shipped("figure-3-2");
  figure.cycles = 300'000;
  for (const double switches : {0.015, 0.005, 0.00125}) {
    for (Job& job : figure.jobs) job.switches = switches;
    EXPECT_LE(std::abs(standard_errors(figure, run(figure))), 3) << switches;
  }
}

TEST(Figure32, AllNodesRunOneJobForHalfOfTheTimeAtSeveralHundredMessages) {
  Scenario figure = shipped("figure-3-2");
  figure.cycles = 200'000;
  for (Job& job : figure.jobs) job.switches = job.messages / 400;
  EXPECT_NEAR(run(figure).coscheduled.mean, 0.5, 0.05);
}

TEST(Figure33, JobAHasTwoPercentAndJobBThreeTimesThat) {
  Scenario figure = shipped("figure-3-3");
  figure.cycles = 400'000;
  const Outcome outcome = run(figure);
  EXPECT_NEAR(outcome.jobs[0].coscheduled.mean, 0.02, 0.006);
  EXPECT_NEAR(outcome.jobs[1].coscheduled.mean / outcome.jobs[0].coscheduled.mean, 3, 0.75);
  EXPECT_LE(std::abs(standard_errors(figure, outcome)), 3);
}

// The sweeps of both figures have the same points: 0.375 messages a cycle by the rate of switches.
Outcome at_messages(const Scenario& figure, double messages_a_slice) {
  Scenario at = figure;
  for (Job& job : at.jobs) job.switches = 0.375 / messages_a_slice;
  return run(at);
}

void expect_fair(const Outcome& outcome) {
  for (const JobOutcome& job : outcome.jobs) EXPECT_NEAR(job.fairness, 1, 0.02) << job.name;
}

TEST(Figure34, EqualisationIsFairAndLeavesLittleCoscheduling) {
  const Scenario figure = shipped("figure-3-4");
  for (const double messages : {100, 300, 500}) {
    const Outcome outcome = at_messages(figure, messages);
    expect_fair(outcome);
    EXPECT_LT(outcome.nearly, 0.25) << messages;
  }
}

// At 300 messages a slice nine tenths of the nodes run one job for a third of the time, at 100 for a tenth.
TEST(Figure35, EpochsBringCoschedulingAboveThreeHundredMessagesASlice) {
  const Scenario figure = shipped("figure-3-5");
  const Outcome few = at_messages(figure, 100), some = at_messages(figure, 300), many = at_messages(figure, 1000);
  for (const Outcome* outcome : {&few, &some, &many}) expect_fair(*outcome);
  EXPECT_LT(few.nearly, 0.15);
  EXPECT_GT(some.nearly, 0.3);
  EXPECT_GT(many.nearly, 0.6);
  // All nodes run one job more often than if each number of nodes were as likely as any other.
  EXPECT_LT(few.coscheduled.mean, 2.0 / 65);
  EXPECT_GT(some.coscheduled.mean, 2.0 / 65);
}

TEST(Figure35, EpochsAreWhatBringsIt) {
  for (const double messages : {300, 500}) {
    const Outcome with = at_messages(shipped("figure-3-5"), messages),
                  without = at_messages(shipped("figure-3-4"), messages);
    EXPECT_GT(with.nearly, 2 * without.nearly) << messages;
  }
}

}  // namespace
}  // namespace swapd::simulate::test
