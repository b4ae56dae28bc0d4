#include "enroll/enroll_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "enroll/rule_enrollments.h"

namespace swapd::daemon {
namespace {

using testing::ElementsAre;

class EnrollQueueTest : public testing::Test {
 protected:
  void push(pid_t pid) { EXPECT_TRUE(queue_.push({.pid = pid, .start_time = 1, .rule = nullptr, .cmdline = {}})); }
  void drain() {
    queue_.drain([this](const WantedProgram& wanted) {
      taken_.push_back(wanted.pid);
      queue_.begin();
      if (ends_at_once_) {
        queue_.end();
        drain();
      }
    });
  }

  EnrollQueue queue_;
  std::vector<pid_t> taken_;
  bool ends_at_once_ = false;
};

TEST_F(EnrollQueueTest, EightAreUnderWayAtMost) {
  for (pid_t pid = 1; pid <= 10; ++pid) push(pid);
  drain();
  EXPECT_THAT(taken_, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  queue_.end();
  drain();
  EXPECT_EQ(taken_.size(), 9U);
  EXPECT_EQ(taken_.back(), 9);
}

TEST_F(EnrollQueueTest, WhatEndsAtOnceIsNoCallInACall) {
  ends_at_once_ = true;
  for (pid_t pid = 1; pid <= 20; ++pid) push(pid);
  drain();
  EXPECT_EQ(taken_.size(), 20U);
  EXPECT_EQ(taken_.back(), 20);
}

TEST_F(EnrollQueueTest, OneTooManyIsDropped) {
  for (std::size_t i = 0; i < EnrollQueue::max_waiting; ++i) push(1);
  EXPECT_FALSE(queue_.push({}));
}

TEST(LookBackoff, TheLongerAStormLastsTheLongerThePause) {
  LookBackoff backoff;
  Time now{std::chrono::hours(1)};
  for (const int seconds : {1, 2, 4, 8, 16, 32, 64, 64}) {
    const Duration pause = backoff.next_pause(now);
    EXPECT_EQ(pause, std::chrono::seconds(seconds));
    now += pause;
    backoff.looked(now);
  }
}

TEST(LookBackoff, AfterACalmItBeginsAnew) {
  LookBackoff backoff;
  Time now{std::chrono::hours(1)};
  for (int i = 0; i < 3; ++i) {
    now += backoff.next_pause(now);
    backoff.looked(now);
  }
  now += std::chrono::minutes(1);
  EXPECT_EQ(backoff.next_pause(now), LookBackoff::min_pause);
}

TEST(RuleEnrollments, ACommandEndsTheRule) {
  RuleEnrollments taken;
  const policy::NamedRule rule{};
  taken.add(10, 1, &rule);
  EXPECT_EQ(taken.rule_of(10, 1), &rule);
  EXPECT_EQ(taken.rule_of(10, 2), nullptr);  // another process with its id
  taken.by_hand(10);
  EXPECT_EQ(taken.rule_of(10, 1), nullptr);
}

}  // namespace
}  // namespace swapd::daemon
