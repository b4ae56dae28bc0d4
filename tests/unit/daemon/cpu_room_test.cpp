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
