// Scenarios: each mistake is one line with its place.
#include "simulate/scenario.h"

#include <gtest/gtest.h>

#include "unit/simulate/support.h"

namespace swapd::simulate::test {
namespace {

std::string refusal(std::string_view text) {
  const Result<Scenario> parsed = parse_scenario(text, "s.toml");
  if (parsed) return "(accepted)";
  EXPECT_EQ(parsed.error().code(), EINVAL);
  EXPECT_EQ(parsed.error().context().find('\n'), std::string::npos);
  return parsed.error().context();
}

const std::string job_a = "[job.A]\nmessages = 0.5\nswitches = 0.1\n";

TEST(Scenario, JobsComeInTheOrderOfTheFile) {
  const Scenario s =
      scenario("[job.zebra]\nprogram = \"serial\"\n[job.ant]\nprogram = \"serial\"\ncopies = 3\nnodes = 2\n");
  ASSERT_EQ(s.jobs.size(), 2U);
  EXPECT_EQ(s.jobs[0].name, "zebra");
  EXPECT_EQ(s.processes_on(1), 4U);
  EXPECT_EQ(s.processes_on(2), 1U);
}

TEST(Scenario, ACycleHasALength) {
  EXPECT_EQ(scenario("cycle_us = 2\n" + job_a).time(3), std::chrono::microseconds(6));
}

TEST(Scenario, ASweepChangesTheJobsThatHaveSuchAValue) {
  const Scenario s = scenario(job_a + "[job.loop]\nprogram = \"serial\"\n[sweep]\nswitches = [0.2, 0.3]\n");
  const Scenario second = *at_point(s, 1, "s.toml");
  EXPECT_DOUBLE_EQ(second.jobs[0].switches, 0.3);
  EXPECT_DOUBLE_EQ(second.jobs[1].switches, 0);
}

TEST(Scenario, MistakesHaveTheirLine) {
  EXPECT_EQ(refusal(""), "s.toml:1: there is no [job.NAME]");
  EXPECT_EQ(refusal("nodes = 4\nnode = 5\n" + job_a),
            "s.toml:2: unknown key 'node' in [scenario]; did you mean 'nodes'?");
  EXPECT_EQ(refusal(job_a + "[schedular]\n"), "s.toml:4: unknown table 'schedular'");
  EXPECT_EQ(refusal(job_a + "[scheduler]\nepoch = true\n"),
            "s.toml:5: unknown key 'epoch' in [scheduler]; did you mean 'epochs'?");
  EXPECT_EQ(refusal(job_a + "[scheduler]\nepochs = 1\n"),
            "s.toml:5: 'epochs' in [scheduler] must be true or false, not 1");
  EXPECT_EQ(refusal("[job.A]\nmessages = -1\n"),
            "s.toml:2: 'messages' in [job.A] must be a number from 0 to 1000, not -1");
  EXPECT_EQ(refusal("[job.A]\nprogram = \"tokn\"\n"),
            "s.toml:2: 'program' in [job.A] cannot be \"tokn\"; did you mean \"token\"?");
  EXPECT_EQ(refusal("nodes = \n").substr(0, 9), "s.toml:1:");
  EXPECT_EQ(refusal("job = 3\n"), "s.toml:1: 'job' in [scenario] must be a table, not 3");
  EXPECT_EQ(refusal("[job]\nA = 3\n"), "s.toml:2: write a table [job.NAME]");
}

TEST(Scenario, ValuesMustFitEachOther) {
  EXPECT_EQ(refusal("nodes = 4\n\n[job.A]\nnodes = 5\n"), "s.toml:3: [job.A] is on 5 nodes, but there are 4");
  EXPECT_EQ(refusal("[job.A]\ncopies = 2\n"), "s.toml:1: [job.A] has copies, which only a serial program may");
  EXPECT_EQ(refusal("[job.A]\nprogram = \"barrier\"\n"),
            "s.toml:1: [job.A] needs a 'grain' above 0: it sends a message after each");
  EXPECT_EQ(refusal("[job.A]\ngrain = 3\n"), "s.toml:1: [job.A] has a 'grain', which only token and barrier have");
  EXPECT_EQ(refusal("[job.A]\nprogram = \"serial\"\nmessages = 3\n"),
            "s.toml:1: [job.A] has 'messages', a rate that only a random program has");
  EXPECT_EQ(refusal("nodes = 1\n" + job_a), "s.toml:2: [job.A] needs two nodes to send messages");
  EXPECT_EQ(refusal("[job.A]\nblocks = 0.1\n"), "s.toml:1: [job.A] blocks, and needs 'block_cycles' above 0");
  EXPECT_EQ(refusal("cycle_us = 0.01\n" + job_a),
            "s.toml:2: [job.A] has events more often than each 0.1 µs, in cycles of 0.01 µs");
  EXPECT_EQ(refusal(job_a + "[scheduler]\npredicate = \"fixed\"\n"),
            "s.toml:4: the predicate needs 'slice' or 'mean_slice' above 0 in [scheduler]");
  EXPECT_EQ(refusal(job_a + "[scheduler]\nslice = 3\npredicate = \"automatic\"\n"),
            "s.toml:4: predicate = \"automatic\" needs a 'window' in [scheduler]");
  EXPECT_EQ(refusal("nodes = 100000\n[job.A]\nprogram = \"serial\"\ncopies = 11\n"),
            "s.toml:1: 1100000 processes, more than 1000000");
}

TEST(Scenario, SweepsAreChecked) {
  EXPECT_EQ(refusal(job_a + "[sweep]\n"), "s.toml:4: [sweep] needs one key with a list of numbers");
  EXPECT_EQ(refusal(job_a + "[sweep]\nseed = [1, 2]\n"), "s.toml:5: 'seed' cannot be swept");
  EXPECT_EQ(refusal(job_a + "[sweep]\nnodes = 3\n"), "s.toml:5: 'nodes' in [sweep] must be a list of 1 to 100 numbers");
  EXPECT_EQ(refusal(job_a + "[sweep]\nnodes = [3, \"x\"]\n"),
            "s.toml:5: 'nodes' in [sweep] must be a list of numbers, not of \"x\"");
  EXPECT_EQ(refusal(job_a + "[sweep]\nnodes = [2.5]\n"),
            "s.toml:5: 'nodes' in [sweep] must be whole numbers from 1 to 100000");
  EXPECT_EQ(refusal(job_a + "[sweep]\nnodes = [1]\n"), "s.toml:1: [job.A] needs two nodes to send messages");
}

TEST(Scenario, ShippedOnesAreGood) {
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_dir() / "bench/simulate")) {
    if (entry.path().extension() != ".toml") continue;
    const Result<Scenario> parsed = parse_scenario(contents(entry.path()), entry.path().filename().string());
    EXPECT_TRUE(parsed) << parsed.error().context();
    ++found;
  }
  EXPECT_GE(found, 4);
}

}  // namespace
}  // namespace swapd::simulate::test
