// Automatic limits as a decider: inputs in, a demand for each limited class out.
#include "decide/shaping/auto_limit_decider.h"

#include <gmock/gmock.h>

#include "decide/state.h"
#include "unit/decide/turns.h"

namespace swapd::test {
namespace {

using decide::AutoLimit;
using decide::AutoLimitDecider;

class AutoLimits : public testing::Test {
 protected:
  AutoLimits() {
    auto made = std::make_unique<AutoLimitDecider>();
    decider = made.get();
    std::vector<std::unique_ptr<decide::Decider>> all;
    all.push_back(std::move(made));
    t.emplace(std::move(all));
  }
  void ask(bool on = true) {
    t->panel->on(decide::AutoLimitAsked{
        .time = t->now, .class_name = "batch", .on = on, .least = 1 << 20, .rate = {}, .wait = 0.3});
  }
  // A quarter of a second in which the protected programs waited for this share, and the others moved so much.
  void fares(double waited, std::int64_t others = 100 << 20) {
    t->pass(AutoLimit::period);
    t->panel->on(decide::ClassFared{.time = t->now,
                                    .class_name = "batch",
                                    .period = AutoLimit::period,
                                    .by_calls = 1 << 20,
                                    .by_disk = 1 << 20,
                                    .waited = waited,
                                    .others_calls = others,
                                    .others_disk = others});
    t->turn();
  }
  AutoLimitDecider* decider = nullptr;
  std::optional<Turns> t;
};

TEST_F(AutoLimits, WithoutANeedThereIsNoLimit) {
  ask();
  for (int i = 0; i < 20; ++i) fares(0.05);
  EXPECT_TRUE(t->panel->limits().empty());
  EXPECT_EQ(decider->view("batch")->state, AutoLimit::State::off);
}

TEST_F(AutoLimits, ProtectedProgramsThatWaitHaveTheOthersLimited) {
  ask();
  for (int i = 0; i < 20; ++i) fares(0.9);
  EXPECT_EQ(t->panel->limits().count("batch"), 1U);
  EXPECT_EQ(decider->view("batch")->limit, t->panel->limits().at("batch"));
}

TEST_F(AutoLimits, WhatIsNotAskedForAnyMoreEnds) {
  ask();
  for (int i = 0; i < 20; ++i) fares(0.9);
  ask(false);
  t->turn();
  EXPECT_TRUE(t->panel->limits().empty());
  EXPECT_EQ(decider->view("batch"), std::nullopt);
}

TEST_F(AutoLimits, AClassThatNobodyAskedForIsPassedOver) {
  fares(0.9);
  EXPECT_TRUE(t->panel->limits().empty());
}

TEST_F(AutoLimits, ARestoredDeciderGoesOnWhereTheOtherWas) {
  ask();
  for (int i = 0; i < 12; ++i) fares(0.9);
  decide::StateWriter writer;
  decider->save(writer);
  AutoLimitDecider other;
  decide::StateReader reader(writer.numbers());
  other.restore(reader);
  ASSERT_TRUE(reader.good());
  for (int i = 0; i < 30; ++i) {
    const decide::ClassFared fared{.time = t->now,
                                   .class_name = "batch",
                                   .period = AutoLimit::period,
                                   .by_calls = 1 << 20,
                                   .by_disk = 1 << 20,
                                   .waited = i % 3 == 0 ? 0.9 : 0.1,
                                   .others_calls = 1 << 22,
                                   .others_disk = 1 << 22};
    decider->on(fared);
    other.on(fared);
    ASSERT_EQ(other.view("batch")->limit, decider->view("batch")->limit);
  }
}

}  // namespace
}  // namespace swapd::test
