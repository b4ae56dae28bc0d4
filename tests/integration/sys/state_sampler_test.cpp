// What spins and what computes, by the samples of real threads.
#include "sys/state_sampler.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <functional>

#include "supervised.h"

namespace swapd::sys {
namespace {

using std::chrono::microseconds;
using test::eventually;

// A child that does this for ever. It ends with this object.
class Busy {
 public:
  explicit Busy(const std::function<void()>& what) : pid_(::fork()) {
    if (pid_ == 0) {
      what();
      ::_exit(0);
    }
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;
  ~Busy() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

std::size_t different_states_of_sixteen(pid_t pid) {
  auto sampler = StateSampler::open(pid, microseconds(200));
  if (!sampler.ok()) return 0;
  std::vector<StateSample> samples;
  std::vector<std::uint64_t> states;
  (void)eventually([&] {
    samples.clear();
    (*sampler)->read(samples);
    for (const StateSample& one : samples)
      if (one.in_user && states.size() < 16) states.push_back(one.state);
    return states.size() == 16;
  });
  EXPECT_EQ(states.size(), 16U);
  std::ranges::sort(states);
  const auto same = std::ranges::unique(states);
  states.erase(same.begin(), same.end());
  return states.size();
}

bool may_sample() { return StateSampler::open(::getpid(), microseconds(200)).ok(); }

volatile int never = 0;

TEST(StateSampler, AThreadThatSpinsIsTheSameEachTime) {
  if (!may_sample()) GTEST_SKIP() << "no perf events here";
  const Busy pause([] {
    while (never == 0) __builtin_ia32_pause();
  });
  EXPECT_LE(different_states_of_sixteen(pause.pid()), 5U);
  const Busy yield([] {
    while (never == 0) ::sched_yield();
  });
  EXPECT_LE(different_states_of_sixteen(yield.pid()), 5U);
}

TEST(StateSampler, AThreadThatComputesIsAnotherEachTime) {
  if (!may_sample()) GTEST_SKIP() << "no perf events here";
  const Busy adds([] {
    for (volatile std::uint64_t sum = 0; never == 0;) sum = sum + 1;
  });
  EXPECT_GT(different_states_of_sixteen(adds.pid()), 5U);
  const Busy asks_the_time([] {
    timespec now{};
    do ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while (now.tv_sec < 1000);
  });
  EXPECT_GT(different_states_of_sixteen(asks_the_time.pid()), 5U);
}

}  // namespace
}  // namespace swapd::sys
