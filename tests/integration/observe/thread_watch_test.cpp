// Threads that the seccomp observer watches by perf, as long as they do not sleep too often for that.
#include "observe/seccomp/thread_watch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <future>
#include <latch>
#include <optional>
#include <thread>

#include "sys/netlink/sock_diag.h"

namespace swapd::observe {
namespace {

using namespace std::chrono_literals;

Time now() { return std::chrono::steady_clock::now(); }

class ThreadWatchTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto allowed = sys::SwitchWatch::open(0);
    if (!allowed) GTEST_SKIP() << allowed.error().text();
    watch_.listen(loop_);
  }
  // A thread of this process that sleeps so often while it is watched and nothing is read of it; then it is.
  void watch_one_that_sleeps(int times) {
    std::promise<ThreadId> started;
    std::latch is_watched(1), has_slept(1), may_end(1);
    std::thread thread([&] {
      started.set_value(*procfs_.thread_id(::gettid()));
      is_watched.wait();
      for (int i = 0; i < times; ++i) ::usleep(100);
      has_slept.count_down();
      may_end.wait();
    });
    watch_.add({.id = started.get_future().get(), .tgid = ::getpid()});
    watch_.report_new(now(), events_);
    is_watched.count_down();
    has_slept.wait();
    EXPECT_GT(loop_.wait(1s), 0U);
    loop_.dispatch(now());
    watch_.drain(now(), events_);
    polls_at_ = watch_.deadline();
    may_end.count_down();
    thread.join();
  }

  sys::Procfs procfs_;
  sys::SockDiag diag_;
  Resolver resolver_{procfs_, diag_};
  sys::EventLoop loop_;
  const Observer::Hooks hooks_{.identify = [](pid_t) { return std::nullopt; },
                               .ask = [](WaitQuestion&&) {},
                               .ask_access = [](AccessQuestion&&) {},
                               .lifecycle = {},
                               .every_life = {},
                               .lost = {}};
  ThreadWatch watch_{procfs_, resolver_, {}, hooks_, [](std::int32_t) { return false; }};
  std::vector<Event> events_;
  std::optional<Time> polls_at_;  // none: no thread is polled
};

TEST_F(ThreadWatchTest, WhatSleepsNowAndThenIsHeardOf) {
  watch_one_that_sleeps(3);
  EXPECT_FALSE(polls_at_);
}

// To write its sleeps down costs the thread's CPU, whether or not they wake anything of swapd's.
TEST_F(ThreadWatchTest, SleepsThatAreReadAtOnceCountEach) {
  watch_one_that_sleeps(40);
  EXPECT_TRUE(polls_at_);
}

}  // namespace
}  // namespace swapd::observe
