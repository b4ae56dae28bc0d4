// Because of swapd's own CPU time it becomes patient, and its turns wait.
#include "engine/own_cpu.h"

#include <gtest/gtest.h>

#include "sys/process/self_process.h"

namespace swapd::test {
namespace {

using daemon::OwnCpu;
using namespace std::chrono_literals;

class OwnCpuTest : public testing::Test {
 protected:
  // swapd uses so much CPU time, by far more than its budget for the window; returns it.
  Duration use() {
    const Duration before = sys::process_cpu_time();
    while (sys::process_cpu_time() - before < 60ms) {
    }
    now += 100ms;
    return sys::process_cpu_time() - before;
  }
  OwnCpu cpu{decide::ObservationBudget::Config{}};
  Time now{1h};
};

TEST_F(OwnCpuTest, MoreThanTheBudgetMakesItPatient) {
  EXPECT_EQ(cpu.measure(now, {}, 0ms), std::nullopt);
  (void)use();
  EXPECT_EQ(cpu.measure(now, {}, 0ms), 2ms);
}

TEST_F(OwnCpuTest, LoadingProgramsDoesNot) {
  EXPECT_EQ(cpu.measure(now, {}, 0ms), std::nullopt);
  const Duration loading = use();
  EXPECT_EQ(cpu.measure(now, {}, loading), std::nullopt);
  const Duration more = use();
  EXPECT_EQ(cpu.measure(now, {}, loading), 2ms) << "what is used besides counts as ever: " << more.count();
}

TEST_F(OwnCpuTest, BoostsThatBeginOrStandCountAsHelp) {
  (void)cpu.measure(now, {}, 0ms);
  EXPECT_EQ(cpu.budget().share_now, 0.02);
  now += 100ms;
  (void)cpu.measure(now, {.begun = 1}, 0ms);
  EXPECT_EQ(cpu.budget().share_now, 0.05);
  now += 3s;
  (void)cpu.measure(now, {.begun = 1}, 0ms);
  EXPECT_EQ(cpu.budget().share_now, 0.02) << "none has begun since";
  now += 100ms;
  (void)cpu.measure(now, {.boosts = 1, .begun = 1}, 0ms);
  EXPECT_EQ(cpu.budget().share_now, 0.05);
}

TEST_F(OwnCpuTest, NorDoBoostsWhereNoOtherThreadWantsTheCpus) {
  (void)cpu.measure(now, {}, 0ms);
  for (std::uint64_t begun = 1; begun < 100; ++begun) {
    now += 100ms;
    (void)cpu.measure(now, {.boosts = 1, .begun = begun, .competes = false}, 0ms);
    EXPECT_EQ(cpu.budget().share_now, 0.02);
  }
  now += 100ms;
  (void)cpu.measure(now, {.begun = 99}, 0ms);
  EXPECT_EQ(cpu.budget().share_now, 0.02) << "those that began meanwhile are no news";
  now += 100ms;
  (void)cpu.measure(now, {.begun = 99, .gangs = 1, .competes = false}, 0ms);
  EXPECT_EQ(cpu.budget().share_now, 0.05) << "a job in slots is help";
}

TEST_F(OwnCpuTest, WhatItDoesWaitsOnceMoreIsUsedThanCameIn) {
  EXPECT_EQ(cpu.wait(now), 0ms);
  for (int i = 0; i < 2; ++i) (void)use();
  EXPECT_GT(cpu.wait(now), 0ms) << "120 ms of the 90 that it saves of 2 % in five seconds";
}

TEST_F(OwnCpuTest, LoadingProgramsIsNotPaidFor) {
  EXPECT_EQ(cpu.wait(now), 0ms);
  EXPECT_EQ(cpu.measure(now, {}, 0ms), std::nullopt);
  const Duration loading = use() + use();
  EXPECT_GT(cpu.wait(now), 0ms) << "until it is known what it was for";
  (void)cpu.measure(now, {}, loading);
  EXPECT_EQ(cpu.wait(now), 0ms);
}

}  // namespace
}  // namespace swapd::test
