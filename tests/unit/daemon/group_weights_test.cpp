#include "engine/group_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "fakes/fake_groups.h"

namespace swapd::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

sys::WeightedGroup v2(std::uint64_t weight) { return {.weight = weight, .nice_0_weight = 100, .max_weight = 10'000}; }
sys::WeightedGroup v1(std::uint64_t shares) { return {.weight = shares}; }
sys::WeightedGroup idle() { return {.weight = 3, .idle = true}; }

Weight weighed(const WeightsAnswer::Path& path, const std::map<std::string, std::uint64_t>& own = {}) {
  return weight_of(path, [&](const std::string& group) {
    const auto found = own.find(group);
    return found == own.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST(GroupWeights, TheRootWeighsWhatIsUsual) { EXPECT_EQ(weighed({}), usual_weight); }

TEST(GroupWeights, BothVersionsHaveOneScale) {
  EXPECT_EQ(weighed({{"/a", v2(1000)}}), 1000U);
  EXPECT_EQ(weighed({{"/a", v1(10'240)}}), 1000U);
  EXPECT_EQ(weighed({{"/a", v1(512)}}), 50U);
}

TEST(GroupWeights, LevelsMultiply) {
  EXPECT_EQ(weighed({{"/user/session", v2(500)}, {"/user", v2(200)}}), 1000U);
  EXPECT_EQ(weighed({{"/background/job", v2(1000)}, {"/background", v2(20)}}), 200U)
      << "a heavy group in a light one is not that heavy to others";
}

TEST(GroupWeights, ThereIsAnEnd) {
  EXPECT_EQ(weighed({{"/a/b/c", v2(10'000)}, {"/a/b", v2(10'000)}, {"/a", v2(10'000)}}), 1'000'000U);
  EXPECT_EQ(weighed({{"/a/b", v2(1)}, {"/a", v2(1)}}), 1U);
}

TEST(GroupWeights, ThreadsOfAnIdleGroupAreNotImportant) {
  EXPECT_EQ(weighed({{"/a", idle()}}), usual_weight);
  EXPECT_EQ(weighed({{"/a/b", idle()}, {"/a", v2(1000)}}), usual_weight);
}

TEST(GroupWeights, AUserDoesNotMakeItsOwnThreadsImportant) {
  sys::WeightedGroup delegated = v2(1000);
  delegated.delegated = true;
  EXPECT_EQ(weighed({{"/user/app", delegated}, {"/user", v2(200)}}), 200U);
  delegated.weight = 50;
  EXPECT_EQ(weighed({{"/user/app", delegated}, {"/user", v2(200)}}), 200U) << "nor is more lent to a light group";
}

TEST(GroupWeights, WhatIsOnLoanDoesNotCount) {
  EXPECT_EQ(weighed({{"/a", v2(930)}}, {{"/a", 100}}), 100U);
  EXPECT_EQ(weighed({{"/a/b", v2(100)}, {"/a", v2(1000)}}, {{"/a/b", 0}}), usual_weight) << "it is idle of its own";
}

TEST(GroupWeights, EachGroupIsReadOnce) {
  fakes::FakeGroups groups;
  groups.group_of_tid = {{10, "/a/b"}, {11, "/a/b"}, {12, "/a"}};
  groups.weighted = {{"/a", v2(200)}, {"/a/b", v2(300)}};
  const WeightsAnswer answer = read_weights(groups, {.threads = {{10, 1}, {11, 1}, {12, 1}, {13, 1}}, .changes = 7});
  EXPECT_EQ(groups.reads, 4 + 2);
  EXPECT_EQ(answer.changes, 7U);
  ASSERT_EQ(answer.paths.size(), 3U);
  EXPECT_EQ(weighed(answer.paths[0]), 600U);
  EXPECT_EQ(weighed(answer.paths[1]), 200U);
  EXPECT_EQ(weighed(answer.paths[2]), usual_weight);
  EXPECT_THAT(answer.threads, ElementsAre(Pair(ThreadId{10, 1}, 0), Pair(ThreadId{11, 1}, 0), Pair(ThreadId{12, 1}, 1),
                                          Pair(ThreadId{13, 1}, 2)));
}

}  // namespace
}  // namespace swapd::daemon
