// CPU time of boosts, and the ends of their waits, as deciders are told of them.
#include "engine/boost_meter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "unit/daemon/decision_loop_world.h"

namespace swapd::daemon {
namespace {

using namespace std::chrono_literals;
using test::p1;
using test::p2;
using test::p3;
using testing::IsEmpty;

class BoostMeterTest : public testing::Test {
 protected:
  template <typename T>
  std::vector<T> told() {
    std::vector<T> out;
    for (const decide::Input& one : inputs)
      if (const auto* found = std::get_if<T>(&one)) out.push_back(*found);
    inputs.clear();
    return out;
  }
  Time now{1h};
  fakes::FakeObserver observer;
  std::vector<decide::Input> inputs;
  BoostMeter meter{observer, [this](const decide::Input& input) { inputs.push_back(input); }};
};

TEST_F(BoostMeterTest, WhatABoostHasUsedIsToldWhenItsWaitEnds) {
  observer.cpu[p2] = 5ms;
  meter.apply(std::vector<decide::Metered>{{.thread = p2, .on_behalf_of = p1}}, now);
  observer.cpu[p2] = 9ms;
  meter.before(Woken{.time = now, .thread = p1, .by = p2});
  const auto used = told<decide::CpuUsed>();
  ASSERT_FALSE(used.empty());
  EXPECT_EQ(used[0].cpu, 4ms);
  EXPECT_EQ(used[0].on_behalf_of, p1);
}

TEST_F(BoostMeterTest, TheEndOfAWaitIsToldWithItsWaker) {
  meter.apply(std::vector<decide::Metered>{{.thread = p2, .on_behalf_of = p1}}, now);
  meter.before(Woken{.time = now, .thread = p1, .by = p3});
  EXPECT_EQ(told<decide::WaitEnded>().at(0).by, p3);
  meter.before(Woken{.time = now, .thread = p1, .stranger = true});
  EXPECT_EQ(told<decide::WaitEnded>().at(0).by, ThreadId{}) << "a thread that is not managed";
  meter.before(Woken{.time = now, .thread = p1, .unrelated = true});
  EXPECT_EQ(told<decide::WaitEnded>().at(0).by, std::nullopt);
}

TEST_F(BoostMeterTest, AWithheldBoostIsNotCharged) {
  observer.cpu[p2] = 0ms;
  meter.apply(std::vector<decide::Metered>{{.thread = p2, .on_behalf_of = p1, .counts = false}}, now);
  observer.cpu[p2] = 50ms;
  meter.before(Woken{.time = now, .thread = p1, .by = p2});
  EXPECT_THAT(told<decide::CpuUsed>(), IsEmpty());
}

// To open a sampler costs the thread's CPU a preemption. The thread that opens them is started for the first.
TEST_F(BoostMeterTest, AWithheldBoostIsSampledOnlyWhereItsThreadHasSpun) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the sanitizer starts a thread of its own with the first one";
#endif
  const auto threads = [] {
    const std::filesystem::directory_iterator all("/proc/self/task");
    return std::distance(begin(all), end(all));
  };
  const auto before = threads();
  decide::Metered boost{.thread = p2, .on_behalf_of = p1, .counts = false, .given_up = true};
  meter.apply(std::span(&boost, 1), now);
  meter.look(now + 5ms);
  EXPECT_EQ(threads(), before);
  boost.suspected = true;
  meter.apply(std::span(&boost, 1), now);
  meter.look(now + 20ms);
  EXPECT_EQ(threads(), before + 1);
}

TEST_F(BoostMeterTest, ABlockOfTheBoostedThreadIsAResult) {
  meter.apply(std::vector<decide::Metered>{{.thread = p2, .on_behalf_of = p1}}, now);
  meter.before(Blocked{.time = now, .thread = p2});
  EXPECT_TRUE(told<decide::Delivered>().at(0).by_blocking);
}

TEST_F(BoostMeterTest, WithoutBoostsNothingIsTold) {
  meter.before(Woken{.time = now, .thread = p1, .by = p2});
  EXPECT_TRUE(inputs.empty());
  EXPECT_EQ(meter.next(), std::nullopt);
}

}  // namespace
}  // namespace swapd::daemon
