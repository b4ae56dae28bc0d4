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
  host->use({.runnable = [](const Blocked& blocked) { return blocked.thread == p2; }, .limit_io = {}, .listen = {}});
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
  host->use({.runnable = {},
             .limit_io =
                 [&](const std::string& name, std::optional<std::int64_t> bytes) {
                   EXPECT_EQ(name, "batch");
                   told.push_back(bytes);
                 },
             .listen = {}});
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

}  // namespace
}  // namespace swapd::daemon
