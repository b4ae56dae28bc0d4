// With which attributes a donation is carried out, and who pays.
#include "decide/donation/terms.h"

#include <gmock/gmock.h>

#include "unit/model/world.h"

namespace swapd::test {
namespace {

using decide::Donation;
using decide::DonationRules;
using decide::Plan;
using decide::RunAs;
using testing::IsEmpty;
using testing::SizeIs;

class TermsTest : public testing::Test {
 protected:
  static constexpr ClassId no_realtime = 2;
  void SetUp() override {
    rules.classes = {DonationRules{}, DonationRules{.lending = {.realtime_allowed = false}}};
    enroll(p2, nice(0));
  }
  void enroll(ThreadId id, SchedAttr base, std::uint32_t uid = 1000, ClassId class_id = 0,
              Weight weight = usual_weight) {
    roster.add(Enrolled{{}, id, id.tid, uid, base, class_id, weight});
  }
  static Donation donation(ThreadId requester, SchedAttr attr, Vector<ThreadId> path) {
    return {.requester = requester, .attr = attr, .resource = r1, .path = std::move(path)};
  }
  std::vector<RunAs> demands(const Donation& of, bool quota = false) {
    Plan plan;
    decide::Terms(rules, roster, progress, quota).demand(of, "donation", now, plan);
    std::vector<RunAs> out;
    for (const decide::Demand& demand : plan.demands) out.push_back(std::get<RunAs>(demand));
    return out;
  }
  [[nodiscard]] decide::Terms terms() const { return {rules, roster, progress, false}; }
  void lend_and_judge(ThreadId requester, ThreadId provider) {
    progress.lent(requester, r1, false, now, now);
    progress.judged(provider, decide::SpinJudge::Verdict::spins);
  }

  DonationRules rules;
  decide::Roster roster;
  decide::Progress progress;
  Time now{std::chrono::hours(1)};
};

TEST_F(TermsTest, EveryProviderOnThePathRunsAsIsLent) {
  enroll(p1, nice(-10));
  enroll(p3, nice(0));
  const auto runs = demands(donation(p1, nice(-10), {p2, p3}));
  ASSERT_THAT(runs, SizeIs(2));
  EXPECT_EQ(runs[0].thread, p2);
  EXPECT_EQ(runs[1].thread, p3);
  EXPECT_EQ(runs[1].attr, nice(-10));
  EXPECT_EQ(runs[1].cause.on_behalf_of, p1);
}

TEST_F(TermsTest, ARefusedDonationDemandsNothing) {
  enroll(p1, nice(-10));
  auto refused = donation(p1, nice(-10), {p2});
  refused.refusal = decide::Refusal::policy;
  EXPECT_THAT(demands(refused), IsEmpty());
}

TEST_F(TermsTest, AProviderOfAClassWithoutRealTimeRunsInTheOrdinaryOne) {
  enroll(p1, fifo(10));
  enroll(p3, nice(0), 1000, no_realtime);
  const auto runs = demands(donation(p1, fifo(9), {p2, p3}));
  ASSERT_THAT(runs, SizeIs(2));
  EXPECT_EQ(runs[0].attr, fifo(9));
  EXPECT_FALSE(runs[1].attr.realtime());
  EXPECT_EQ(runs[1].attr.nice, -20);
}

TEST_F(TermsTest, ASliceIsNobodysQuota) {
  enroll(p1, nice(-10), 1000);
  enroll(p2, nice(0), 1000);
  enroll(p3, nice(0), 1001);
  decide::Conversation conversation;
  for (int i = 0; i < 4; ++i)
    conversation.wait_ended(
        {.time = now, .requester = p1, .provider = p2, .rank = 30, .through = r1, .lasts = std::chrono::seconds(1)});
  std::vector<RunAs> demands;
  decide::Terms(rules, roster, progress, true).demand(conversation, "donation", demands);
  ASSERT_THAT(demands, SizeIs(2));
  EXPECT_EQ(demands[0].thread, p2);
  EXPECT_EQ(demands[0].payer.user, 1000U);
  EXPECT_EQ(demands[1].thread, p1);
  EXPECT_EQ(demands[1].payer.user, 0U) << "its own CPU time is not lent";
}

TEST_F(TermsTest, WhatSpinsHasTheSecondBestAndThenNothing) {
  enroll(p1, fifo(10));
  lend_and_judge(p1, p2);
  const auto doubted = demands(donation(p1, fifo(9), {p2}));
  EXPECT_TRUE(doubted.at(0).doubted);
  EXPECT_FALSE(doubted.at(0).attr.realtime());
  lend_and_judge(p1, p2);
  EXPECT_TRUE(demands(donation(p1, fifo(9), {p2})).at(0).withheld);
}

TEST_F(TermsTest, AnOrdinaryDonationIsHalvedWhereItIsDoubted) {
  enroll(p1, nice(-10));
  lend_and_judge(p1, p2);
  EXPECT_EQ(demands(donation(p1, nice(-10), {p2})).at(0).attr.nice, -5);
}

TEST_F(TermsTest, TheRequestersUserPaysWhereThereIsAnother) {
  enroll(p1, nice(-10));
  const auto one = donation(p1, nice(-10), {p2});
  EXPECT_EQ(demands(one, true).at(0).payer.user, 0U) << "a user that is alone has no quota";
  enroll(p3, nice(0), 1001);
  EXPECT_EQ(demands(one, true).at(0).payer.user, 1000U);
  EXPECT_EQ(demands(one, false).at(0).payer.user, 0U);
}

TEST_F(TermsTest, AHeavyGroupMakesAThreadImportantWhereWeightsCount) {
  enroll(p1, nice(0), 1000, 0, 1000);
  EXPECT_FALSE(terms().is_important(p1));
  rules.weight_above = 100;
  EXPECT_TRUE(terms().is_important(p1));
  EXPECT_FALSE(terms().is_important(p2));
  EXPECT_GT(rank(*terms().importance(donation(p1, nice(0), {p2}))), rank(nice(0)));
}

TEST_F(TermsTest, WhereThePolicyIsStrictTheRequesterRunsAboveItsProvider) {
  enroll(p1, nice(-10));
  const auto runs = demands(donation(p1, fifo(1), {p2}));
  ASSERT_THAT(runs, SizeIs(2));
  EXPECT_EQ(runs[0].thread, p2);
  EXPECT_EQ(runs[0].attr, fifo(1));
  EXPECT_EQ(runs[1].thread, p1);
  EXPECT_EQ(runs[1].attr, fifo(2));
  EXPECT_EQ(runs[1].cause.on_behalf_of, p1);
}

TEST_F(TermsTest, ARequesterThatIsAsHighAsWhatItLendsIsLeftAlone) {
  enroll(p1, nice(-10));
  EXPECT_THAT(demands(donation(p1, nice(-10), {p2})), SizeIs(1));
  enroll(p3, fifo(10));
  EXPECT_THAT(demands(donation(p3, fifo(9), {p2})), SizeIs(1));
}

TEST_F(TermsTest, WhereNoProviderRunsInRealTimeNeitherDoesTheRequester) {
  enroll(p1, nice(-10));
  enroll(p3, nice(0), 1000, no_realtime);
  EXPECT_THAT(demands(donation(p1, fifo(1), {p3})), SizeIs(1));
  lend_and_judge(p1, p2);
  EXPECT_THAT(demands(donation(p1, fifo(1), {p2})), SizeIs(1)) << "it begins to look like a spin";
}

TEST_F(TermsTest, ARequesterThatHasGoneCountsAsNothing) {
  EXPECT_EQ(terms().importance(donation(p5, nice(-10), {p2})), std::nullopt);
  EXPECT_THAT(demands(donation(p5, fifo(1), {p2})), SizeIs(1));
}

}  // namespace
}  // namespace swapd::test
