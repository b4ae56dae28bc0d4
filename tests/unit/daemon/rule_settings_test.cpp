// A rule gives a program what it says, beside an imagined kernel and a /proc of the test's own.
#include "enroll/rule_settings.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "fakes/fake_scheduler.h"

namespace swapd::daemon {
namespace {

namespace fs = std::filesystem;
using policy::IoClass;
using policy::MatchRule;

constexpr int io(IoClass io_class, int level) { return ((static_cast<int>(io_class) + 1) << 13) | level; }

TEST(RuleSettings, ANiceValueAloneLeavesTheClass) {
  EXPECT_EQ(asked_by({.base = SchedAttr{.nice = 5}}, {.policy = SchedPolicy::batch}), AskedPriority::only_nice(5));
}

TEST(RuleSettings, AClassOrASliceKeepsTheNiceValueThatTheRuleDoesNotSay) {
  const SchedAttr own{.nice = 7};
  EXPECT_EQ(asked_by({.sched = SchedPolicy::batch}, own), AskedPriority({.policy = SchedPolicy::batch, .nice = 7}));
  EXPECT_EQ(asked_by({.base = SchedAttr{.nice = -2}, .sched = SchedPolicy::batch}, own),
            AskedPriority({.policy = SchedPolicy::batch, .nice = -2}));
  EXPECT_EQ(asked_by({.slice = std::chrono::milliseconds(3)}, own),
            AskedPriority({.nice = 7, .runtime_ns = 3'000'000}));
}

TEST(RuleSettings, ARealTimeThreadIsMadeAnOrdinaryOne) {
  EXPECT_EQ(asked_by({.sched = SchedPolicy::idle}, {.policy = SchedPolicy::fifo, .rt_priority = 5}),
            AskedPriority({.policy = SchedPolicy::idle}));
}

TEST(RuleSettings, ARuleWithoutAnyAsksForNothing) {
  EXPECT_EQ(asked_by({}, {}), std::nullopt);
  EXPECT_EQ(io_priority_by({}), std::nullopt);
}

TEST(RuleSettings, AnIoPriorityIsOneOfBestEffortUnlessAClassIsSaid) {
  EXPECT_EQ(io_priority_by({.io_priority = 2}), io(IoClass::best_effort, 2));
  EXPECT_EQ(io_priority_by({.io_class = IoClass::best_effort}), io(IoClass::best_effort, 4));
  EXPECT_EQ(io_priority_by({.io_class = IoClass::realtime, .io_priority = 0}), io(IoClass::realtime, 0));
  EXPECT_EQ(io_priority_by({.io_class = IoClass::idle}), io(IoClass::idle, 0));
}

class GivenSettings : public testing::Test {
 protected:
  void SetUp() override {
    for (const pid_t tid : {7, 8}) {
      fs::create_directories(root_ / "7/task" / std::to_string(tid));
      scheduler_.add(tid, {});
    }
    std::ofstream(root_ / "7/oom_score_adj") << "0\n";
  }
  ~GivenSettings() override { fs::remove_all(root_); }
  static fs::path directory() {
    std::string path = testing::TempDir() + "swapd-rule-XXXXXX";
    return ::mkdtemp(path.data()) == nullptr ? "" : path;
  }
  [[nodiscard]] int oom_score() const {
    int score = 0;
    std::ifstream(root_ / "7/oom_score_adj") >> score;
    return score;
  }
  const fs::path root_ = directory();
  const sys::Procfs procfs_{root_};
  fakes::FakeScheduler scheduler_;
  const RuleSettings settings_{procfs_, scheduler_};
};

TEST_F(GivenSettings, EachThreadHasTheIoPriority) {
  ASSERT_TRUE(settings_.give({.io_class = IoClass::idle}, 7));
  EXPECT_EQ(scheduler_.threads.at(7).io_priority, io(IoClass::idle, 0));
  EXPECT_EQ(scheduler_.threads.at(8).io_priority, io(IoClass::idle, 0));
}

TEST_F(GivenSettings, TheProcessHasTheOomScore) {
  ASSERT_TRUE(settings_.give({.oom_score_adj = -300}, 7));
  EXPECT_EQ(oom_score(), -300);
}

TEST_F(GivenSettings, WhatItHasOfItsOwnStaysWhereTheRuleSaysSo) {
  scheduler_.threads.at(8).io_priority = io(IoClass::realtime, 1);
  scheduler_.add(7, {.nice = -3});
  std::ofstream(root_ / "7/oom_score_adj") << "-17\n";
  const MatchRule rule{.base = SchedAttr{.nice = 5}, .io_class = IoClass::idle, .oom_score_adj = 100, .keep_own = true};
  ASSERT_TRUE(settings_.give(rule, 7));
  EXPECT_EQ(scheduler_.threads.at(7).io_priority, io(IoClass::idle, 0)) << "it had none of its own";
  EXPECT_EQ(scheduler_.threads.at(8).io_priority, io(IoClass::realtime, 1));
  EXPECT_EQ(oom_score(), -17);
  EXPECT_EQ(settings_.asked(rule, 7), std::nullopt);
}

TEST_F(GivenSettings, OfAProcessThatHasEndedNothingIsSet) {
  EXPECT_TRUE(settings_.give({.io_class = IoClass::idle, .oom_score_adj = 5}, 99));
}

}  // namespace
}  // namespace swapd::daemon
