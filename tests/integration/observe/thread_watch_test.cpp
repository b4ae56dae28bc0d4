// Threads that the seccomp observer watches by perf, as long as they do not sleep too often for that.
#include "observe/seccomp/thread_watch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <future>
#include <latch>
#include <optional>
#include <thread>
#include <variant>
#include <vector>

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
  void watch_one_that_sleeps(int times, const std::function<void(ThreadId)>& then = {}) {
    std::promise<ThreadId> started;
    std::latch is_watched(1), has_slept(1), may_end(1);
    std::thread thread([&] {
      started.set_value(*procfs_.thread_id(::gettid()));
      is_watched.wait();
      for (int i = 0; i < times; ++i) ::usleep(100);
      has_slept.count_down();
      may_end.wait();
    });
    const ThreadId id = started.get_future().get();
    watch_.add({.id = id, .tgid = ::getpid()});
    watch_.report_new(now(), events_);
    is_watched.count_down();
    has_slept.wait();
    EXPECT_GT(loop_.wait(1s), 0U);
    loop_.dispatch(now());
    watch_.drain(now(), events_);
    polls_at_ = watch_.deadline();
    if (then) then(id);
    may_end.count_down();
    thread.join();
  }

  [[nodiscard]] static std::size_t events_open() {
    std::size_t found = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      if (std::filesystem::read_symlink(entry.path(), gone) == "anon_inode:[perf_event]") ++found;
    }
    return found;
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

// An event that is disabled costs its thread time at each switch, too.
TEST_F(ThreadWatchTest, WhatSleepsTooOftenHasNoEventsWhileItRests) {
  const std::size_t before = events_open();
  watch_one_that_sleeps(40, [&](ThreadId thread) {
    EXPECT_EQ(events_open(), before);
    EXPECT_TRUE(watch_.hears(thread)) << "whom it wakes is recorded on";
    EXPECT_EQ(watch_.costs().unheard, 0U) << "it is polled";
    watch_.drain(now() + BusySleeper::first_rest, events_);
    EXPECT_GT(events_open(), before);
    EXPECT_FALSE(watch_.deadline()) << "nothing is polled";
  });
}

// Forty threads of this process that sleep.
class UnheardThreads : public ThreadWatchTest {
 protected:
  static constexpr std::size_t all = 40, few = 4;  // a tenth
  void SetUp() override {
    ThreadWatchTest::SetUp();
    if (IsSkipped()) return;
    for (std::size_t i = 0; i < all; ++i) {
      std::promise<ThreadId> started;
      threads_.emplace_back([&] {
        started.set_value(*procfs_.thread_id(::gettid()));
        may_end_.wait();
      });
      ids_.push_back(started.get_future().get());
      watch_.add({.id = ids_.back(), .tgid = ::getpid()});
    }
    for (const ThreadId id : ids_)
      while (!procfs_.syscall(id.tid)->in_call) std::this_thread::yield();
    watch_.drain(now_, events_);
  }
  void TearDown() override {
    may_end_.count_down();
    for (std::thread& thread : threads_) thread.join();
  }
  [[nodiscard]] std::vector<ThreadId> heard() const {
    std::vector<ThreadId> out;
    for (const ThreadId id : ids_)
      if (watch_.hears(id)) out.push_back(id);
    return out;
  }
  // As often as it is due at once.
  std::vector<Event> drain(Duration later) {
    std::vector<Event> events;
    now_ += later;
    do watch_.drain(now_, events);
    while (watch_.deadline() == Time{});
    return events;
  }
  Time now_ = now();
  std::latch may_end_{1};
  std::vector<std::thread> threads_;
  std::vector<ThreadId> ids_;
};

TEST_F(UnheardThreads, OfAllThereAreNone) {
  EXPECT_EQ(heard(), ids_);
  EXPECT_EQ(watch_.costs().unheard, 0U);
}

TEST_F(UnheardThreads, CountAsRunning) {
  watch_.hear(0.1);
  const auto events = drain(1ms);
  EXPECT_EQ(heard().size(), few);
  EXPECT_EQ(watch_.costs().unheard, all - few);
  ASSERT_EQ(events.size(), all - few);
  for (const Event& event : events) {
    const auto& woken = std::get<Woken>(event);
    EXPECT_TRUE(woken.unrelated);
    EXPECT_FALSE(watch_.hears(woken.thread));
  }
  std::vector<Event> looked;
  watch_.look(std::get<Woken>(events.front()).thread, now_, looked);
  EXPECT_TRUE(looked.empty());
}

TEST_F(UnheardThreads, TakeTurns) {
  watch_.hear(0.1);
  (void)drain(1ms);
  std::vector<ThreadId> seen = heard();
  (void)drain(HearingTurns::turn / 2);
  EXPECT_EQ(heard(), seen) << "each turn lasts";
  for (std::size_t turn = 1; turn < all / few; ++turn) {
    (void)drain(HearingTurns::turn);
    for (const ThreadId id : heard()) seen.push_back(id);
  }
  EXPECT_EQ(seen.size(), all);
  std::ranges::sort(seen);
  EXPECT_TRUE(std::ranges::adjacent_find(seen) == seen.end()) << "all have had one";
}

TEST_F(UnheardThreads, AreHeardOfAgainWithWhatTheyDoNow) {
  watch_.hear(0.1);
  (void)drain(1ms);
  watch_.hear(1);
  const auto events = drain(1ms);
  EXPECT_EQ(heard(), ids_);
  EXPECT_EQ(std::ranges::count_if(events, [](const Event& e) { return std::holds_alternative<Blocked>(e); }),
            static_cast<std::ptrdiff_t>(all - few));
}

TEST_F(UnheardThreads, MayBeNewOrGone) {
  watch_.hear(0.1);
  (void)drain(1ms);
  const std::vector<ThreadId> first = heard();
  for (const ThreadId id : first) watch_.remove(id);
  EXPECT_TRUE(heard().empty());
  for (const ThreadId id : first) watch_.add({.id = id, .tgid = ::getpid()});
  EXPECT_EQ(heard(), first) << "there is room";
}

// A wait of before that the model may still have is over.
TEST_F(UnheardThreads, ThatAreNewAreSaidToRun) {
  watch_.hear(0.1);
  (void)drain(1ms);
  const auto unheard = std::ranges::find_if(ids_, [&](ThreadId id) { return !watch_.hears(id); });
  watch_.remove(*unheard);
  watch_.add({.id = *unheard, .tgid = ::getpid()});
  ASSERT_FALSE(watch_.hears(*unheard));
  const auto events = drain(1ms);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(std::get<Woken>(events.front()).thread, *unheard);
  EXPECT_TRUE(std::get<Woken>(events.front()).unrelated);
  EXPECT_TRUE(drain(1ms).empty()) << "once";
}

TEST_F(UnheardThreads, AreNotManyAtATime) {
  watch_.hear(0.1);
  std::vector<Event> events;
  watch_.drain(now_ += 1ms, events);
  EXPECT_EQ(heard().size(), all - HearingTurns::most_at_a_time);
  EXPECT_EQ(watch_.deadline(), Time{}) << "the others follow at once";
  watch_.drain(now_ += 1ms, events);
  EXPECT_EQ(heard().size(), few);
  EXPECT_NE(watch_.deadline(), Time{});
}

TEST_F(UnheardThreads, AreNoneOfAFewThreads) {
  while (ids_.size() > HearingTurns::always_heard) {
    watch_.remove(ids_.back());
    ids_.pop_back();
  }
  watch_.hear(0.1);
  (void)drain(1ms);
  EXPECT_EQ(heard(), ids_);
}

}  // namespace
}  // namespace swapd::observe
