// The program at each CPU's clock tells what busy threads do, and in which groups they compete.
#include "sys/bpf/cpu_profile.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <thread>
#include <vector>

namespace swapd::sys {
namespace {

using namespace std::chrono_literals;

TEST(CpuProfileTest, ThreadsOfOneGroupAreKnownAsThatOnWhateverCpusTheyAre) {
  cpu_set_t allowed;
  ASSERT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed)) cpus.push_back(cpu);
  if (cpus.size() < 2) GTEST_SKIP() << "it needs two CPUs";
  auto profile = CpuProfile::open(1ms);
  if (!profile) GTEST_SKIP() << profile.error().text();

  std::atomic<bool> over{false};
  std::vector<std::atomic<pid_t>> tids(2);
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < tids.size(); ++i)
    threads.emplace_back([&, i] {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpus[i], &one);
      (void)::sched_setaffinity(0, sizeof one, &one);
      tids[i] = ::gettid();
      while (!over) {
      }
    });
  std::map<pid_t, CpuProfile::Thread> seen;
  const auto until = std::chrono::steady_clock::now() + 10s;
  while (seen.size() < tids.size() && std::chrono::steady_clock::now() < until)
    for (const CpuProfile::Thread& thread : (*profile)->read())
      if ((thread.tid == tids[0] || thread.tid == tids[1]) && thread.looks > 0) seen[thread.tid] = thread;
  over = true;
  ASSERT_EQ(seen.size(), tids.size());
  const CpuProfile::Thread &first = seen.begin()->second, &second = seen.rbegin()->second;
  EXPECT_NE(first.cpu, second.cpu);
  EXPECT_NE(first.group, second.group);
  EXPECT_NE(first.whole_group, 0U);
  EXPECT_EQ(first.whole_group, second.whole_group);
}

}  // namespace
}  // namespace swapd::sys
