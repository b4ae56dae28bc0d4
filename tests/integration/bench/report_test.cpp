// The figures that swapbench prints: percentiles, medians over repeats, ratios between configurations, and what it
// reads in a why.
#include "harness/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "apps/apps.h"
#include "harness/provenance.h"
#include "harness/rates.h"
#include "harness/why.h"
#include "latency.h"

namespace swapd::bench {
namespace {

TEST(Stats, PercentilesAreNearestRank) {
  const std::vector<double> values = {5, 1, 4, 2, 3};
  EXPECT_EQ(percentile(values, 50), 3);
  EXPECT_EQ(percentile(values, 99), 5);
  EXPECT_EQ(percentile(values, 1), 1);
  EXPECT_EQ(percentile({}, 50), 0);
}

// Of 100 coins 39 or fewer show heads with a probability of 1.8 %, and as rarely 61 or more; so the median is above the
// 39th value and below the 62nd.
TEST(Stats, TheMedianLiesBetweenTwoOfTheValues) {
  std::vector<double> values(100);
  std::iota(values.rbegin(), values.rend(), 1);
  EXPECT_EQ(median_interval(values), std::pair(40.0, 61.0));
  EXPECT_EQ(median_interval({3, 1, 2}), std::pair(1.0, 3.0)) << "all of a few";
  EXPECT_EQ(median_interval({}), std::pair(0.0, 0.0));
}

TEST(Stats, MedianOfRepeatsIsTakenFieldByField) {
  const Summary median = median_of({{.mean = 1, .p50 = 9, .p99 = 1, .max = 7},
                                    {.mean = 3, .p50 = 7, .p99 = 1, .max = 100},
                                    {.mean = 2, .p50 = 8, .p99 = 1, .max = 8}});
  EXPECT_EQ(median.mean, 2);
  EXPECT_EQ(median.p50, 8);
  EXPECT_EQ(median.max, 8);
}

Row row(const std::string& mechanism, const std::string& under, int hogs, double ms) {
  Row row{.setup = {.mechanism = mechanism, .under = under, .hogs = hogs, .iterations = 1}};
  row.repeats = {summarize({ms})};
  row.median = row.repeats[0];
  return row;
}

TEST(Report, RatiosCompareWithinOneMechanism) {
  const Options options{.workload = "client-server"};
  const std::vector<Row> rows = {row("pipe", "vanilla", 0, 10), row("pipe", "vanilla", 10, 110),
                                 row("pipe", "hand-set", 10, 10.6), row("pipe", "swapd", 10, 11),
                                 row("sem", "swapd", 10, 12)};
  const auto out = lines(rows, options);
  ASSERT_EQ(out.size(), rows.size());
  EXPECT_FALSE(out[0].contains("to_idle"));
  EXPECT_DOUBLE_EQ(out[3]["to_idle"].get<double>(), 1.1);
  EXPECT_DOUBLE_EQ(out[3]["to_vanilla"].get<double>(), 0.1);
  EXPECT_NEAR(out[3]["p50_to_hand_set"].get<double>(), 11 / 10.6, 1e-3);
  EXPECT_FALSE(out[4].contains("to_idle")) << "no other row speaks of semaphores";
}

// A machine that is twice as slow from the second repeat on says nothing about swapd.
TEST(Report, ARatioIsOfNeighbours) {
  auto idle = row("pipe", "vanilla", 0, 10);
  auto swapd = row("pipe", "swapd", 10, 11);
  idle.repeats = {summarize({10}), summarize({20}), summarize({20}), summarize({10})};
  swapd.repeats = {summarize({11}), summarize({22}), summarize({44}), summarize({11})};
  idle.median = median_of(idle.repeats);
  swapd.median = median_of(swapd.repeats);
  const auto out = lines({idle, swapd}, Options{.workload = "client-server"});
  EXPECT_DOUBLE_EQ(out[1]["to_idle"].get<double>(), 1.1);
  EXPECT_DOUBLE_EQ(out[1]["p50_to_idle"].get<double>(), 1.1);
}

RateRow rate_row(const std::string& under, int hogs, const std::vector<double>& throughputs) {
  RateRow row{.setup = {.mechanism = "redis", .under = under, .hogs = hogs}, .runs = {}};
  for (const double throughput : throughputs) row.runs.push_back({.throughput = throughput, .cost = {.wall_s = 2}});
  return row;
}

// Less than 1 is slower; of neighbours, so that a machine that slows down changes nothing.
TEST(Rates, ARatioIsOfThroughputs) {
  const auto out = rate_lines({rate_row("vanilla", 4, {100, 50, 100}), rate_row("hand-set", 4, {200, 100, 200}),
                               rate_row("swapd", 4, {150, 75, 160})},
                              Options{.workload = "apps"}, vanilla_of_same_hogs);
  ASSERT_EQ(out.size(), 3u);
  EXPECT_FALSE(out[0].contains("ratio")) << "to itself";
  EXPECT_EQ(out[2]["throughput"], 150);
  EXPECT_EQ(out[2]["ratio"], 1.5);
  EXPECT_EQ(out[2]["ratio_95_to"], 1.6);
  EXPECT_EQ(out[2]["to_hand_set"], 0.75);
  EXPECT_EQ(out[2]["n"], 3);
}

TEST(Rates, AChatIsComparedWithAnUnloadedOne) {
  const auto out =
      rate_lines({rate_row("vanilla", 0, {100}), rate_row("vanilla", 10, {20}), rate_row("swapd", 10, {80})},
                 Options{.workload = "chat"}, vanilla_unloaded);
  EXPECT_EQ(out[1]["ratio"], 0.2);
  EXPECT_EQ(out[2]["ratio"], 0.8);
  EXPECT_EQ(out[2]["to_vanilla"], 4);
  EXPECT_FALSE(out[2].contains("to_hand_set")) << "there is none";
  EXPECT_FALSE(out[2].contains("ratio_95_from")) << "of one run";
}

// swapd's CPU time is a share of one CPU, the hogs' of all; the events lost are the sum of all runs.
TEST(Rates, WhatIsUsedIsOfTheWallClock) {
  RateRow row = rate_row("swapd", 4, {100, 100});
  for (RateRun& run : row.runs) {
    run.cost.swapd_cpu_s = 0.5;
    run.cost.hogs_cpu_s = 1;
    run.cost.events_lost = 3;
  }
  const auto out = rate_lines({row}, Options{.workload = "apps", .cpus = 2}, vanilla_of_same_hogs);
  EXPECT_EQ(out[0]["swapd_cpu_share"], 0.25);
  EXPECT_EQ(out[0]["hogs_cpu_share"], 0.25);
  EXPECT_EQ(out[0]["events_lost"], 6);
}

// docs/design.md, Contracts.
TEST(Report, EveryLineHasTheContractsFields) {
  const Options options{.workload = "pipeline"};
  for (const auto& line : lines({row("pipe", "swapd", 10, 1)}, options)) {
    for (const char* field : {"workload", "mechanism", "under", "observer", "hogs", "cpus", "iterations", "mean_ms",
                              "p50_ms", "p99_ms", "max_ms"}) {
      EXPECT_TRUE(line.contains(field)) << field;
    }
  }
}

// With the line alone its figures can be traced and measured again.
TEST(Report, EveryLineSaysWhereItComesFrom) {
  std::vector<nlohmann::json> out = {{{"workload", "pipeline"}, {"version", "its own"}}, nlohmann::json::object()};
  const std::vector<const char*> arguments = {"/usr/bin/swapbench", "pipeline", "--plot", "a.svg", "--json"};
  stamp(out, provenance(arguments));
  for (const char* field : {"version", "commit", "kernel", "cpu", "date", "command"}) {
    ASSERT_TRUE(out[1].contains(field)) << field;
    EXPECT_FALSE(out[1][field].get<std::string>().empty()) << field;
  }
  EXPECT_EQ(out[0]["version"], "its own");
  EXPECT_EQ(out[1]["command"], "swapbench pipeline --json");
  EXPECT_THAT(out[1]["date"].get<std::string>(), testing::MatchesRegex("....-..-..T..:..:..Z"));
}

TEST(Report, AnIntervalSaysHowManyItIsOf) {
  nlohmann::json fields;
  add_interval(fields, "ratio", {1.5});
  EXPECT_TRUE(fields.is_null()) << "one value has none";
  add_interval(fields, "ratio", {1.5, 1.25, 2});
  EXPECT_EQ(fields, nlohmann::json::parse(R"({"ratio_95_from": 1.25, "ratio_95_to": 2.0, "n": 3})"));
}

TEST(Report, TheCpuIsAModelAndANumber) {
  EXPECT_EQ(cpu_of("processor\t: 0\nmodel name\t: A 9\n\nprocessor\t: 1\nmodel name\t: A 9\n"), "A 9, 2 CPUs");
  EXPECT_EQ(cpu_of("model name\t: B\n"), "B, 1 CPU");
  EXPECT_EQ(cpu_of("processor\t: 0\n"), "unknown");
}

TEST(Report, SpreadIsEveryCombinationOnceAndTheBaselineFirst) {
  Options options{.workload = "client-server", .under = {"vanilla", "swapd"}, .hogs = {0, 10}};
  EXPECT_EQ(spread(bench::Setup{}, options).size(), 4u);
  options.hogs = {10};
  options.baseline = true;
  const auto setups = spread(bench::Setup{}, options);
  ASSERT_EQ(setups.size(), 3u);
  EXPECT_EQ(setups[0].under, "vanilla");
  EXPECT_EQ(setups[0].hogs, 0);
}

TEST(Report, RepeatsAreInterleaved) {
  std::string order;
  const auto noting = [&](char name) {
    return [&order, name](const bench::Setup&) -> Result<Measured> {
      order += name;
      return Measured{.samples_ms = {1}};
    };
  };
  const auto rows = measure({{{}, noting('a')}, {{}, noting('b')}}, 3, false);
  ASSERT_TRUE(rows);
  EXPECT_EQ(order, "ababab");
  EXPECT_EQ((*rows)[0].repeats.size(), 3u);
}

TEST(Report, AFailureNamesItsConfiguration) {
  const auto rows = measure({{{.mechanism = "pipe", .under = "swapd"},
                              [](const bench::Setup&) -> Result<Measured> { return Error(ECHILD, "it broke"); }}},
                            1, false);
  ASSERT_FALSE(rows);
  EXPECT_THAT(rows.error().text(), testing::StartsWith("pipe under swapd: it broke"));
}

TEST(Why, CountsTheMembersOfAChainAtAnyDepth) {
  const auto json = nlohmann::json::parse(R"({"threads":[{"pid":1,"waiting_for":[{"resource":"socket:1","providers":[
      {"pid":2,"waiting_for":[{"resource":"socket:2","providers":[{"pid":3,"waiting_for":[]}]}]},
      {"pid":9,"waiting_for":[]}]}]}]})");
  const Why why = read_why(json, {2, 3, 4});
  EXPECT_EQ(why.named, 2);
  EXPECT_EQ(why.candidates, 2);
  EXPECT_EQ(read_why(nlohmann::json::object(), {1}).named, 0);
}

KernelEvent event(int us, pid_t tid, std::int64_t value = 0) {
  return {.time = Time(std::chrono::microseconds(us)), .tid = tid, .value = value};
}

TEST(Latency, IsFromTheBlockToTheReturnOfTheCallThatSucceeded) {
  const std::vector<WaitWindow> waits = {{100'000, 900'000}, {1'000'000, 1'900'000}, {2'000'000, 2'100'000}};
  Seen seen;
  // Sleeps between the waits do not count, nor does a second change in one wait.
  seen.blocks = {event(2005, 1), event(50, 1), event(110, 1), event(1010, 1)};
  seen.entered = {event(90, 7), event(150, 7), event(400, 7), event(1020, 7), event(1060, 7), event(2300, 7)};
  // Another thread's calls are nobody's answer; the first try in the second wait failed.
  seen.left = {event(95, 7),           event(155, 8),  event(160, 7), event(410, 7),
               event(1030, 7, -EPERM), event(1070, 7), event(2310, 7)};
  const Latencies result = latencies(waits, seen);
  ASSERT_EQ(result.ms.size(), 2u);
  EXPECT_NEAR(result.ms[0], 0.05, 1e-9);
  EXPECT_NEAR(result.ms[1], 0.06, 1e-9);
  EXPECT_EQ(result.missed, 1) << "the third came after the answer";
}

// Four waits that are answered 60 µs after they began: the provider has no CPU for most of that time; loses it after
// 20 µs; has it all the time; gets it where the requester leaves it, and loses it again.
TEST(Latency, HasThePartInWhichTheProviderHadNoCpu) {
  const std::vector<WaitWindow> waits = {
      {100'000, 900'000}, {1'000'000, 1'900'000}, {2'000'000, 2'900'000}, {3'000'000, 3'900'000}};
  Seen seen;
  seen.blocks = {event(100, 1), event(1000, 1), event(2000, 1), event(3000, 1)};
  seen.entered = {event(150, 7), event(1050, 7), event(2050, 7), event(3050, 7)};
  seen.left = {event(160, 7), event(1060, 7), event(2060, 7), event(3060, 7)};
  seen.took = {event(150, 2), event(1055, 2), event(3001, 2), event(3100, 2)};
  seen.lost = {event(90, 2), event(1020, 2), event(2900, 2), event(3051, 2)};
  const Latencies result = latencies(waits, seen);
  ASSERT_EQ(result.without_cpu_ms.size(), 4u);
  EXPECT_NEAR(result.without_cpu_ms[0], 0.05, 1e-9);
  EXPECT_NEAR(result.without_cpu_ms[1], 0.035, 1e-9);
  EXPECT_EQ(result.without_cpu_ms[2], 0);
  EXPECT_NEAR(result.without_cpu_ms[3], 0.01, 1e-9);
}

TEST(Apps, TheFigureBehindALabelIsRead) {
  const auto wrk =
      number_behind("  612 requests in 1.00s\nRequests/sec:  43536.33\nTransfer/sec: 35MB\n", "Requests/sec:");
  ASSERT_TRUE(wrk);
  EXPECT_DOUBLE_EQ(*wrk, 43536.33);
  EXPECT_DOUBLE_EQ(*number_behind("\"test\",\"rps\"\n\"GET\",\"71312.70\",\"0.5\"\n", "\"GET\",\""), 71312.70);
  EXPECT_FALSE(number_behind("tps = nothing", "tps = "));
  EXPECT_FALSE(number_behind("", "tps = "));
}

TEST(Apps, EachHasItsMaker) {
  for (const auto name : app_names()) EXPECT_NE(make_app(name), nullptr) << name;
  EXPECT_EQ(make_app("emacs"), nullptr);
}

TEST(Attributes, ByHandIsWhatADonationAtBestGives) {
  EXPECT_EQ(text(by_hand(attr_of("fifo:50"))), "fifo:49");
  EXPECT_EQ(text(by_hand(attr_of("nice:-10"))), "nice:-10");
}

}  // namespace
}  // namespace swapd::bench
