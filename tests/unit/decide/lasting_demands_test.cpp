// Demands that stand from turn to turn, and that those which have changed are all that an arbiter need look at.
#include "decide/lasting_demands.h"

#include <gmock/gmock.h>

#include <random>

#include "decide/arbiter.h"
#include "unit/model/world.h"

namespace swapd::test {
namespace {

using decide::Arbiter;
using decide::LastingDemands;
using decide::Plan;
using decide::RunAs;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

RunAs run(ThreadId thread, SchedAttr attr, ThreadId requester = p1) {
  return {
      .thread = thread, .attr = attr, .cause = {"donation", requester, r1}, .payer = {}, .second_best = std::nullopt};
}

TEST(LastingDemandsTest, AThreadsDemandsStandInTheirOrder) {
  LastingDemands lasting;
  lasting.set(p2, std::array{run(p2, nice(-5)), run(p2, nice(-3))});
  lasting.set(p1, std::array{run(p1, nice(-1))});
  ASSERT_THAT(lasting.of(p2), SizeIs(2));
  EXPECT_EQ(lasting.of(p2)[1].attr, nice(-3));
  EXPECT_THAT(lasting.of(p3), IsEmpty());
  EXPECT_THAT(lasting.all(), SizeIs(3));
  EXPECT_THAT(lasting.changed(), UnorderedElementsAre(p1, p2));
}

TEST(LastingDemandsTest, WhatIsSetAgainHasNotChanged) {
  LastingDemands lasting;
  lasting.set(p2, std::array{run(p2, nice(-5))});
  lasting.begin();
  lasting.set(p2, std::array{run(p2, nice(-5))});
  lasting.set(p3, {});
  EXPECT_THAT(lasting.changed(), IsEmpty());
  lasting.set(p2, {});
  EXPECT_THAT(lasting.changed(), ElementsAre(p2));
  EXPECT_THAT(lasting.all(), IsEmpty());
}

TEST(LastingDemandsTest, OfAllThatAreSetThoseHaveChangedThatDiffer) {
  LastingDemands lasting;
  lasting.set_all(std::array{run(p4, nice(-5)), run(p2, nice(-5)), run(p3, nice(-5))});
  EXPECT_THAT(lasting.changed(), UnorderedElementsAre(p2, p3, p4));
  lasting.begin();
  lasting.set_all(std::array{run(p5, nice(-5)), run(p4, nice(-6)), run(p3, nice(-5))});
  EXPECT_THAT(lasting.changed(), UnorderedElementsAre(p2, p4, p5));
  EXPECT_THAT(lasting.of(p2), IsEmpty());
  EXPECT_THAT(lasting.of(p5), SizeIs(1));
}

// Plans of two deciders, of which each has lasting demands, in an arbiter that goes on from merge to merge, and as
// plain demands in one that begins anew each time.
class IncrementalMerge : public testing::Test {
 protected:
  static constexpr std::array threads{1, 2, 3, 4, 5, 6, 7, 8};
  int any(int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); }
  ThreadId any_thread() { return thread(1 + any(threads.size())); }
  RunAs any_run(ThreadId of) {
    RunAs out = run(of, any(4) == 0 ? fifo(1 + any(40)) : nice(-any(20)), any_thread());
    if (any(3) == 0) out.second_best = nice(-any(20));
    out.withheld = any(8) == 0;
    out.lowers = any(8) == 0;
    out.slice_only = any(4) == 0;
    out.payer.user = any(3) == 0 ? 1000 : 0;
    return out;
  }
  void change_lasting(LastingDemands& lasting) {
    lasting.begin();
    for (int i = any(3); i > 0; --i) {
      const ThreadId of = any_thread();
      std::vector<RunAs> demands;
      for (int n = any(4); n > 0; --n) demands.push_back(any_run(of));
      lasting.set(of, demands);
    }
  }
  std::mt19937 random{1};
};

TEST_F(IncrementalMerge, GrantsWhatAMergeOfAllGrants) {
  const decide::BudgetConfig config{.ceiling = {.share = 0.5}, .user_time = milliseconds(10)};
  Arbiter incremental(config);
  std::array<LastingDemands, 2> lasting;
  std::array<Plan, 2> plans;
  Time now{std::chrono::hours(1)};
  std::vector<decide::BudgetUsed> used;
  for (int step = 0; step < 3000; ++step) {
    now += milliseconds(any(40));
    if (any(20) == 0) {
      used.push_back({.time = now,
                      .requester = any(2) == 0 ? any_thread() : ThreadId{},
                      .requester_class = 0,
                      .user = 1000,
                      .cpu = milliseconds(any(60))});
      (void)incremental.budgets().use(used.back());
    }
    Arbiter whole(config);
    for (const decide::BudgetUsed& one : used) (void)whole.budgets().use(one);
    std::array<Plan, 2> all;
    for (std::size_t i = 0; i < plans.size(); ++i) {
      change_lasting(lasting[i]);
      plans[i].demands.clear();
      for (int n = any(4); n > 0; --n) plans[i].demands.emplace_back(any_run(any_thread()));
      plans[i].lasting = &lasting[i];
      all[i].demands = plans[i].demands;
      all[i].demands.insert(all[i].demands.end(), lasting[i].all().begin(), lasting[i].all().end());
    }
    const auto expected = whole.merge(all, now);
    ASSERT_TRUE(std::ranges::equal(incremental.merge(plans, now), expected)) << step;
    ASSERT_EQ(incremental.next_resume(), whole.next_resume()) << step;
  }
}

TEST_F(IncrementalMerge, WeighsOnlyWhatHasChangedOrIsWantedElsewhereToo) {
  Arbiter arbiter({});
  LastingDemands lasting;
  std::array<Plan, 1> plans;
  plans[0].lasting = &lasting;
  for (const int i : threads) lasting.set(thread(i), std::array{run(thread(i), nice(-5))});
  const Time now{std::chrono::hours(1)};
  arbiter.merge(plans, now);
  EXPECT_THAT(arbiter.touched(), SizeIs(threads.size()));
  lasting.begin();
  plans[0].demands.assign({run(p3, nice(-8))});
  arbiter.merge(plans, now);
  EXPECT_THAT(arbiter.touched(), ElementsAre(p3));
  EXPECT_EQ(find(arbiter.grants(), p3)->run.attr, nice(-8));
  plans[0].demands.clear();
  arbiter.merge(plans, now);
  EXPECT_THAT(arbiter.touched(), ElementsAre(p3)) << "it has no other demand any more";
  EXPECT_EQ(find(arbiter.grants(), p3)->run.attr, nice(-5));
  arbiter.merge(plans, now);
  EXPECT_THAT(arbiter.touched(), IsEmpty());
  EXPECT_THAT(arbiter.grants(), SizeIs(threads.size()));
}

}  // namespace
}  // namespace swapd::test
