// With a real loop: sd-event has no clock to inject. Each test waits for calls, not for time.
#include "event/sources.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <utility>

#include "base/fd.h"

namespace swapd::daemon {
namespace {

using namespace std::chrono_literals;

class EventSources : public testing::Test {
 protected:
  EventSources() {
    sd_event* made = nullptr;
    if (sd_event_new(&made) < 0) std::abort();
    loop_.reset(made);
  }
  // One round of the loop, which waits for at most this long. Whether something was called.
  bool round(std::chrono::microseconds wait) {
    return sd_event_run(loop_.get(), static_cast<std::uint64_t>(wait.count())) > 0;
  }
  void run_until(const int& calls, int wanted) {
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    while (calls < wanted && std::chrono::steady_clock::now() < deadline) round(1s);
  }
  std::unique_ptr<sd_event, decltype([](sd_event* loop) { sd_event_unref(loop); })> loop_;
};

TEST_F(EventSources, ATimerIsDueOnceAndNotBeforeItsTime) {
  int calls = 0;
  Timer timer(loop_.get(), [&] { ++calls; });
  EXPECT_FALSE(timer.running());
  const auto begun = std::chrono::steady_clock::now();
  ASSERT_TRUE(timer.start(20ms).ok());
  EXPECT_TRUE(timer.running());
  run_until(calls, 1);
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 20ms);
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(timer.running());
  EXPECT_FALSE(round(5ms));
}

TEST_F(EventSources, ATimerMayBeStartedAgain) {
  int calls = 0;
  Timer timer(loop_.get(), [&] { ++calls; });
  for (int i = 1; i <= 3; ++i) {
    ASSERT_TRUE(timer.start(1ms).ok());
    run_until(calls, i);
  }
  EXPECT_EQ(calls, 3);
}

TEST_F(EventSources, TheLastStartCounts) {
  int calls = 0;
  Timer timer(loop_.get(), [&] { ++calls; });
  ASSERT_TRUE(timer.start(1h).ok());
  ASSERT_TRUE(timer.start(1ms).ok());
  run_until(calls, 1);
  EXPECT_EQ(calls, 1);
}

TEST_F(EventSources, ARepeatedTimerGoesOnUntilItIsStopped) {
  int calls = 0;
  Timer timer(loop_.get(), [&] {
    if (++calls == 3) timer.stop();
  });
  ASSERT_TRUE(timer.repeat(1ms).ok());
  run_until(calls, 3);
  EXPECT_EQ(calls, 3);
  EXPECT_FALSE(timer.running());
  EXPECT_FALSE(round(5ms));
}

TEST_F(EventSources, AStartEndsTheRepetition) {
  int calls = 0;
  Timer timer(loop_.get(), [&] { ++calls; });
  ASSERT_TRUE(timer.repeat(1ms).ok());
  ASSERT_TRUE(timer.start(2ms).ok());
  run_until(calls, 1);
  EXPECT_FALSE(timer.running());
}

TEST_F(EventSources, AnOnceTimerMayStartItselfWhenItIsDue) {
  int calls = 0;
  Timer timer(loop_.get(), [&] {
    ++calls;
    if (calls == 3) return;
    EXPECT_TRUE(timer.start(1ms).ok());
  });
  ASSERT_TRUE(timer.start(0ms).ok());
  run_until(calls, 3);
  EXPECT_EQ(calls, 3);
}

TEST_F(EventSources, AStoppedOrDestroyedTimerIsNeverDue) {
  int calls = 0;
  Timer stopped(loop_.get(), [&] { ++calls; });
  ASSERT_TRUE(stopped.start(0ms).ok());
  stopped.stop();
  {
    Timer destroyed(loop_.get(), [&] { ++calls; });
    ASSERT_TRUE(destroyed.start(0ms).ok());
  }
  EXPECT_FALSE(round(5ms));
  EXPECT_EQ(calls, 0);
}

TEST_F(EventSources, AReadableDescriptorIsToldOfAsLongAsItIsReadable) {
  const Fd signalled(::eventfd(1, EFD_CLOEXEC));
  int calls = 0;
  ReadableSource source(loop_.get(), [&] { ++calls; });
  ASSERT_TRUE(source.watch(signalled.get()).ok());
  run_until(calls, 2);
  EXPECT_EQ(calls, 2);
  source.pause();
  EXPECT_FALSE(round(5ms));
  source.go_on();
  run_until(calls, 3);
  EXPECT_EQ(calls, 3);
}

TEST_F(EventSources, ASourceMayStopItselfAndWatchAnother) {
  const Fd first(::eventfd(1, EFD_CLOEXEC));
  const Fd second(::eventfd(0, EFD_CLOEXEC));
  int calls = 0;
  ReadableSource source(loop_.get(), [&] {
    ++calls;
    source.stop();
  });
  ASSERT_TRUE(source.watch(first.get()).ok());
  run_until(calls, 1);
  EXPECT_FALSE(round(5ms));
  ASSERT_TRUE(source.watch(second.get()).ok());
  EXPECT_FALSE(round(5ms));
  const std::uint64_t one = 1;
  ASSERT_EQ(::write(second.get(), &one, sizeof one), 8);
  run_until(calls, 2);
  EXPECT_EQ(calls, 2);
}

TEST_F(EventSources, ADescriptorThatCannotBeWatchedIsAnError) {
  ReadableSource source(loop_.get(), [] {});
  EXPECT_FALSE(source.watch(-1).ok());
}

}  // namespace
}  // namespace swapd::daemon
