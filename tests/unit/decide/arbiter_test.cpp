// Several demands for one thread: the highest rank whose budget lasts.
#include "decide/arbiter.h"

#include <gmock/gmock.h>

#include "unit/model/world.h"

namespace swapd::test {
namespace {

using decide::Arbiter;
using decide::Plan;
using decide::RunAs;
using testing::IsEmpty;
using testing::SizeIs;

class Arbitration : public testing::Test {
 protected:
  static RunAs run(ThreadId thread, SchedAttr attr, ThreadId requester, std::uint32_t user = 0) {
    return {.thread = thread,
            .attr = attr,
            .cause = {"donation", requester, r1},
            .payer = {.user = user},
            .second_best = {}};
  }
  std::span<const decide::Grant> merge(const std::vector<RunAs>& first, const std::vector<RunAs>& second = {}) {
    plans[0].demands.assign(first.begin(), first.end());
    plans[1].demands.assign(second.begin(), second.end());
    return arbiter.merge(plans, now);
  }
  std::array<Plan, 2> plans;
  Arbiter arbiter{{.ceiling = {.share = 0.5}, .user_time = milliseconds(10)}};
  Time now{std::chrono::hours(1)};
};

TEST_F(Arbitration, TheHighestRankIsGranted) {
  const auto grants = merge({run(p2, nice(-5), p1), run(p2, fifo(20), p3)});
  ASSERT_THAT(grants, SizeIs(1));
  EXPECT_EQ(grants[0].run.cause.on_behalf_of, p3);
}

TEST_F(Arbitration, OfEqualRanksTheFirstDemand) {
  EXPECT_EQ(merge({run(p2, fifo(20), p1), run(p2, fifo(20), p3)})[0].run.cause.on_behalf_of, p1);
}

TEST_F(Arbitration, OfEqualRanksTheBetterSecondBest) {
  RunAs first = run(p2, fifo(20), p1), second = run(p2, fifo(20), p3);
  first.second_best = nice(-5);
  second.second_best = nice(-15);
  EXPECT_EQ(merge({first, second})[0].run.cause.on_behalf_of, p3);
}

TEST_F(Arbitration, ASliceDoesNotKeepAThreadAtItsRankThatIsLowered) {
  RunAs slice = run(p2, nice(0), p1), lowered = run(p2, {.policy = SchedPolicy::idle}, {});
  slice.slice_only = true;
  lowered.lowers = true;
  EXPECT_TRUE(merge({slice}, {lowered})[0].run.lowers);
  EXPECT_TRUE(merge({lowered}, {slice})[0].run.lowers);
}

TEST_F(Arbitration, DemandsOfAllDecidersCount) {
  EXPECT_EQ(merge({run(p2, nice(-5), p1)}, {run(p2, nice(-10), {})})[0].run.attr, nice(-10));
}

TEST_F(Arbitration, EachThreadHasItsOwnGrantInOrder) {
  const auto grants = merge({run(p4, nice(-5), p1), run(p2, nice(-5), p1), run(p3, nice(-5), p1)});
  ASSERT_THAT(grants, SizeIs(3));
  EXPECT_EQ(grants[0].run.thread, p2);
  EXPECT_EQ(grants[2].run.thread, p4);
}

TEST_F(Arbitration, ADemandAtItsCeilingStandsBehindOneThatMayRun) {
  (void)arbiter.budgets().use(p1, 0, milliseconds(60), now);
  EXPECT_EQ(merge({run(p2, fifo(50), p1), run(p2, fifo(10), p3)})[0].run.cause.on_behalf_of, p3);
}

TEST_F(Arbitration, ANiceValueDoesNotRestAtTheCeiling) {
  (void)arbiter.budgets().use(p1, 0, milliseconds(60), now);
  const auto grants = merge({run(p2, nice(-5), p1)});
  EXPECT_EQ(arbiter.next_resume(), std::nullopt);
  EXPECT_THAT(grants, SizeIs(1));
}

TEST_F(Arbitration, WhereAllRestTheBestIsGrantedToRestAndSaysUntilWhen) {
  (void)arbiter.budgets().use(p1, 0, milliseconds(60), now);
  const auto grants = merge({run(p2, fifo(50), p1)});
  ASSERT_THAT(grants, SizeIs(1));
  EXPECT_EQ(grants[0].ceiling_until, now + milliseconds(40));
  EXPECT_EQ(arbiter.next_resume(), now + milliseconds(40));
}

TEST_F(Arbitration, AWithheldDemandStandsBehindOthersAndIsNotWaitedFor) {
  RunAs withheld = run(p2, fifo(50), p1);
  withheld.withheld = true;
  EXPECT_EQ(merge({withheld, run(p2, nice(-1), p3)})[0].run.cause.on_behalf_of, p3);
  EXPECT_TRUE(merge({withheld})[0].run.withheld);
  EXPECT_EQ(arbiter.next_resume(), std::nullopt);
}

TEST_F(Arbitration, AUserAtItsQuotaRestsWhateverIsDemanded) {
  arbiter.budgets().use(1000, milliseconds(10), now);
  EXPECT_NE(merge({run(p2, nice(-5), p1, 1000)})[0].quota_until, std::nullopt);
  EXPECT_EQ(merge({run(p2, nice(-5), p1, 1001)})[0].quota_until, std::nullopt);
}

TEST_F(Arbitration, WithoutDemandsNothingIsGranted) {
  (void)merge({run(p2, fifo(50), p1)});
  EXPECT_THAT(merge({}), IsEmpty());
}

}  // namespace
}  // namespace swapd::test
