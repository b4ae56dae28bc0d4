// Whether the threads of a parallel job can all have CPUs at the same time.
#include "engine/cpu_room.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace swapd::daemon {
namespace {

using namespace std::chrono_literals;

cpu_set_t cpus(std::initializer_list<int> numbers) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int number : numbers) CPU_SET(number, &set);
  return set;
}

TEST(FitAtOnce, AsManyThreadsAsThereAreCpusForThem) {
  EXPECT_TRUE(fit_at_once({}));
  EXPECT_TRUE(fit_at_once({cpus({0, 1}), cpus({0, 1})}));
  EXPECT_FALSE(fit_at_once({cpus({0, 1}), cpus({0, 1}), cpus({0, 1})}));
}

TEST(FitAtOnce, TwoThatMayUseOneCpuAloneDoNot) {
  EXPECT_FALSE(fit_at_once({cpus({1}), cpus({1})}));
  EXPECT_TRUE(fit_at_once({cpus({0}), cpus({1})}));
  EXPECT_FALSE(fit_at_once({cpus({1}), cpus({1}), cpus({0, 1, 2, 3})})) << "whatever a third one may use";
}

TEST(FitAtOnce, OneMovesForAnother) {
  EXPECT_TRUE(fit_at_once({cpus({0, 1}), cpus({0})}));
  EXPECT_TRUE(fit_at_once({cpus({0, 1}), cpus({0, 2}), cpus({0}), cpus({1, 2, 3})}));
  EXPECT_FALSE(fit_at_once({cpus({0, 1}), cpus({0, 1}), cpus({0}), cpus({2, 3})}));
}

TEST(FitAtOnce, OnAMachineOfManyCpus) {
  std::vector<cpu_set_t> ranks;
  for (int rank = 0; rank < 256; ++rank) ranks.push_back(cpus({rank, (rank + 1) % 256}));
  EXPECT_TRUE(fit_at_once(ranks));
  ranks.push_back(cpus({7, 8}));
  EXPECT_FALSE(fit_at_once(ranks));
}

class CpuRoomTest : public testing::Test {
 protected:
  CpuRoom room_;
  Time now_{1h};
};

TEST_F(CpuRoomTest, EachJobForItself) {
  room_.set(1, 10, cpus({0}), now_);
  room_.set(1, 11, cpus({0}), now_);
  room_.set(2, 20, cpus({0}), now_);
  room_.end_window(now_);
  EXPECT_FALSE(room_.fits(1));
  EXPECT_TRUE(room_.fits(2));
  EXPECT_TRUE(room_.fits(3)) << "never heard of";
}

TEST_F(CpuRoomTest, AThreadThatIsHeardOfRarelyCountsForLong) {
  room_.set(1, 10, cpus({0}), now_);
  for (int window = 0; window < 20; ++window) {
    now_ += 400ms;
    room_.set(1, 11, cpus({0}), now_);
    room_.end_window(now_);
    EXPECT_FALSE(room_.fits(1));
  }
  now_ += 3s;
  room_.end_window(now_);
  EXPECT_TRUE(room_.fits(1)) << "ten seconds without a word";
}

// A launcher, and a library's thread that looks after connections.
TEST_F(CpuRoomTest, AThreadThatSleepsTakesNoRoom) {
  for (const pid_t tid : {10, 11, 12}) room_.set(1, tid, cpus({0, 1}), now_);
  room_.end_window(now_);
  ASSERT_FALSE(room_.fits(1));
  room_.sleeps(12, true);
  room_.end_window(now_);
  EXPECT_TRUE(room_.fits(1));
  EXPECT_EQ(room_.threads_of(1).size(), 3U);
  room_.set(1, 12, cpus({0, 1}), now_);
  room_.end_window(now_);
  EXPECT_TRUE(room_.fits(1)) << "to be seen once wakes nobody";
  room_.sleeps(12, false);
  room_.end_window(now_);
  EXPECT_FALSE(room_.fits(1));
}

// Each fits, and both together do not, wherever their threads are.
TEST_F(CpuRoomTest, FloatingJobsOnTheSameCpusAreInOneRoom) {
  for (const pid_t tid : {10, 11}) room_.set(1, tid, cpus({0, 1}), now_);
  for (const pid_t tid : {20, 21}) room_.set(2, tid, cpus({0, 1}), now_);
  room_.set(3, 30, cpus({0, 1}), now_);
  room_.end_window(now_);
  EXPECT_TRUE(room_.fits(1) && room_.fits(2));
  EXPECT_EQ(room_.room(1), 1U);
  EXPECT_EQ(room_.room(2), 1U);
  EXPECT_EQ(room_.room(3), 0U) << "one thread is no job";
}

TEST_F(CpuRoomTest, JobsThatFitTogetherHaveRoomsOfTheirOwn) {
  for (const pid_t tid : {10, 11}) room_.set(1, tid, cpus({0, 1, 2, 3}), now_);
  for (const pid_t tid : {20, 21}) room_.set(2, tid, cpus({0, 1, 2, 3}), now_);
  room_.set(3, 30, cpus({4}), now_);
  room_.set(3, 31, cpus({5}), now_);
  room_.end_window(now_);
  for (const std::uint64_t job : {1U, 2U, 3U}) EXPECT_EQ(room_.room(job), job);
}

// 2 waits for both of the others, so all three take turns.
TEST_F(CpuRoomTest, AJobBetweenTwoOthersJoinsTheirRooms) {
  const auto pinned = [&](std::uint64_t job, int first) {
    for (const int cpu : {first, first + 1}) room_.set(job, static_cast<pid_t>(10 * job) + cpu, cpus({cpu}), now_);
  };
  pinned(1, 0);
  pinned(3, 2);
  room_.end_window(now_);
  EXPECT_NE(room_.room(1), room_.room(3));
  pinned(2, 1);
  room_.end_window(now_);
  for (const std::uint64_t job : {1U, 2U, 3U}) EXPECT_EQ(room_.room(job), 1U);
}

TEST_F(CpuRoomTest, AJobThatDoesNotFitItselfIsInNoRoom) {
  for (const pid_t tid : {10, 11, 12}) room_.set(1, tid, cpus({0, 1}), now_);
  for (const pid_t tid : {20, 21}) room_.set(2, tid, cpus({0, 1}), now_);
  room_.end_window(now_);
  EXPECT_EQ(room_.room(1), 0U);
  EXPECT_EQ(room_.room(2), 2U);
}

TEST_F(CpuRoomTest, OfVeryManyJobsAllAreInOneRoom) {
  for (std::size_t job = 1; job <= CpuRoom::max_jobs + 1; ++job)
    for (const int cpu : {0, 1})
      room_.set(job, static_cast<pid_t>(10 * job) + cpu, cpus({static_cast<int>(2 * job) + cpu}), now_);
  room_.end_window(now_);
  EXPECT_EQ(room_.room(1), 1U);
  EXPECT_EQ(room_.room(CpuRoom::max_jobs + 1), 1U);
}

TEST_F(CpuRoomTest, WhatAThreadMayUseChanges) {
  room_.set(1, 10, cpus({0}), now_);
  room_.set(1, 11, cpus({0}), now_);
  room_.end_window(now_);
  ASSERT_FALSE(room_.fits(1));
  room_.set(1, 11, cpus({0, 1}), now_);
  room_.end_window(now_);
  EXPECT_TRUE(room_.fits(1));
}

}  // namespace
}  // namespace swapd::daemon
