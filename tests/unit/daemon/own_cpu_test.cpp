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
  EXPECT_EQ(cpu.measure(now, 0, 0, 0ms), std::nullopt);
  (void)use();
  EXPECT_EQ(cpu.measure(now, 0, 0, 0ms), 2ms);
}

TEST_F(OwnCpuTest, LoadingProgramsDoesNot) {
  EXPECT_EQ(cpu.measure(now, 0, 0, 0ms), std::nullopt);
  const Duration loading = use();
  EXPECT_EQ(cpu.measure(now, 0, 0, loading), std::nullopt);
  const Duration more = use();
  EXPECT_EQ(cpu.measure(now, 0, 0, loading), 2ms) << "what is used besides counts as ever: " << more.count();
}

TEST_F(OwnCpuTest, WhatItDoesWaitsOnceMoreIsUsedThanCameIn) {
  EXPECT_EQ(cpu.wait(now), 0ms);
  for (int i = 0; i < 2; ++i) (void)use();
  EXPECT_GT(cpu.wait(now), 0ms) << "120 ms of the 90 that it saves of 2 % in five seconds";
}

TEST_F(OwnCpuTest, LoadingProgramsIsNotPaidFor) {
  EXPECT_EQ(cpu.wait(now), 0ms);
  EXPECT_EQ(cpu.measure(now, 0, 0, 0ms), std::nullopt);
  const Duration loading = use() + use();
  EXPECT_GT(cpu.wait(now), 0ms) << "until it is known what it was for";
  (void)cpu.measure(now, 0, 0, loading);
  EXPECT_EQ(cpu.wait(now), 0ms);
}

}  // namespace
}  // namespace swapd::test
