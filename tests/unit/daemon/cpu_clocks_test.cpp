// Quanta of CPU time and lingering: when a decider's timer fires, and when it has ended.
#include "engine/cpu_clocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/daemon/decision_loop_world.h"

namespace swapd::daemon {
namespace {

using namespace std::chrono_literals;
using test::p1;
using test::p2;
using testing::IsEmpty;
using testing::SizeIs;

using decide::Timer;
using decide::TimerFired;

class CpuClocksTest : public testing::Test {
 protected:
  static Timer timer(Timer::Kind kind, Duration period, Duration wall, std::uint64_t serial = 1) {
    return {.kind = kind,
            .requester = p1,
            .cpu_of = p2,
            .period = period,
            .wall = wall,
            .wall_uncounted = 2 * period,
            .serial = serial};
  }
  std::vector<TimerFired> at(Duration later, bool tick = false) {
    now += later;
    std::vector<TimerFired> out;
    clocks.run(now, out);
    if (tick) clocks.tick(now, out);
    return out;
  }
  Time now{1h};
  fakes::FakeObserver observer;
  ExactTiming exact{observer};
  sys::EventLoop loop;
  int begun = 0, ended = 0;
  CpuClocks clocks{observer,
                   exact,
                   loop,
                   {.quantum_begins = [this](ThreadId, Time) { ++begun; },
                    .quantum_ends = [this](ThreadId, Time) { ++ended; },
                    .rang = [](const TimerFired&) {}}};
};

TEST_F(CpuClocksTest, AQuantumFiresWhenItsCpuTimeIsUsed) {
  observer.cpu[p2] = 100ms;
  clocks.apply(0, std::vector{timer(Timer::Kind::quantum, 20ms, 20ms)}, now);
  EXPECT_EQ(begun, 1);
  EXPECT_TRUE(observer.exact.contains(p2));
  observer.cpu[p2] = 110ms;
  EXPECT_THAT(at(20ms), IsEmpty()) << "half of it";
  observer.cpu[p2] = 120ms;
  const auto fired = at(20ms);
  ASSERT_THAT(fired, SizeIs(1));
  EXPECT_EQ(fired[0].serial, 1U);
  EXPECT_EQ(ended, 1);
  EXPECT_THAT(at(1s), IsEmpty()) << "once";
}

TEST_F(CpuClocksTest, AnotherSerialBeginsAnew) {
  observer.cpu[p2] = 0ms;
  clocks.apply(0, std::vector{timer(Timer::Kind::quantum, 20ms, 20ms)}, now);
  observer.cpu[p2] = 19ms;
  (void)at(19ms);
  clocks.apply(0, std::vector{timer(Timer::Kind::quantum, 20ms, 20ms, 2)}, now);
  observer.cpu[p2] = 30ms;
  EXPECT_THAT(at(21ms), IsEmpty());
}

TEST_F(CpuClocksTest, ATimerThatIsNotRenewedEnds) {
  observer.cpu[p2] = 0ms;
  clocks.apply(0, std::vector{timer(Timer::Kind::quantum, 20ms, 20ms)}, now);
  clocks.apply(0, {}, now);
  EXPECT_TRUE(clocks.idle());
  EXPECT_FALSE(observer.exact.contains(p2));
  observer.cpu[p2] = 1s;
  EXPECT_THAT(at(1s, true), IsEmpty());
}

// To open a descriptor for each of many pairs, over and over, would cost more than the quanta tell.
TEST_F(CpuClocksTest, OfMorePairsThanThereIsRoomForTheLastAreNotCounted) {
  observer.counts = false;
  constexpr int pairs = 140, room = 128;
  const ThreadId own{static_cast<pid_t>(::gettid()), 0};
  std::vector<Timer> timers;
  for (int i = 0; i < pairs; ++i) {
    timers.push_back(timer(Timer::Kind::quantum, 1h, 1h));
    timers.back().requester = {1000 + i, 1};
    timers.back().cpu_of = own;
    timers.back().wall_uncounted = 10ms;
  }
  clocks.apply(0, timers, now);
  if (!clocks.has_clock(own)) GTEST_SKIP() << "perf counts no CPU time here";
  const auto fired = at(10ms, true);
  EXPECT_THAT(fired, SizeIs(pairs - room));
  EXPECT_GE(fired.front().requester.tid, 1000 + room);
}

// Each open one costs its thread whenever that gets or leaves a CPU.
TEST_F(CpuClocksTest, AClockOfPerfIsClosedTwoToFourSecondsAfterItsLastUse) {
  observer.counts = false;
  const ThreadId own{static_cast<pid_t>(::gettid()), 0};
  Timer quantum = timer(Timer::Kind::quantum, 1h, 1h);
  quantum.cpu_of = own;
  clocks.apply(0, std::vector{quantum}, now);
  if (!clocks.has_clock(own)) GTEST_SKIP() << "perf counts no CPU time here";
  (void)at(3s, true);
  EXPECT_TRUE(clocks.has_clock(own)) << "a timer runs by it";
  clocks.apply(0, {}, now);
  (void)at(2s, true);
  EXPECT_TRUE(clocks.has_clock(own)) << "one has run by it two seconds ago";
  (void)clocks.cpu_time(own, now);
  (void)at(2s, true);
  EXPECT_TRUE(clocks.has_clock(own)) << "to read it is a use";
  (void)at(2s, true);
  EXPECT_FALSE(clocks.has_clock(own));
}

TEST_F(CpuClocksTest, ALingerEndsWithItsWallTimeAtATick) {
  observer.cpu[p2] = 0ms;
  clocks.apply(0, std::vector{timer(Timer::Kind::linger, 2ms, 50ms)}, now);
  EXPECT_THAT(at(49ms, true), IsEmpty());
  const auto fired = at(1ms, true);
  ASSERT_THAT(fired, SizeIs(1));
  EXPECT_EQ(fired[0].wall_left, Duration::zero());
}

// It is not worth another turn of the engine; a quantum is a promise.
TEST_F(CpuClocksTest, ALingerWithinAnEighthOfItsEndHasEnded) {
  observer.cpu[p2] = 0ms;
  clocks.apply(0, std::vector{timer(Timer::Kind::linger, 8ms, 50ms)}, now);
  observer.cpu[p2] = 6900us;
  EXPECT_THAT(at(8ms), IsEmpty());
  observer.cpu[p2] = 7ms;
  EXPECT_THAT(at(2ms), SizeIs(1));
}

TEST_F(CpuClocksTest, AQuantumWithinAnEighthOfItsEndHasNot) {
  observer.cpu[p2] = 0ms;
  clocks.apply(0, std::vector{timer(Timer::Kind::quantum, 20ms, 20ms)}, now);
  observer.cpu[p2] = 19900us;
  EXPECT_THAT(at(20ms), IsEmpty());
}

TEST_F(CpuClocksTest, ALingerTellsWhetherItsRequesterWaitsAgainUntold) {
  observer.cpu[p2] = 0ms;
  clocks.apply(0, std::vector{timer(Timer::Kind::linger, 2ms, 50ms)}, now);
  observer.unreported.insert(p1);
  observer.cpu[p2] = 3ms;
  const auto fired = at(3ms);
  ASSERT_THAT(fired, SizeIs(1));
  EXPECT_TRUE(fired[0].unreported);
  EXPECT_EQ(fired[0].wall_left, 47ms);
}

TEST_F(CpuClocksTest, TimersOfTwoDecidersDoNotEndEachOther) {
  observer.cpu[p2] = 0ms;
  clocks.apply(0, std::vector{timer(Timer::Kind::quantum, 20ms, 20ms)}, now);
  clocks.apply(1, std::vector{timer(Timer::Kind::quantum, 10ms, 10ms)}, now);
  clocks.apply(1, {}, now);
  observer.cpu[p2] = 20ms;
  const auto fired = at(20ms);
  ASSERT_THAT(fired, SizeIs(1));
  EXPECT_EQ(fired[0].decider, 0U);
}

TEST_F(CpuClocksTest, OfAForgottenThreadNoTimerIsLeft) {
  observer.cpu[p2] = 0ms;
  clocks.apply(0, std::vector{timer(Timer::Kind::quantum, 20ms, 20ms)}, now);
  clocks.forget(p2);
  EXPECT_TRUE(clocks.idle());
}

}  // namespace
}  // namespace swapd::daemon
