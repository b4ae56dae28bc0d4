// Whose the CPU time of a group is, who else wants some of it, and what the group weighs.
#include "engine/job_groups.h"

#include <gtest/gtest.h>

namespace swapd::daemon {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t job = 1, other_job = 2, no_job = 0;

TEST(GroupUseTest, GroupIsAJobsIfNearlyAllOfItsCpuTimeIs) {
  GroupUse use;
  use.add(job, {"autogroup-5"}, 96);
  use.add(no_job, {"autogroup-5"}, 4);
  use.add(no_job, {"autogroup-6"}, 100);
  EXPECT_EQ(use.owned(job, {"autogroup-5"}), 1);
  use.add(no_job, {"autogroup-5"}, 4);
  EXPECT_EQ(use.owned(job, {"autogroup-5"}), 0);
}

TEST(GroupUseTest, GroupsAboveCountUpToTheOneInWhichTheRivalsAre) {
  GroupUse use;
  use.add(job, {"/pod/job/rank", "/pod/job", "/pod"}, 50);
  use.add(job, {"/pod/job", "/pod"}, 50);
  use.add(no_job, {"/pod/rival", "/pod"}, 100);
  EXPECT_EQ(use.owned(job, {"/pod/job/rank", "/pod/job", "/pod"}), 2);
  EXPECT_EQ(use.owned(job, {"/pod/job", "/pod"}), 1);
}

TEST(GroupUseTest, TwoJobsInAGroupHaveNoneForThemselves) {
  GroupUse use;
  use.add(job, {"/a"}, 50);
  use.add(other_job, {"/a"}, 50);
  EXPECT_EQ(use.owned(job, {"/a"}), 0);
  EXPECT_EQ(use.owned(other_job, {"/a"}), 0);
}

TEST(GroupUseTest, OneSampleOfAnotherThreadSaysLittle) {
  GroupUse use;
  for (int i = 0; i < 10; ++i) {
    use.fade();
    use.add(job, {"/a"}, 18);
  }
  use.fade();
  use.add(job, {"/a"}, 17);
  use.add(no_job, {"/a"}, 1);
  EXPECT_EQ(use.owned(job, {"/a"}), 1);
  for (int i = 0; i < 4; ++i) {
    use.fade();
    use.add(job, {"/a"}, 9);
    use.add(no_job, {"/a"}, 9);
  }
  EXPECT_EQ(use.owned(job, {"/a"}), 0);
}

TEST(GroupUseTest, GroupThatIsToBeKeptIsNobodys) {
  GroupUse use;
  use.add(job, {"/a/b", "/a"}, 50);
  use.keep({"/a"});
  EXPECT_EQ(use.owned(job, {"/a/b", "/a"}), 1);
}

TEST(GroupUseTest, ThreadOfNoJobHasNoGroup) {
  GroupUse use;
  use.add(no_job, {"/a"}, 50);
  EXPECT_EQ(use.owned(no_job, {"/a"}), 0);
  EXPECT_EQ(use.owned(job, {"/b"}), 0);
}

sys::Procfs::SchedStat stat(Duration cpu, Duration waited) { return {.cpu = cpu, .waited = waited, .turns = 0}; }

class WantingTest : public testing::Test {
 protected:
  bool look(Duration cpu, Duration waited, Duration at) { return wanting.look(7, stat(cpu, waited), Time(1s + at)); }
  Wanting wanting;
};

TEST_F(WantingTest, ThreadThatWaitsNearlyAllTheTimeWantsACpu) {
  wanting.met(7, Time(1s));
  EXPECT_FALSE(look(1ms, 10ms, 0ms)) << "of one look nothing is known";
  EXPECT_FALSE(look(1ms, 10ms, 125ms)) << "that it waits is not known before it has a CPU";
  EXPECT_FALSE(look(1ms, 10ms, 250ms));
  EXPECT_TRUE(look(5ms, 300ms, 375ms));
}

TEST_F(WantingTest, OneThatRunsNowAndThenDoesNot) {
  wanting.met(7, Time(1s));
  for (int i = 0; i < 40; ++i) EXPECT_FALSE(look(i * 10ms, i * 10ms, i * 125ms));
}

TEST_F(WantingTest, OneThatNoSampleHasMetIsNotLookedAt) {
  EXPECT_FALSE(look(1ms, 10ms, 0ms));
  EXPECT_FALSE(look(5ms, 900ms, 900ms));
  wanting.met(7, Time(1s));
  EXPECT_EQ(wanting.threads(), std::vector<pid_t>{7});
  wanting.forget_old(Time(10s));
  EXPECT_TRUE(wanting.threads().empty());
}

TEST_F(WantingTest, AnotherThreadOfTheSameIdIsNotTheOneBefore) {
  wanting.met(7, Time(1s));
  EXPECT_FALSE(look(5s, 5s, 0ms));
  EXPECT_FALSE(look(1s, 0s, 500ms));
  EXPECT_FALSE(look(1s, 10ms, 1000ms));
}

TEST(OwnWeightsTest, AreThoseFromBeforeTheGroupWasLowered) {
  OwnWeights weights;
  EXPECT_EQ(weights.of(7), 0U);
  weights.add(7, 512, false, Time(1s));
  weights.add(7, 7, true, Time(2s));
  EXPECT_EQ(weights.of(7), 512U);
  weights.add(7, 7, false, Time(3s));
  EXPECT_EQ(weights.of(7), 512U) << "the window in which it is given back tells of both";
  for (int i = 0; i < 40; ++i) weights.add(7, 1024, false, Time(4s));
  EXPECT_NEAR(weights.of(7), 1024, 5);
}

TEST(OwnWeightsTest, ArePastMeans) {
  OwnWeights weights;
  weights.add(7, 400, false, Time(1s));
  weights.add(7, 800, false, Time(2s));
  EXPECT_EQ(weights.of(7), 500U);
  weights.add(7, 0, false, Time(3s));
  EXPECT_EQ(weights.of(7), 500U) << "without rivals it is not known";
  weights.forget_old(Time(1h));
  EXPECT_EQ(weights.of(7), 0U);
}

}  // namespace
}  // namespace swapd::daemon
