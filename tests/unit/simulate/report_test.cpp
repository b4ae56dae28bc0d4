// The lines of `swapd --simulate`.
#include "simulate/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "unit/simulate/support.h"

namespace swapd::simulate::test {
namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  const Status done = simulate(text, "s.toml", [&](const std::string& line) { lines.push_back(line); });
  EXPECT_TRUE(done) << done.error().context();
  return lines;
}

constexpr std::string_view four_nodes =
    "title = \"t\"\nnodes = 4\ncycles = 1000\n[job.A]\nmessages = 0.5\nswitches = 0.1\n"
    "[job.B]\nmessages = 0.5\nswitches = 0.1\n";

TEST(Report, AScenarioIsALineForEachThingThatIsTold) {
  std::vector<std::string> types;
  for (const std::string& line : lines_of(four_nodes)) types.push_back(nlohmann::json::parse(line).at("type"));
  EXPECT_EQ(types, (std::vector<std::string>{"scenario", "job", "job", "chain", "summary"}));
}

TEST(Report, StatesAreSharesOfTheTime) {
  const auto job = nlohmann::json::parse(lines_of(four_nodes)[1]);
  double sum = 0;
  for (const double share : job.at("states")) sum += share;
  EXPECT_EQ(job.at("states").size(), 5U);
  EXPECT_NEAR(sum, 1, 1e-4);
  EXPECT_FALSE(nlohmann::json::parse(lines_of("states = false\n" + std::string(four_nodes))[1]).contains("states"));
}

TEST(Report, ASweepIsARunForEachValue) {
  const auto lines = lines_of(std::string(four_nodes) + "[sweep]\nswitches = [0.1, 0.2]\n");
  ASSERT_EQ(lines.size(), 10U);
  EXPECT_EQ(nlohmann::json::parse(lines[0]).at("value"), 0.1);
  EXPECT_EQ(nlohmann::json::parse(lines[5]).at("value"), 0.2);
  EXPECT_EQ(nlohmann::json::parse(lines[5]).at("sweep"), "switches");
}

TEST(Report, TwoRunsAreTheSameByteForByte) { EXPECT_EQ(lines_of(four_nodes), lines_of(four_nodes)); }

TEST(Report, OnlyWhatTheChainDescribesHasOne) {
  const Scenario plain = scenario(four_nodes);
  EXPECT_TRUE(chain_of(plain));
  Scenario other = plain;
  other.scheduler.epochs = true;
  EXPECT_FALSE(chain_of(other));
  other = plain;
  other.link.latency = 1;
  EXPECT_FALSE(chain_of(other));
  other = plain;
  other.jobs[1].nodes = 3;
  EXPECT_FALSE(chain_of(other));
  other = plain;
  other.jobs.pop_back();
  EXPECT_FALSE(chain_of(other));
}

TEST(Report, NothingIsPrintedOfAScenarioThatIsNotGood) {
  int lines = 0;
  const Status done = simulate("nodes = 0\n", "s.toml", [&](const std::string&) { ++lines; });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().context(), "s.toml:1: 'nodes' in [scenario] must be a whole number from 1 to 100000, not 0");
  EXPECT_EQ(lines, 0);
}

}  // namespace
}  // namespace swapd::simulate::test
