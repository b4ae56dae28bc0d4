// Deciders side by side: a toy that is added without touching the others, and one that answers nonsense.
#include "decide/panel.h"

#include <gmock/gmock.h>

#include <limits>

#include "unit/decide/turns.h"

namespace swapd::test {
namespace {

using testing::IsEmpty;

// Boosts the thread that has forked last, until another one forks (docs/adding-a-decider.md).
class LastForked final : public decide::Decider {
 public:
  [[nodiscard]] std::string_view name() const override { return "last-forked"; }

  void on(const decide::Input& input) override {
    if (const auto* forked = std::get_if<decide::Forked>(&input)) last_ = forked->parent;
  }
  void forget(ThreadId thread) override {
    if (last_ == thread) last_ = {};
  }
  void decide(const model::Model& model, const decide::Turn& /*turn*/, decide::Plan& plan) override {
    const auto view = model.thread(last_);
    plan.idle = !view;
    if (!view) return;
    SchedAttr attr = view->base;
    attr.nice = -5;
    plan.demands.emplace_back(
        decide::RunAs{.thread = last_, .attr = attr, .cause = {name(), {}, {}}, .payer = {}, .second_best = {}});
  }

 private:
  ThreadId last_;
};

std::vector<std::unique_ptr<decide::Decider>> with(std::unique_ptr<decide::Decider> one) {
  std::vector<std::unique_ptr<decide::Decider>> all;
  all.push_back(std::move(one));
  return all;
}

class ToyDecider : public testing::Test {
 protected:
  ToyDecider() : t(with(std::make_unique<LastForked>())) {
    t.enroll(p1, fifo(50));
    t.enroll(p2);
    t.enroll(p3);
  }
  Turns t;
};

TEST_F(ToyDecider, ItsDemandIsGrantedBesideDonations) {
  t.provides(p2, r1);
  t.blocks(p1, {r1});
  t.panel->on(decide::Forked{t.now, p3});
  t.turn();
  EXPECT_EQ(t.runs_as(p3), nice(-5));
  EXPECT_EQ(t.grant(p3)->run.cause.by, "last-forked");
  EXPECT_EQ(t.runs_as(p2), donated(fifo(49)));
}

TEST_F(ToyDecider, ADonationOfAHigherRankStandsBeforeIt) {
  t.panel->on(decide::Forked{t.now, p2});
  t.provides(p2, r1);
  t.blocks(p1, {r1});
  t.turn();
  EXPECT_EQ(t.grant(p2)->run.cause.by, "donation");
  t.wakes(p1, p2, r1);
  t.turn();
  EXPECT_EQ(t.grant(p2)->run.cause.by, "last-forked") << "it was wanted all along";
}

TEST_F(ToyDecider, WhatItDoesNotRenewEnds) {
  t.panel->on(decide::Forked{t.now, p3});
  t.turn();
  t.leaves(p3);
  t.turn();
  EXPECT_THAT(t.panel->grants(), IsEmpty());
  EXPECT_TRUE(t.panel->idle());
}

// A plan that keeps its demands while it is explored takes nothing from the other decider's.
TEST_F(ToyDecider, KeepsItsDemandWhileTheOtherStillLooks) {
  t.panel->on(decide::Forked{t.now, p3});
  t.turn();
  t.provides(p2, r1);
  t.blocks(p1, {r1});
  (void)t.panel->decide({.now = t.now, .first = true});
  EXPECT_EQ(t.runs_as(p3), nice(-5));
  EXPECT_EQ(t.runs_as(p2), donated(fifo(49)));
}

// Threads that there are not, a demand for every rank, feedback without end, timers in the past.
class Nonsense final : public decide::Decider {
 public:
  [[nodiscard]] std::string_view name() const override { return "nonsense"; }
  void decide(const model::Model& /*model*/, const decide::Turn& turn, decide::Plan& plan) override {
    const ThreadId nowhere{std::numeric_limits<pid_t>::max(), 7};
    plan.complete = false;
    plan.demands.emplace_back(decide::RunAs{
        .thread = nowhere, .attr = fifo(99), .cause = {name(), nowhere, r1}, .payer = {}, .second_best = {}});
    plan.demands.emplace_back(decide::GiveWay{nowhere, nowhere});
    plan.feedback.emplace_back(QuantumUsed{turn.now, nowhere, {nowhere, nowhere}});
    plan.feedback.emplace_back(Woken{.time = turn.now, .thread = nowhere, .by = nowhere});
    plan.looks.push_back({.thread = nowhere});
    plan.interests.push_back({.thread = nowhere, .watch = decide::Interest::Watch::requester});
    plan.questions.push_back({nowhere, {r1}});
    plan.timers.push_back({.requester = nowhere, .cpu_of = nowhere, .period = -milliseconds(5), .serial = 1});
    plan.next = Time{};
  }
};

TEST(NonsensePanel, HarmsNoOtherDecider) {
  Turns t(with(std::make_unique<Nonsense>()));
  t.enroll(p1, fifo(50));
  t.enroll(p2);
  t.provides(p2, r1);
  t.blocks(p1, {r1});
  t.turn();
  EXPECT_EQ(t.rounds, 17) << "a turn ends, whatever a decider wants";
  EXPECT_EQ(t.runs_as(p2), donated(fifo(49)));
  t.wakes(p1, p2, r1);
  t.turn();
  EXPECT_EQ(t.runs_as(p2), std::nullopt);
}

TEST(PanelLimits, OfSeveralForOneClassTheLowestHolds) {
  class Limiter final : public decide::Decider {
   public:
    explicit Limiter(std::int64_t bytes) : bytes_(bytes) {}
    [[nodiscard]] std::string_view name() const override { return "limiter"; }
    void decide(const model::Model& /*model*/, const decide::Turn& /*turn*/, decide::Plan& plan) override {
      plan.demands.emplace_back(decide::LimitIo{"batch", bytes_, {name(), {}, {}}});
    }

   private:
    std::int64_t bytes_;
  };
  std::vector<std::unique_ptr<decide::Decider>> two;
  two.push_back(std::make_unique<Limiter>(2000));
  two.push_back(std::make_unique<Limiter>(1000));
  Turns t(std::move(two));
  t.turn();
  EXPECT_EQ(t.panel->limits(), (decide::Panel::Limits{{"batch", 1000}}));
}

// Wants to be asked again in so long.
class Waiter final : public decide::Decider {
 public:
  Waiter(Duration time, bool punctual) : time_(time), punctual_(punctual) {}
  [[nodiscard]] std::string_view name() const override { return "waiter"; }
  void decide(const model::Model& /*model*/, const decide::Turn& turn, decide::Plan& plan) override {
    plan.next = turn.now + time_;
    plan.punctual = punctual_;
  }

 private:
  Duration time_;
  bool punctual_;
};

TEST(PanelNext, PunctualIsTheSoonestOfThePlansThatWantIt) {
  std::vector<std::unique_ptr<decide::Decider>> three;
  three.push_back(std::make_unique<Waiter>(milliseconds(1), false));
  three.push_back(std::make_unique<Waiter>(milliseconds(5), true));
  three.push_back(std::make_unique<Waiter>(milliseconds(3), true));
  Turns t(std::move(three));
  EXPECT_EQ(t.panel->punctual_next(), std::nullopt) << "before the first plan";
  t.turn();
  EXPECT_EQ(t.panel->next(), t.now + milliseconds(1));
  EXPECT_EQ(t.panel->punctual_next(), t.now + milliseconds(3));
}

TEST(PanelNext, WhereNoPlanWantsItNothingIsPunctual) {
  Turns t(with(std::make_unique<Waiter>(milliseconds(1), false)));
  t.turn();
  EXPECT_EQ(t.panel->punctual_next(), std::nullopt);
}

TEST(PanelState, ARestoredPanelDecidesAsTheOther) {
  Turns live;
  live.enroll(p1, fifo(50));
  for (const ThreadId id : {p2, p3}) live.enroll(id);
  live.provides(p2, r1);
  live.provides(p3, r1);
  live.blocks(p1, {r1});
  live.turn();
  Turns other;
  other.now = live.now;
  other.model.restore(live.model.image());
  ASSERT_TRUE(other.panel->restore(live.panel->save()));
  for (Turns* one : {&live, &other}) {
    one->turn();
    one->fires(p1, decide::Timer::Kind::quantum);
    one->turn();
  }
  EXPECT_TRUE(std::ranges::equal(live.panel->grants(), other.panel->grants()));
  EXPECT_EQ(live.panel->save(), other.panel->save());
}

TEST(PanelState, ThatDoesNotFitIsRefused) {
  Turns t;
  auto states = t.panel->save();
  states[0].numbers.resize(states[0].numbers.size() - 2);
  EXPECT_FALSE(t.panel->restore(states));
  states[0].numbers.assign(5, std::numeric_limits<std::int64_t>::max());
  EXPECT_FALSE(t.panel->restore(states));
}

TEST(PanelState, HasThePatience) {
  Turns live, other;
  ASSERT_EQ(live.panel->save(), other.panel->save());
  live.panel->on(decide::PatienceChanged{live.now, milliseconds(8)});
  EXPECT_NE(live.panel->save(), other.panel->save());
  ASSERT_TRUE(other.panel->restore(live.panel->save()));
  EXPECT_EQ(live.panel->save(), other.panel->save());
}

TEST(PanelState, OfADeciderThatIsNotHereIsPassedOver) {
  Turns t;
  EXPECT_TRUE(t.panel->restore(std::vector<decide::DeciderState>{{"memory", {1, 2, 3}, {}}}));
}

}  // namespace
}  // namespace swapd::test
