// What spins and what computes, by the samples of real threads.
#include "sys/perf/state_sampler.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>

#include "decide/progress.h"
#include "supervised.h"

namespace swapd::sys {
namespace {

using std::chrono::microseconds;
using test::eventually;
using Verdict = decide::SpinJudge::Verdict;

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

// The first verdict that is one.
Verdict verdict_of(pid_t pid) {
  auto sampler = StateSampler::open(pid, microseconds(200));
  if (!sampler.ok()) return Verdict::unknown;
  decide::SpinJudge judge;
  std::vector<StateSample> samples;
  Verdict verdict = Verdict::unknown;
  (void)eventually([&] {
    samples.clear();
    (*sampler)->read(samples);
    for (const StateSample& one : samples) judge.add(one.state, one.in_user);
    verdict = judge.verdict();
    return verdict != Verdict::unknown;
  });
  return verdict;
}

bool may_sample() { return StateSampler::open(::getpid(), microseconds(200)).ok(); }

volatile int never = 0;

TEST(StateSampler, AThreadThatSpinsIsTheSameEachTime) {
  if (!may_sample()) GTEST_SKIP() << "no perf events here";
  const Busy pause([] {
    while (never == 0) __builtin_ia32_pause();
  });
  EXPECT_EQ(verdict_of(pause.pid()), Verdict::spins);
  const Busy yield([] {
    while (never == 0) ::sched_yield();
  });
  EXPECT_EQ(verdict_of(yield.pid()), Verdict::spins);
}

TEST(StateSampler, AThreadThatComputesIsAnotherEachTime) {
  if (!may_sample()) GTEST_SKIP() << "no perf events here";
  const Busy adds([] {
    for (volatile std::uint64_t sum = 0; never == 0;) sum = sum + 1;
  });
  EXPECT_EQ(verdict_of(adds.pid()), Verdict::computes);
  const Busy asks_the_time([] {
    timespec now{};
    do ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while (now.tv_sec < 1000);
  });
  EXPECT_EQ(verdict_of(asks_the_time.pid()), Verdict::computes);
}

}  // namespace
}  // namespace swapd::sys
