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

TEST(WantingTest, ThreadThatWaitsNearlyAllTheTimeWantsACpu) {
  Wanting wanting;
  EXPECT_FALSE(wanting.look(7, stat(1ms, 10ms), Time(1s))) << "of one look nothing is known";
  EXPECT_TRUE(wanting.look(7, stat(5ms, 300ms), Time(1s + 375ms)));
}

TEST(WantingTest, OneThatRunsNowAndThenDoesNot) {
  Wanting wanting;
  EXPECT_FALSE(wanting.look(7, stat(1ms, 10ms), Time(1s)));
  EXPECT_FALSE(wanting.look(7, stat(20ms, 30ms), Time(2s)));
}

TEST(WantingTest, AnotherThreadOfTheSameIdIsNotTheOneBefore) {
  Wanting wanting;
  EXPECT_FALSE(wanting.look(7, stat(5s, 5s), Time(1s)));
  EXPECT_FALSE(wanting.look(7, stat(1s, 0s), Time(2s)));
  wanting.forget_old(Time(1h));
  EXPECT_FALSE(wanting.look(7, stat(9s, 9s), Time(2h)));
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
