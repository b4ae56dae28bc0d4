// What processes and kernel programs have used.
#include "harness/usage.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "sys/bpf/bpf_run_stats.h"
#include "sys/bpf/bpf_tracer.h"

namespace swapd::bench {
namespace {

TEST(Usage, OfThisProcess) {
  const double before = process_cpu_s(::getpid());
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (process_cpu_s(::getpid()) < before + 0.02 && std::chrono::steady_clock::now() < until) {
  }
  EXPECT_GE(process_cpu_s(::getpid()), before + 0.02);
  EXPECT_GE(tree_cpu_s(::getpid()), before + 0.02);
  EXPECT_GT(rss_bytes(::getpid()), 0u);
  const auto switches = voluntary_switches(::getpid());
  ::usleep(1000);
  EXPECT_GT(voluntary_switches(::getpid()), switches);
}

TEST(Usage, WhoIsGoneHasUsedNothing) {
  constexpr pid_t nobody = 5'000'000;  // above the largest that there can be
  EXPECT_EQ(process_cpu_s(nobody), 0);
  EXPECT_EQ(rss_bytes(nobody), 0u);
  EXPECT_EQ(thread_cpu_s(::getpid(), "no such name"), 0);
}

TEST(ProgramCost, IsCountedForTheProcessThatHoldsThePrograms) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root: BPF";
  EXPECT_TRUE(sys::bpf_costs(::getpid()).empty());
  const auto tracer = sys::BpfTracer::open({});
  ASSERT_TRUE(tracer) << tracer.error().text();
  const auto measuring = sys::measure_bpf_costs();
  ASSERT_TRUE(measuring) << measuring.error().text();
  for (int i = 0; i < 100; ++i) ::usleep(100);
  bool switched = false;
  const auto costs = sys::bpf_costs(::getpid());
  for (const auto& cost : costs) switched = switched || (cost.name == "on_switch" && cost.runs >= 100);
  EXPECT_GE(costs.size(), 5u);  // one more on kernels before 6.4
  EXPECT_LE(costs.size(), 6u);
  EXPECT_TRUE(switched);
}

// What the measurement itself takes is seen beside what is measured.
TEST(ProgramCost, EmptyProgramsCostTheirMeasurement) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root: BPF";
  {
    const auto empty = sys::EmptyPrograms::attach();
    ASSERT_TRUE(empty) << empty.error().text();
    const auto measuring = sys::measure_bpf_costs();
    for (int i = 0; i < 100; ++i) ::usleep(100);
    const auto costs = sys::bpf_costs(::getpid());
    EXPECT_EQ(costs.size(), 6u);
    const auto at_switches = std::ranges::find(costs, "empty_switch", &sys::BpfProgramCost::name);
    ASSERT_NE(at_switches, costs.end());
    EXPECT_GE(at_switches->runs, 100u);
    EXPECT_GT(at_switches->total.count(), 0);
  }
  EXPECT_TRUE(sys::bpf_costs(::getpid()).empty());
}

}  // namespace
}  // namespace swapd::bench
