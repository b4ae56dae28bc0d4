// The host of the deciders with fakes only: no kernel, no thread, no privilege.
#include "engine/decision_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "unit/daemon/decision_loop_world.h"

namespace swapd::daemon {
namespace {

using namespace std::chrono_literals;
using test::fifo;
using test::nice;
using test::p1;
using test::p2;
using test::p3;
using test::p4;
using test::r1;
using test::r2;
using testing::IsEmpty;
using testing::SizeIs;

class DecisionLoopTest : public DecisionLoopWorld, public testing::Test {
 protected:
  using DecisionLoopWorld::DecisionLoopWorld;
};

TEST_F(DecisionLoopTest, ADonationGoesThroughAChain) {
  provides(p2, r1);
  provides(p3, r2);
  blocks(p2, {r2});
  blocks(p1, {r1});
  run();
  EXPECT_EQ(attr(p2).policy, SchedPolicy::fifo);
  EXPECT_EQ(attr(p3).rt_priority, 49);
  wakes(p2, p3, r2);
  wakes(p1, p2, r1);
  run();
  EXPECT_EQ(attr(p2), nice(0));
  EXPECT_EQ(attr(p3), nice(0));
}

TEST_F(DecisionLoopTest, WhatALookTellsIsDecidedOnInTheSameTurn) {
  provides(p2, r1);
  provides(p3, r2);
  run();
  blocks(p1, {r1});
  observer.new_ones = {Blocked{now, p2, 0, {r2}}};  // the newly watched provider waits itself
  run();
  EXPECT_EQ(attr(p3).rt_priority, 49);
}

TEST_F(DecisionLoopTest, TwoRequestersOnOneProviderTheMoreImportantCounts) {
  enroll(test::p5, fifo(70));
  provides(p2, r1);
  blocks(p1, {r1});
  blocks(test::p5, {r1});
  run();
  EXPECT_EQ(attr(p2).rt_priority, 69);
  wakes(test::p5, p2, r1);
  run();
  EXPECT_EQ(attr(p2).rt_priority, 49);
}

TEST_F(DecisionLoopTest, AtTheCeilingABoostRestsUntilTheWindowEnds) {
  provides(p2, r1);
  blocks(p1, {r1});
  run();
  EXPECT_EQ(attr(p2).policy, SchedPolicy::fifo);
  EXPECT_TRUE(observer.exact.contains(p2)) << "it is timed to the switch";
  observer.cpu[p2] = 60ms;
  tick(60ms);
  EXPECT_EQ(attr(p2), nice(0));
  ASSERT_TRUE(host->next().has_value());
  EXPECT_LE(*host->next(), now + 40ms);
  run(39ms);
  EXPECT_EQ(attr(p2), nice(0));
  run(1ms);
  EXPECT_EQ(attr(p2).policy, SchedPolicy::fifo);
}

// The rest of a ceiling of 94 in 100 ms is shorter than a turn may wait for swapd's own budget.
TEST_F(DecisionLoopTest, ACeilingAndTheEndOfItsRestComePunctually) {
  provides(p2, r1);
  run();
  EXPECT_FALSE(host->punctual_next().has_value()) << "nothing is lent";
  blocks(p1, {r1});
  run();
  tick(1ms);
  ASSERT_TRUE(host->punctual_next().has_value());
  EXPECT_LE(*host->punctual_next(), now + 50ms);
  observer.cpu[p2] = 60ms;
  tick(60ms);
  ASSERT_TRUE(host->punctual_next().has_value());
  EXPECT_LE(*host->punctual_next(), now + 40ms) << "it rests until then";
}

TEST_F(DecisionLoopTest, WhatABoostUsesToItsEndCountsForTheNext) {
  provides(p2, r1);
  blocks(p1, {r1});
  run();
  observer.cpu[p2] = 60ms;
  wakes(p1, p2, r1);
  run(60ms);
  EXPECT_EQ(attr(p2), nice(0));
  blocks(p1, {r1});
  run();
  EXPECT_EQ(attr(p2), nice(0)) << "the budget of the window is spent";
}

TEST_F(DecisionLoopTest, AResynchronisationAfterLostEventsEndsWhatIsOver) {
  provides(p2, r1);
  blocks(p1, {r1});
  run();
  host->take(Woken{.time = now, .thread = p1, .unrelated = true});
  run();
  EXPECT_EQ(attr(p2), nice(0));
  EXPECT_THAT(actuator.active(), IsEmpty());
}

TEST_F(DecisionLoopTest, PausedItDecidesAndChangesNothing) {
  host->pause(true);
  provides(p2, r1);
  blocks(p1, {r1});
  run();
  EXPECT_EQ(attr(p2), nice(0));
  EXPECT_THAT(donation_->donations(), SizeIs(1));
  host->pause(false);
  run();
  EXPECT_EQ(attr(p2).policy, SchedPolicy::fifo);
}

TEST_F(DecisionLoopTest, AnUnknownProviderIsAskedForWithTheManagedProcesses) {
  blocks(p1, {r1});
  run();
  ASSERT_THAT(questions.asked, SizeIs(1));
  EXPECT_EQ(questions.asked[0].waiter, p1);
  EXPECT_THAT(questions.asked[0].members, SizeIs(4));
  host->found(
      {.question = questions.asked[0], .found = {{.resource = r1, .evidence = Evidence::holder, .threads = {p2}}}},
      now);
  run();
  EXPECT_EQ(attr(p2).policy, SchedPolicy::fifo);
}

TEST_F(DecisionLoopTest, AStrangerThatHoldsTheOtherEndIsKept) {
  blocks(p1, {r1});
  run();
  host->found({.question = questions.asked[0],
               .found = {{.resource = r1, .evidence = Evidence::holder, .threads = {}, .unenrolled = {{4711, 1}}}}},
              now);
  EXPECT_EQ(host->unenrolled().at(r1).front().tid, 4711);
}

TEST_F(DecisionLoopTest, AThreadWhoseCallIsDelayedByUsCountsAsRunnable) {
  host->takes_for_runnable([](const Blocked& blocked) { return blocked.thread == p2; });
  provides(p2, r1);
  blocks(p2, {r2});
  blocks(p1, {r1});
  run();
  EXPECT_EQ(attr(p2).policy, SchedPolicy::fifo);
}

TEST_F(DecisionLoopTest, AThreadThatLeavesIsGivenItsOwnAndForgottenEverywhere) {
  provides(p2, r1);
  blocks(p1, {r1});
  run();
  host->take(Exited{now, p2});
  host->forget(p2, false);
  run();
  EXPECT_EQ(attr(p2), nice(0));
  EXPECT_FALSE(host->watches(p2));
  EXPECT_FALSE(observer.exact.contains(p2));
}

TEST_F(DecisionLoopTest, WithNothingInFlightItIsIdle) {
  run();
  EXPECT_TRUE(host->idle());
  provides(p2, r1);
  blocks(p1, {r1});
  run();
  EXPECT_FALSE(host->idle());
  wakes(p1, p2, r1);
  observer.unreported.clear();
  run();
  tick(2s);
  tick(2s);
  EXPECT_THAT(actuator.active(), IsEmpty());
}

TEST_F(DecisionLoopTest, AQuantumIsMeasuredInTheProvidersCpuTime) {
  provides(p2, r1);
  provides(p3, r1);
  blocks(p1, {r1});
  run();
  const ThreadId first = attr(p2).realtime() ? p2 : p3;
  const ThreadId second = first == p2 ? p3 : p2;
  tick(25ms);
  EXPECT_TRUE(attr(first).realtime()) << "it has had no CPU yet";
  observer.cpu[first] = 20ms;
  run(25ms);
  run();
  EXPECT_FALSE(attr(first).realtime());
  EXPECT_TRUE(attr(second).realtime());
}

TEST_F(DecisionLoopTest, ARequestersOwnSenderIsWatchedAndItsProviderCalmedLater) {
  provides(p2, r1);
  blocks(p1, {r1});
  run();
  EXPECT_TRUE(observer.watched.at(p1).requester);
  EXPECT_FALSE(observer.watched.at(p2).requester);
  wakes(p1, p2, r1);
  run();
  tick(700ms);
  EXPECT_FALSE(observer.watched.at(p2).urgent);
  for (int i = 0; i < 10; ++i) tick(100ms);
  EXPECT_FALSE(observer.watched.contains(p2));
}

// Unknown threads, endless feedback, plans that are never complete.
class Nonsense final : public decide::Decider {
 public:
  [[nodiscard]] std::string_view name() const override { return "nonsense"; }
  void decide(const model::Model& /*model*/, const decide::Turn& turn, decide::Plan& plan) override {
    const ThreadId nowhere{999999, 7};
    plan.complete = false;
    plan.demands.emplace_back(decide::RunAs{
        .thread = nowhere, .attr = fifo(99), .cause = {name(), nowhere, r1}, .payer = {}, .second_best = {}});
    plan.demands.emplace_back(decide::GiveWay{nowhere, nowhere});
    plan.feedback.emplace_back(QuantumUsed{turn.now, nowhere, {nowhere}});
    plan.looks.push_back({.thread = nowhere});
    plan.interests.push_back({.thread = nowhere, .watch = decide::Interest::Watch::requester});
    plan.questions.push_back({nowhere, {r1}});
    plan.timers.push_back({.requester = nowhere, .cpu_of = nowhere, .period = -5ms, .serial = 1});
    plan.metered.push_back({.thread = nowhere, .on_behalf_of = nowhere});
  }
};

class WithNonsense : public DecisionLoopTest {
 protected:
  WithNonsense() : DecisionLoopTest(std::make_unique<Nonsense>()) {}
};

TEST_F(WithNonsense, TheOtherDecidersAreNotHarmed) {
  provides(p2, r1);
  blocks(p1, {r1});
  run();
  EXPECT_EQ(attr(p2).rt_priority, 49);
  tick();
  wakes(p1, p2, r1);
  run();
  EXPECT_EQ(attr(p2), nice(0));
}

// Limits are told where they change, and ended where they are not renewed.
class LimitOnce final : public decide::Decider {
 public:
  [[nodiscard]] std::string_view name() const override { return "limit"; }
  void decide(const model::Model& /*model*/, const decide::Turn& /*turn*/, decide::Plan& plan) override {
    if (++turns_ <= 2) plan.demands.emplace_back(decide::LimitIo{"batch", 1000, {name(), {}, {}}});
  }

 private:
  int turns_ = 0;
};

class WithLimit : public DecisionLoopTest {
 protected:
  WithLimit() : DecisionLoopTest(std::make_unique<LimitOnce>()) {}
};

TEST_F(WithLimit, AClassesLimitIsSetOnceAndTakenBack) {
  std::vector<std::optional<std::int64_t>> told;
  host->limit_io_with([&](const std::string& name, std::optional<std::int64_t> bytes) {
    EXPECT_EQ(name, "batch");
    told.push_back(bytes);
  });
  for (int i = 0; i < 8; ++i) run();
  EXPECT_THAT(told, testing::ElementsAre(std::optional<std::int64_t>(1000), std::nullopt));
}

// Has nothing in flight, and wants to decide again in five milliseconds.
class Appointment final : public decide::Decider {
 public:
  [[nodiscard]] std::string_view name() const override { return "appointment"; }
  void decide(const model::Model& /*model*/, const decide::Turn& turn, decide::Plan& plan) override {
    if (next_ <= turn.now) next_ = turn.now + 5ms;
    plan.next = next_;
  }

 private:
  Time next_{};
};

class WithAppointment : public DecisionLoopTest {
 protected:
  WithAppointment() : DecisionLoopTest(std::make_unique<Appointment>()) {
    records.open(std::make_unique<RecordRing::Opening>());
    run();
    (void)records.take();
  }
  std::size_t turns_recorded() {
    return static_cast<std::size_t>(std::ranges::count_if(
        records.take(), [](const auto& item) { return std::holds_alternative<decide::Turn>(item); }));
  }
};

TEST_F(WithAppointment, ATurnThatADeciderAskedForIsRecorded) {
  run(5ms);
  EXPECT_EQ(turns_recorded(), 1U);
}

TEST_F(WithAppointment, AnotherWithoutNewsIsNot) {
  run(1ms);
  EXPECT_EQ(turns_recorded(), 0U);
}

// --- InterestSet

using decide::Interest;

class InterestSetTest : public testing::Test {
 protected:
  static Interest interest(Interest::Watch watch, bool urgent = true, ThreadId expected = {}) {
    return {.thread = p1, .tgid = 1001, .watch = watch, .urgent = urgent, .expected = expected};
  }
  bool apply(std::size_t decider, const Interest& one) { return set.apply(decider, std::vector{one}); }
  fakes::FakeObserver observer;
  InterestSet set{observer};
};

TEST_F(InterestSetTest, ANewWatchIsTold) {
  EXPECT_TRUE(apply(0, interest(Interest::Watch::provider)));
  EXPECT_FALSE(observer.watched.at(p1).requester);
  EXPECT_FALSE(apply(0, interest(Interest::Watch::requester))) << "it is known already";
  EXPECT_TRUE(observer.watched.at(p1).requester);
}

// To open a watch waits for a thread that is in execve(2): its exec is to be told before what it does then.
TEST_F(InterestSetTest, ANewRequesterIsToldOfWithTheNextDrain) {
  EXPECT_FALSE(apply(0, interest(Interest::Watch::requester)));
  EXPECT_TRUE(observer.watched.at(p1).requester);
}

TEST_F(InterestSetTest, AGrownChildIsExpectedNoMore) {
  Interest forked = interest(Interest::Watch::requester);
  forked.new_child = true;
  (void)apply(0, forked);
  observer.watched.at(p1).expected = p2;  // as the kernel's program does it
  (void)apply(0, interest(Interest::Watch::requester));
  EXPECT_FALSE(observer.watched.at(p1).expected.valid());
}

TEST_F(InterestSetTest, TheClosestLookThatAnyDeciderWantsHolds) {
  (void)apply(0, interest(Interest::Watch::provider, false));
  (void)apply(1, interest(Interest::Watch::requester, true));
  EXPECT_TRUE(observer.watched.at(p1).requester);
  EXPECT_TRUE(observer.watched.at(p1).urgent);
  (void)apply(1, interest(Interest::Watch::none));
  EXPECT_FALSE(observer.watched.at(p1).requester);
  EXPECT_FALSE(observer.watched.at(p1).urgent);
}

TEST_F(InterestSetTest, AThreadIsUnwatchedWhenTheLastDeciderLetsGo) {
  (void)apply(0, interest(Interest::Watch::provider));
  (void)apply(1, interest(Interest::Watch::provider));
  (void)apply(0, interest(Interest::Watch::none));
  EXPECT_TRUE(set.watches(p1));
  (void)apply(1, interest(Interest::Watch::none));
  EXPECT_FALSE(observer.watched.contains(p1));
}

TEST_F(InterestSetTest, AWaitStaysUntoldOnlyIfAllExpectTheSameThread) {
  (void)apply(0, interest(Interest::Watch::requester, true, p2));
  EXPECT_EQ(observer.watched.at(p1).expected, p2);
  (void)apply(1, interest(Interest::Watch::requester, true, {}));
  EXPECT_FALSE(observer.watched.at(p1).expected.valid());
}

TEST_F(InterestSetTest, TheLeastPatientDeciderIsToldInTime) {
  Interest patient = interest(Interest::Watch::requester);
  patient.patience = std::chrono::milliseconds(8);
  (void)apply(0, patient);
  EXPECT_EQ(observer.watched.at(p1).patience, std::chrono::milliseconds(8));
  patient.patience = std::chrono::milliseconds(1);
  (void)apply(1, patient);
  EXPECT_EQ(observer.watched.at(p1).patience, std::chrono::milliseconds(1));
}

TEST_F(InterestSetTest, AForgottenThreadIsNew) {
  (void)apply(0, interest(Interest::Watch::provider));
  set.forget(p1);
  EXPECT_TRUE(apply(0, interest(Interest::Watch::provider)));
}

// --- CpuClocks

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

// --- BoostMeter

class BoostMeterTest : public testing::Test {
 protected:
  template <typename T>
  std::vector<T> told() {
    std::vector<T> out;
    for (const decide::Input& one : inputs)
      if (const auto* found = std::get_if<T>(&one)) out.push_back(*found);
    inputs.clear();
    return out;
  }
  Time now{1h};
  fakes::FakeObserver observer;
  std::vector<decide::Input> inputs;
  BoostMeter meter{observer, [this](const decide::Input& input) { inputs.push_back(input); }};
};

TEST_F(BoostMeterTest, WhatABoostHasUsedIsToldWhenItsWaitEnds) {
  observer.cpu[p2] = 5ms;
  meter.apply(std::vector<decide::Metered>{{.thread = p2, .on_behalf_of = p1}}, now);
  observer.cpu[p2] = 9ms;
  meter.before(Woken{.time = now, .thread = p1, .by = p2});
  const auto used = told<decide::CpuUsed>();
  ASSERT_FALSE(used.empty());
  EXPECT_EQ(used[0].cpu, 4ms);
  EXPECT_EQ(used[0].on_behalf_of, p1);
}

TEST_F(BoostMeterTest, TheEndOfAWaitIsToldWithItsWaker) {
  meter.apply(std::vector<decide::Metered>{{.thread = p2, .on_behalf_of = p1}}, now);
  meter.before(Woken{.time = now, .thread = p1, .by = p3});
  EXPECT_EQ(told<decide::WaitEnded>().at(0).by, p3);
  meter.before(Woken{.time = now, .thread = p1, .stranger = true});
  EXPECT_EQ(told<decide::WaitEnded>().at(0).by, ThreadId{}) << "a thread that is not managed";
  meter.before(Woken{.time = now, .thread = p1, .unrelated = true});
  EXPECT_EQ(told<decide::WaitEnded>().at(0).by, std::nullopt);
}

TEST_F(BoostMeterTest, AWithheldBoostIsNotCharged) {
  observer.cpu[p2] = 0ms;
  meter.apply(std::vector<decide::Metered>{{.thread = p2, .on_behalf_of = p1, .counts = false}}, now);
  observer.cpu[p2] = 50ms;
  meter.before(Woken{.time = now, .thread = p1, .by = p2});
  EXPECT_THAT(told<decide::CpuUsed>(), IsEmpty());
}

// To open a sampler costs the thread's CPU a preemption. The thread that opens them is started for the first.
TEST_F(BoostMeterTest, AWithheldBoostIsSampledOnlyWhereItsThreadHasSpun) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the sanitizer starts a thread of its own with the first one";
#endif
  const auto threads = [] {
    const std::filesystem::directory_iterator all("/proc/self/task");
    return std::distance(begin(all), end(all));
  };
  const auto before = threads();
  decide::Metered boost{.thread = p2, .on_behalf_of = p1, .counts = false, .given_up = true};
  meter.apply(std::span(&boost, 1), now);
  meter.look(now + 5ms);
  EXPECT_EQ(threads(), before);
  boost.suspected = true;
  meter.apply(std::span(&boost, 1), now);
  meter.look(now + 20ms);
  EXPECT_EQ(threads(), before + 1);
}

TEST_F(BoostMeterTest, ABlockOfTheBoostedThreadIsAResult) {
  meter.apply(std::vector<decide::Metered>{{.thread = p2, .on_behalf_of = p1}}, now);
  meter.before(Blocked{.time = now, .thread = p2});
  EXPECT_TRUE(told<decide::Delivered>().at(0).by_blocking);
}

TEST_F(BoostMeterTest, WithoutBoostsNothingIsTold) {
  meter.before(Woken{.time = now, .thread = p1, .by = p2});
  EXPECT_TRUE(inputs.empty());
  EXPECT_EQ(meter.next(), std::nullopt);
}

}  // namespace
}  // namespace swapd::daemon
