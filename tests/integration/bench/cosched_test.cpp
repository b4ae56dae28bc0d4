// The parts of cosched that need no machine: shares and ideals, what a run amounts to, the line of the report, and how
// programs are started and wait.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "coscheduling/cosched_lines.h"
#include "coscheduling/cosched_options.h"
#include "coscheduling/fairness.h"
#include "coscheduling/job_programs.h"
#include "coscheduling/node_network.h"
#include "coscheduling/rank.h"
#include "coscheduling/rank_link.h"
#include "harness/process.h"
#include "harness/usage.h"
#include "sys/sched/scheduler.h"

namespace swapd::bench {
namespace {

using testing::Contains;
using testing::DoubleEq;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::Not;
using testing::Optional;
using testing::Pair;

// --- fairness ---

// Equation 5.1 of the thesis, F = N × T_C / T_E, for a process on its processor: N = 5, 3 s of CPU time in 10 s.
TEST(Fairness, IsThatOfTheThesisForOneRankOnEachCpu) {
  EXPECT_THAT(fairness(3, 10, {.cpus = 1, .ranks = 1, .competitors = 4}), DoubleEq(5 * 3.0 / 10));
  EXPECT_THAT(fairness(2 * 3, 10, {.cpus = 2, .ranks = 2, .competitors = 4}), DoubleEq(5 * 3.0 / 10));
}

TEST(Fairness, IsOneForAFairShareAndMoreForMore) {
  const Crowd crowd{.cpus = 2, .ranks = 2, .competitors = 1};
  EXPECT_THAT(fairness(10, 10, crowd), DoubleEq(1));
  EXPECT_GT(fairness(12, 10, crowd), 1);
  EXPECT_LT(fairness(8, 10, crowd), 1);
}

TEST(Fairness, OfARunThatTookNoTimeIsNone) { EXPECT_EQ(fairness(0, 0, {}), 0); }

TEST(FairShare, IsAJobsPartOfAllThatRuns) {
  EXPECT_THAT(fair_share({.cpus = 2, .ranks = 2, .competitors = 0}), DoubleEq(1));
  EXPECT_THAT(fair_share({.cpus = 2, .ranks = 2, .competitors = 8}), DoubleEq(1.0 / 9));
  EXPECT_THAT(fair_share({.cpus = 2, .ranks = 2, .other_ranks = 2}), DoubleEq(1.0 / 2)) << "two jobs";
  EXPECT_THAT(fair_share({.cpus = 2, .ranks = 5, .competitors = 1}), DoubleEq(5.0 / 7)) << "more ranks than CPUs";
}

TEST(FairShare, IsAmongSessionsWhereTheRanksHaveTheirOwn) {
  EXPECT_THAT(fair_share({.cpus = 2, .ranks = 2, .competitors = 4, .sessions = 1}), DoubleEq(1.0 / 2));
  EXPECT_THAT(fair_share({.cpus = 2, .ranks = 2, .competitors = 4, .sessions = 2}), DoubleEq(2.0 / 3))
      << "the competitors' session has two CPUs, each rank's has one";
  EXPECT_THAT(fair_share({.cpus = 2, .ranks = 2, .other_ranks = 2, .sessions = 2}), DoubleEq(1.0 / 2));
  EXPECT_THAT(fair_share({.cpus = 2, .ranks = 2, .sessions = 2}), DoubleEq(1)) << "alone";
}

TEST(Ideal, IsTheDedicatedTimeForEachCompetitorAndTheJob) {
  EXPECT_THAT(ideal_s(2, {.cpus = 2, .ranks = 2, .competitors = 0}), DoubleEq(2));
  EXPECT_THAT(ideal_s(2, {.cpus = 2, .ranks = 2, .competitors = 4}), DoubleEq(10));
}

// Alone they have both CPUs; beside a job with as many ranks as there are of them, one.
TEST(Lost, IsCountedFromTheFairShareOfWhatSerialProgramsGetAlone) {
  const Crowd crowd{.cpus = 2, .ranks = 2, .competitors = 1};
  EXPECT_THAT(lost(1, 2, crowd), DoubleEq(0));
  EXPECT_THAT(lost(0.5, 2, crowd), DoubleEq(0.5));
  EXPECT_LT(lost(1.5, 2, crowd), 0);
  EXPECT_EQ(lost(1, 0, crowd), 0) << "nothing to compare with";
}

TEST(FairShare, IsThePartOfTheWeights) {
  EXPECT_THAT(weight_of(0), DoubleEq(1));
  EXPECT_THAT(weight_of(5), DoubleNear(335.0 / 1024, 0.001)) << "as the kernel's table has it";
  EXPECT_THAT(fair_share({.cpus = 2, .ranks = 2, .competitors = 1, .weight = 0.25}), DoubleEq(0.8));
}

// Ten seconds beside one competitor a CPU, ten seconds alone.
TEST(Fairness, OfCompetitorsThatComeAndGoIsOfWhatIsFairInEachPhase) {
  const Crowd beside{.cpus = 2, .ranks = 2, .competitors = 1}, alone{.cpus = 2, .ranks = 2};
  const std::vector<Phase> fair = {{beside, 10, 10}, {alone, 10, 20}};
  EXPECT_THAT(fairness(fair), DoubleEq(1));
  EXPECT_THAT(fair_part_s(fair), DoubleEq(15));
  EXPECT_EQ(fairness_furthest(fair, 5), 1);
  const std::vector<Phase> late = {{beside, 10, 12}, {alone, 10, 18}};
  EXPECT_THAT(fairness(late), DoubleEq(1)) << "the sum hides it";
  EXPECT_THAT(fairness_furthest(late, 5), DoubleEq(1.2));
}

TEST(Fairness, APhaseThatWasCutShortAndOneWithoutCompetitorsAreNotTheWorst) {
  const std::vector<Phase> phases = {{{.cpus = 2, .ranks = 2, .competitors = 1}, 1, 2},
                                     {{.cpus = 2, .ranks = 2}, 9, 1}};
  EXPECT_EQ(fairness_furthest(phases, 5), 1);
}

// --- runs ---

TEST(WholeRun, IsTheRunItselfWhereAllRoundsAreDone) {
  const Whole whole = whole_run({.wall_s = 3, .cpu_s = 2, .done = 100, .wanted = 100});
  EXPECT_EQ(whole.time_s, 3);
  EXPECT_EQ(whole.cpu_s, 2);
  EXPECT_FALSE(whole.cut);
}

TEST(WholeRun, GoesOnAtItsPaceWhereItWasCut) {
  const Whole whole = whole_run({.wall_s = 30, .cpu_s = 10, .done = 25, .wanted = 100});
  EXPECT_THAT(whole.time_s, DoubleEq(120));
  EXPECT_THAT(whole.cpu_s, DoubleEq(40));
  EXPECT_TRUE(whole.cut);
}

TEST(WholeRun, ThatDidNoRoundIsTakenForOne) {
  EXPECT_THAT(whole_run({.wall_s = 30, .done = 0, .wanted = 100}).time_s, DoubleEq(3000));
}

TEST(AtPace, AJobThatHasDoneMoreThanIsWantedNeedsLess) {
  EXPECT_THAT(at_pace({.wall_s = 10, .done = 200, .wanted = 100}).time_s, DoubleEq(5));
}

TEST(MeanOf, TwoRunsAloneIsBetweenThem) {
  EXPECT_EQ(mean_of({.time_s = 1, .cpu_s = 2}, {.time_s = 3, .cpu_s = 4}).time_s, 2);
  EXPECT_EQ(mean_of({.time_s = 1, .cpu_s = 2}, {.time_s = 3, .cpu_s = 4}).cpu_s, 3);
  EXPECT_TRUE(mean_of({}, {.cut = true}).cut);
}

TEST(RoundsFor, AreAsManyAsTheFirstRunsPaceGives) {
  EXPECT_EQ(rounds_for(2, {.wall_s = 0.1, .done = 50}), 1000u);
  EXPECT_EQ(rounds_for(0.001, {.wall_s = 0.1, .done = 1}), 1u) << "one at least";
  EXPECT_EQ(rounds_for(1, {}), 1u);
}

// --- the line ---

CoschedFigures figures(std::vector<Progress> jobs, double window_s, double competitors_cpu_s) {
  CoschedFigures figures;
  figures.dedicated.assign(jobs.size(), {.time_s = 1, .cpu_s = 2});
  figures.run.jobs = std::move(jobs);
  figures.run.window_s = window_s;
  figures.run.competitors_cpu_s = competitors_cpu_s;
  return figures;
}

Options options_of(const std::string& test) {
  Options options;
  options.workload = "cosched";
  options.cpus = 2;
  options.cosched.test = test;
  return options;
}

TEST(CoschedLine, HasTheContractsFieldsAndTheirMedians) {
  CoschedSubject subject;
  subject.jobs = {{.rounds = 100}};
  std::vector<CoschedFigures> repeats;
  for (const double wall : {2.2, 2.0, 9.0})
    repeats.push_back(figures({{.wall_s = wall, .cpu_s = wall, .done = 100, .wanted = 100}}, wall, wall));
  const auto line = cosched_line(subject, {.under = "vanilla", .competitors = 1}, repeats, options_of("latency"));
  EXPECT_EQ(line["workload"], "cosched");
  EXPECT_EQ(line["mechanism"], "latency");
  EXPECT_EQ(line["iterations"], 100);
  EXPECT_EQ(line["hogs"], 1);
  EXPECT_EQ(line["time_s"], 2.2);
  EXPECT_EQ(line["cpu_s"], 2.2);
  EXPECT_EQ(line["fairness"], 1.0);
  EXPECT_EQ(line["to_ideal"], 1.1);
  EXPECT_EQ(line["competitors_share"], 0.5);
  EXPECT_EQ(line["outside_share"], 0.0);
  EXPECT_FALSE(line.contains("cut"));
}

// Twenty seconds, of which ten were fair halves: fifteen of the machine to itself.
TEST(CoschedLine, OfCompetitorsThatComeAndGoTellsTheWorstPhase) {
  CoschedSubject subject;
  subject.jobs = {{.rounds = 100}};
  Options options = options_of("barrier");
  options.cosched.churn_s = 10;
  CoschedFigures repeat = figures({{.wall_s = 20, .cpu_s = 31, .done = 100, .wanted = 100}}, 20, 9);
  repeat.dedicated.front().time_s = 12;
  repeat.run.phases = {{{.competitors = 1}, 10, 11}, {{.competitors = 0}, 10, 20}};
  const auto line = cosched_line(subject, {.under = "swapd", .competitors = 1}, {repeat}, options);
  EXPECT_EQ(line["churn_s"], 10);
  EXPECT_EQ(line["fairness_worst_phase"], 1.1);
  EXPECT_EQ(line["to_ideal"], 1.25) << "fifteen seconds for twelve";
}

TEST(CoschedLine, ComparesWithVanillaOfTheSameRepeat) {
  CoschedSubject subject;
  subject.jobs = {{.rounds = 100}};
  const auto took = [](double wall) {
    return figures({{.wall_s = wall, .cpu_s = wall, .done = 100, .wanted = 100}}, wall, wall);
  };
  const std::vector<CoschedFigures> vanilla = {took(2), took(4), took(8)};
  const auto line = cosched_line(subject, {.under = "swapd", .competitors = 1}, {took(1), took(3), took(8)},
                                 options_of("latency"), &vanilla);
  EXPECT_EQ(line["to_vanilla"], 0.75) << "the median of a half, three quarters and one";
}

TEST(CoschedLine, SaysThatARunWasCut) {
  CoschedSubject subject;
  subject.jobs = {{.rounds = 100}};
  const auto line =
      cosched_line(subject, {.under = "vanilla", .competitors = 1},
                   {figures({{.wall_s = 30, .cpu_s = 30, .done = 50, .wanted = 100}}, 30, 30)}, options_of("latency"));
  EXPECT_EQ(line["cut"], true);
  EXPECT_EQ(line["time_s"], 60.0);
  EXPECT_EQ(line["fairness"], 1.0) << "of what it did";
}

// One does its part of three quarters of what it does alone, the other of one quarter.
TEST(CoschedLine, OfTwoJobsTellsTheSumAndWhoIsFurtherFromFair) {
  CoschedSubject subject;
  subject.jobs = {{.rounds = 100}, {.rounds = 100}};
  const auto line = cosched_line(subject, {.under = "vanilla"},
                                 {figures({{.wall_s = 4, .cpu_s = 6, .done = 300, .wanted = 100},
                                           {.wall_s = 4, .cpu_s = 2, .done = 100, .wanted = 100}},
                                          4, 0)},
                                 options_of("two-jobs"));
  EXPECT_THAT(line["throughput"].get<double>(), DoubleNear(1, 1e-6));
  EXPECT_EQ(line["fairness_each"], nlohmann::json({1.5, 0.5}));
  EXPECT_EQ(line["time_s"], 4.0) << "the slower one's";
  EXPECT_EQ(line["to_ideal"], 2.0);
}

// --- programs ---

TEST(JobPair, IsTwoOfAProgramOrOneOfEach) {
  EXPECT_THAT(job_pair("openmp"), Optional(Pair("openmp", "openmp")));
  EXPECT_THAT(job_pair("own+openmp"), Optional(Pair("own", "openmp")));
  EXPECT_EQ(job_pair("own+pvm"), std::nullopt);
  EXPECT_EQ(job_pair("own+"), std::nullopt);
}

TEST(JobPrograms, WaitAsUnderSays) {
  const JobPlaces places{.self = "swapbench", .area = "/proc/1/fd/3", .temp = "/tmp/x"};
  const auto words = [&](const char* program, const char* under) {
    return job_words({.program = program, .under = under}, places, 1);
  };
  EXPECT_THAT(words("own", "vanilla"), ElementsAre("swapbench", "--cosched-rank", "/proc/1/fd/3", "1"));
  EXPECT_THAT(words("openmp", "swapd"), Contains("OMP_WAIT_POLICY=active"));
  EXPECT_THAT(words("openmp", "swapd"), Contains("GOMP_SPINCOUNT=infinite"));
  EXPECT_THAT(words("openmp", "passive"), Contains("OMP_WAIT_POLICY=passive"));
  EXPECT_THAT(words("openmp", "passive"), Not(Contains("GOMP_SPINCOUNT=infinite")));
  // With too few CPUs it yields by itself, if it is not told.
  EXPECT_THAT(words("openmpi", "vanilla"), Contains("OMPI_MCA_mpi_yield_when_idle=0"));
  EXPECT_THAT(words("openmpi", "yield-when-idle"), Contains("OMPI_MCA_mpi_yield_when_idle=1"));
}

TEST(JobPrograms, OurOwnRanksHaveAWayForEachCure) {
  EXPECT_EQ(receive_under({.receive = "spin-block", .under = "swapd"}), "spin-block");
  EXPECT_EQ(receive_under({.under = "yield-when-idle"}), "yield");
  EXPECT_EQ(receive_under({.under = "passive"}), "block");
}

TEST(JobPrograms, KnowOnlyTheirOwnSwitches) {
  EXPECT_TRUE(job_knows("openmpi", "yield-when-idle"));
  EXPECT_FALSE(job_knows("mpich", "yield-when-idle"));
  EXPECT_FALSE(job_knows("openmpi", "passive"));
  EXPECT_TRUE(job_knows("mpich", "nice-5"));
}

// --- ranks ---

class Receive : public testing::TestWithParam<JobReceive> {};

TEST_P(Receive, EndsWhenTheWordHasChanged) {
  JobCell cell{};
  std::thread sender([&] { job_set(&cell, 1); });
  await_change(cell, 0, GetParam(), 1000);
  sender.join();
  EXPECT_EQ(cell.word, 1u);
  EXPECT_EQ(cell.sleepers, 0u);
  await_change(cell, 0, GetParam(), 1000);  // at once
}

TEST_P(Receive, ABarrierIsPassedByAllOrNone) {
  constexpr std::uint32_t ranks = 3, rounds = 50;
  JobArea area{};
  area.ranks = ranks;
  area.receive = GetParam();
  area.spin_ns = 1000;
  std::uint32_t here = 0;
  bool early = false;
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t i = 0; i < ranks; ++i)
      threads.emplace_back([&] {
        for (std::uint32_t round = 1; round <= rounds; ++round) {
          __atomic_add_fetch(&here, 1, __ATOMIC_SEQ_CST);
          pass_barrier(area);
          if (__atomic_load_n(&here, __ATOMIC_SEQ_CST) < round * ranks)
            __atomic_store_n(&early, true, __ATOMIC_SEQ_CST);
        }
      });
  }
  EXPECT_FALSE(early);
  EXPECT_EQ(area.generation.word, rounds);
}

// spin alone would take a slice for each round on a machine that is busy.
INSTANTIATE_TEST_SUITE_P(Cosched, Receive, testing::Values(receive_yield, receive_spin_block, receive_block));

// --- competitors ---

TEST(Hogs, RunAtTheNiceValueThatTheyAreGiven) {
  const sys::LinuxScheduler scheduler;
  auto hogs = start_hogs(1, {.cpus = {0}, .at_most = std::chrono::seconds(20), .nice = 5});
  ASSERT_TRUE(hogs) << hogs.error().text();
  ASSERT_EQ(hogs->size(), 1u);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (process_cpu_s(hogs->front().pid()) < 0.05)  // it is in its loop by then
    ASSERT_LT(std::chrono::steady_clock::now(), until);
  const auto attr = scheduler.get(hogs->front().pid());
  ASSERT_TRUE(attr) << attr.error().text();
  EXPECT_EQ(attr->nice, 5);
  end_all(*hogs);
}

// --- nodes ---

// A loopback address of this process's own: a link's port is fixed, and tests run side by side.
std::string own_address() {
  const auto pid = static_cast<unsigned>(::getpid());
  std::string address = "127";
  for (const unsigned part : {1 + (pid >> 16), (pid >> 8) & 255, pid & 255}) address += "." + std::to_string(part);
  return address;
}

TEST_P(Receive, OverALinkEndsWithAMessageAndWithTheOther) {
  const std::string here = own_address();
  std::jthread other([&] {
    auto link = RankLink::connect(here);
    ASSERT_TRUE(link) << link.error().text();
    EXPECT_TRUE(link->send());
    EXPECT_TRUE(link->send());
    EXPECT_TRUE(link->receive(GetParam(), 1000));
  });
  auto link = RankLink::take(here);
  ASSERT_TRUE(link) << link.error().text();
  EXPECT_TRUE(link->receive(GetParam(), 1000));
  EXPECT_TRUE(link->receive(GetParam(), 1000)) << "two messages that came together are two";
  EXPECT_TRUE(link->send());
  EXPECT_FALSE(link->receive(GetParam(), 1000)) << "it is gone";
}

TEST(NodeNetwork, HasTwoNodesThatReachEachOtherAndNobodyElse) {
  auto network = NodeNetwork::make({0, 0});
  if (!network && network.error().code() == EPERM) GTEST_SKIP() << network.error().text();
  ASSERT_TRUE(network) << network.error().text();
  const auto in_node = [&](std::size_t node, auto body) {
    std::jthread([&] {
      ASSERT_EQ(::setns(network->of(node), CLONE_NEWNET), 0);
      body();
    });
  };
  std::jthread taker([&] {
    in_node(0, [] {
      auto link = RankLink::take(NodeNetwork::address(0));
      ASSERT_TRUE(link) << link.error().text();
      EXPECT_TRUE(link->receive(receive_block, 0));
    });
  });
  in_node(1, [] {
    auto link = RankLink::connect(NodeNetwork::address(0));
    ASSERT_TRUE(link) << link.error().text();
    EXPECT_TRUE(link->send());
  });
}

}  // namespace
}  // namespace swapd::bench
