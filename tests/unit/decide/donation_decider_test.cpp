// Donation as a whole: events in, demands out, turn by turn.
#include <gmock/gmock.h>

#include "unit/decide/turns.h"

namespace swapd::test {
namespace {

using decide::Interest;
using decide::Look;
using decide::Timer;
using testing::Contains;
using testing::Field;
using testing::IsEmpty;
using testing::SizeIs;

class DonationTurns : public testing::Test {
 protected:
  DonationTurns() {
    t.enroll(p1, fifo(50));
    for (const ThreadId id : {p2, p3, p4, p5}) t.enroll(id, nice(0));
  }
  // p1 waits for r1.
  void waits() {
    t.blocks(p1, {r1});
    t.turn();
  }
  // The thread that is boosted for it uses so much CPU time without a result.
  bool is_withheld_after(Duration cpu) {
    waits();
    const ThreadId leaf = t.grant(p3) != nullptr ? p3 : p2;
    t.pass(cpu + milliseconds(10));
    t.panel->on(decide::CpuUsed{t.now, leaf, p1, cpu});
    t.turn();
    return t.grant(leaf)->run.withheld;
  }
  Turns t;
};

TEST_F(DonationTurns, AProviderRunsAsItsRequesterUntilTheWaitEnds) {
  t.provides(p2, r1);
  waits();
  EXPECT_EQ(t.runs_as(p2), donated(fifo(49)));
  EXPECT_EQ(t.on_behalf_of(p2), p1);
  t.wakes(p1, p2, r1);
  t.turn();
  EXPECT_EQ(t.runs_as(p2), std::nullopt);
}

TEST_F(DonationTurns, EveryLinkOfAChainRuns) {
  t.provides(p2, r1);
  t.provides(p3, r2);
  t.blocks(p2, {r2});
  waits();
  EXPECT_EQ(t.runs_as(p2), donated(fifo(49)));
  EXPECT_EQ(t.runs_as(p3), donated(fifo(49)));
}

TEST_F(DonationTurns, AThreadThatIsNotAboveTheLowestDonatesNothing) {
  t.provides(p3, r1);
  t.blocks(p2, {r1});
  t.turn();
  EXPECT_THAT(t.panel->grants(), IsEmpty());
}

TEST_F(DonationTurns, TheMoreImportantOfTwoRequestersCounts) {
  t.enroll(p6, fifo(70));
  t.provides(p2, r1);
  t.blocks(p1, {r1});
  t.blocks(p6, {r1});
  t.turn();
  EXPECT_EQ(t.runs_as(p2), donated(fifo(69)));
  EXPECT_EQ(t.on_behalf_of(p2), p6);
  t.wakes(p6, p2, r1);
  t.turn();
  EXPECT_EQ(t.runs_as(p2), donated(fifo(49))) << "the other one still waits";
}

TEST_F(DonationTurns, ARequesterThatIsReniceDonatesWhatItHasNow) {
  t.provides(p2, r1);
  waits();
  t.enroll(p1, fifo(20));
  t.turn();
  EXPECT_EQ(t.runs_as(p2), donated(fifo(19)));
}

TEST_F(DonationTurns, ARequesterThatFallsToTheLowestRankEndsIt) {
  t.provides(p2, r1);
  waits();
  t.enroll(p1, nice(0));
  t.turn();
  EXPECT_THAT(t.panel->grants(), IsEmpty());
}

class WeightedTurns : public testing::Test {
 protected:
  // p1, of nice 0 in a group of weight 1000, waits for p2, of nice 0 in an ordinary one.
  void begins(Weight weight_above) {
    t.emplace(std::vector<std::unique_ptr<decide::Decider>>{}, decide::BudgetConfig{},
              decide::DonationConfig{.rules = {.weight_above = weight_above}});
    t->enroll(p1, nice(0), 1000, 1000);
    t->enroll(p2, nice(0));
    t->provides(p2, r1);
    t->blocks(p1, {r1});
    t->turn();
  }
  std::optional<Turns> t;
};

TEST_F(WeightedTurns, AThreadOfAHeavierGroupIsARequester) {
  begins(usual_weight);
  EXPECT_EQ(t->interests[p1].watch, Interest::Watch::requester);
  EXPECT_EQ(t->runs_as(p2), donated(nice(-10)));
}

TEST_F(WeightedTurns, WithoutTheKeyItIsNone) {
  begins(0);
  EXPECT_FALSE(t->interests.contains(p1));
  EXPECT_THAT(t->panel->grants(), IsEmpty());
}

TEST_F(WeightedTurns, AWeightThatChangesCountsInTheNextTurn) {
  begins(usual_weight);
  t->enroll(p1, nice(0), 1000, 200);
  t->turn();
  EXPECT_EQ(t->runs_as(p2), donated(nice(-3)));
  t->enroll(p1, nice(0), 1000, usual_weight);
  t->turn();
  EXPECT_THAT(t->panel->grants(), IsEmpty());
}

TEST_F(WeightedTurns, AThreadOfALighterGroupMakesThoseThatWaitImportant) {
  begins(900);
  t->enroll(p3, nice(0), 1000, 1000);
  t->enroll(p2, nice(0), 1000, 1000);
  t->enroll(p1, nice(0), 1000, 1000);
  t->turn();
  EXPECT_THAT(t->panel->grants(), IsEmpty()) << "all groups weigh the same";
  t->enroll(p2, nice(0), 1000, 500);
  t->turn();
  EXPECT_EQ(t->runs_as(p2), donated(nice(-3)));
}

TEST_F(WeightedTurns, ItLingersAsAPriorityOfItsOwnDoes) {
  begins(usual_weight);
  t->wakes(p1, p2, r1);
  t->turn();
  t->blocks(p1, {r1});
  t->turn();
  t->wakes(p1, p2, r1);
  t->turn();
  EXPECT_EQ(t->runs_as(p2), donated(nice(-10)));
}

TEST_F(DonationTurns, RequestersAreWatchedFromTheirEnrolmentAndProvidersFromTheirFirstWaitTree) {
  t.provides(p2, r1);
  t.turn();
  EXPECT_EQ(t.interests[p1].watch, Interest::Watch::requester);
  EXPECT_FALSE(t.interests.contains(p2));
  waits();
  EXPECT_EQ(t.interests[p2].watch, Interest::Watch::provider);
}

// To open a watch takes a while: the help comes in the first round.
TEST_F(DonationTurns, HelpComesBeforeLooks) {
  t.provides(p2, r1);
  t.turn();
  t.blocks(p1, {r1});
  decide::Turn one{.now = t.now, .first = true};
  const auto answer = t.panel->decide(one);
  EXPECT_FALSE(answer.complete);
  EXPECT_TRUE(answer.new_demands);
  EXPECT_EQ(t.runs_as(p2), donated(fifo(49)));
}

TEST_F(DonationTurns, ANewWaitTreeIsExploredLevelByLevel) {
  t.provides(p2, r1);
  t.provides(p3, r2);
  t.turn();
  t.blocks(p1, {r1});
  decide::Turn one{.now = t.now, .first = true};
  (void)t.panel->decide(one);
  // The observer tells of the thread that is newly watched: it waits itself.
  t.blocks(p2, {r2});
  one.first = false;
  (void)t.panel->decide(one);
  (void)t.panel->decide(one);
  EXPECT_EQ(t.runs_as(p3), donated(fifo(49)));
}

TEST_F(DonationTurns, AnUnknownProviderIsAskedFor) {
  waits();
  ASSERT_THAT(t.questions, SizeIs(1));
  EXPECT_EQ(t.questions[0].waiter, p1);
}

TEST_F(DonationTurns, ABlockedProviderIsLookedAtAgain) {
  t.provides(p2, r1);
  t.blocks(p2, {});
  waits();
  t.wakes(p1, p2, r1);
  t.turn();
  waits();
  EXPECT_THAT(t.looks, Contains(Field(&Look::thread, p2)));
}

TEST_F(DonationTurns, AThreadOfAChoiceIsTimedAndTheNextHasItsTurn) {
  t.provides(p2, r1);
  t.provides(p3, r1);
  waits();
  const ThreadId first = t.grant(p2) != nullptr ? p2 : p3;
  const ThreadId second = first == p2 ? p3 : p2;
  ASSERT_NE(t.timer(p1, Timer::Kind::quantum), nullptr);
  EXPECT_EQ(t.timer(p1, Timer::Kind::quantum)->cpu_of, first);
  t.fires(p1, Timer::Kind::quantum);
  t.turn();
  EXPECT_EQ(t.runs_as(first), std::nullopt);
  EXPECT_EQ(t.runs_as(second), donated(fifo(49)));
  EXPECT_EQ(t.timer(p1, Timer::Kind::quantum)->cpu_of, second);
}

TEST_F(DonationTurns, AnOnlyProviderIsNotTimed) {
  t.provides(p2, r1);
  waits();
  EXPECT_EQ(t.timer(p1, Timer::Kind::quantum), nullptr);
}

TEST_F(DonationTurns, CandidatesAreTracedSoThatTheWakerIsLearnt) {
  t.provides(p2, r1);
  t.provides(p3, r1);
  waits();
  EXPECT_EQ(t.interests[p2].wakes, Interest::Wakes::told);
  EXPECT_EQ(t.interests[p3].wakes, Interest::Wakes::told);
}

TEST_F(DonationTurns, ARequesterThatComesBackFindsItsProviderStillBoosted) {
  t.provides(p2, r1);
  for (int i = 0; i < 2; ++i) {
    waits();
    t.wakes(p1, p2, r1);
    t.turn();
  }
  EXPECT_EQ(t.runs_as(p2), donated(fifo(49)));
  t.fires(p1, Timer::Kind::linger);
  t.turn();
  EXPECT_EQ(t.runs_as(p2), std::nullopt);
}

TEST_F(DonationTurns, TheOnlyThreadThatEndsAWaitIsExpectedToEndTheNext) {
  t.provides(p2, r1);
  waits();
  t.wakes(p1, p2, r1);
  t.turn();
  EXPECT_EQ(t.interests[p1].expected, p2);
  EXPECT_GT(t.interests[p1].patience, Duration::zero());
}

TEST_F(DonationTurns, AProviderThatSpinsIsLentLessAndThenNothing) {
  t.provides(p2, r1);
  waits();
  t.panel->on(decide::Judged{t.now, p2, decide::SpinJudge::Verdict::spins});
  t.turn();
  EXPECT_TRUE(t.grant(p2)->run.doubted);
  EXPECT_EQ(t.runs_as(p2)->policy, SchedPolicy::other);
  t.panel->on(decide::Judged{t.now, p2, decide::SpinJudge::Verdict::spins});
  t.turn();
  EXPECT_TRUE(t.grant(p2)->run.withheld);
  t.panel->on(decide::Judged{t.now, p2, decide::SpinJudge::Verdict::computes});
  t.turn();
  EXPECT_FALSE(t.grant(p2)->run.withheld) << "it computes again";
}

TEST_F(DonationTurns, ABoostWithoutAResultUsesUpItsAllowance) {
  t.provides(p2, r1);
  EXPECT_TRUE(is_withheld_after(milliseconds(490)));
}

TEST_F(DonationTurns, AWithheldBoostDoesNotLinger) {
  t.provides(p2, r1);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(is_withheld_after(milliseconds(490)));
    t.wakes(p1, p2, r1);
    t.turn();
  }
  EXPECT_EQ(t.runs_as(p2), std::nullopt);
}

TEST_F(DonationTurns, TwoProvidersAreAChoiceWhichHasAShortAllowance) {
  t.provides(p2, r1);
  t.provides(p3, r1);
  EXPECT_TRUE(is_withheld_after(milliseconds(100)));
}

TEST_F(DonationTurns, TwoProvidersWhoseWaysEndInOneThreadHaveTheAllowanceOfAnOnlyOne) {
  t.provides(p2, r1);
  t.provides(p3, r1);
  t.provides(p3, r2);
  t.blocks(p2, {r2});
  EXPECT_FALSE(is_withheld_after(milliseconds(100)));
}

TEST_F(DonationTurns, BoostsAreMeteredForTheirRequester) {
  t.provides(p2, r1);
  waits();
  ASSERT_THAT(t.panel->standing(0).metered, SizeIs(1));
  EXPECT_EQ(t.panel->standing(0).metered[0].thread, p2);
  EXPECT_EQ(t.panel->standing(0).metered[0].on_behalf_of, p1);
}

TEST_F(DonationTurns, AHintNamesAProviderWhereNoneIsKnownAndAddsToNoList) {
  t.provides(p2, r1, Evidence::sent_to);
  EXPECT_THAT(t.model.providers(r1, {}), SizeIs(1));
  t.provides(p3, r1, Evidence::sent_to);
  EXPECT_THAT(t.model.providers(r1, {}), SizeIs(1));
}

TEST_F(DonationTurns, ARequesterThatLeavesTakesItsDonationWithIt) {
  t.provides(p2, r1);
  waits();
  t.leaves(p1);
  t.turn();
  EXPECT_THAT(t.panel->grants(), IsEmpty());
  EXPECT_TRUE(t.panel->idle());
}

TEST_F(DonationTurns, AProviderThatLeavesIsReplacedByTheNext) {
  t.provides(p2, r1);
  t.provides(p3, r1);
  waits();
  t.leaves(p2);
  t.turn();
  EXPECT_EQ(t.runs_as(p3), donated(fifo(49)));
  EXPECT_EQ(t.runs_as(p2), std::nullopt);
}

TEST_F(DonationTurns, WithNothingToDoItIsIdle) {
  t.turn();
  EXPECT_TRUE(t.panel->idle());
  t.provides(p2, r1);
  waits();
  EXPECT_FALSE(t.panel->idle());
}

TEST_F(DonationTurns, AWaitForASysvQueueMakesReceiversTellCallsAtOnce) {
  t.blocks(p1, {{ResourceKind::sysv_msg, {1, 2}}});
  t.turn();
  EXPECT_TRUE(t.panel->needs_calls());
  t.pass(std::chrono::seconds(2));
  t.turn(true);
  EXPECT_FALSE(t.panel->needs_calls()) << "not for ever";
}

TEST_F(DonationTurns, AWaitThatLastsIsAskedAboutAgainAtATick) {
  const Resource lock{ResourceKind::flock, {1, 2, 1}};
  t.provides(p2, lock);
  t.blocks(p1, {lock});
  t.turn();
  t.pass(milliseconds(300));
  t.turn(true);
  EXPECT_THAT(t.questions, SizeIs(1));
}

TEST_F(DonationTurns, UsersArePayersOnlyWhereThereAreOthers) {
  Turns alone({}, {}, {.quota = true});
  alone.enroll(p1, fifo(50), 1000);
  alone.enroll(p2, nice(0), 1000);
  alone.provides(p2, r1);
  alone.blocks(p1, {r1});
  alone.turn();
  EXPECT_EQ(alone.grant(p2)->run.payer.user, 0U);
  alone.enroll(p3, nice(0), 1001);
  alone.turn();
  EXPECT_EQ(alone.grant(p2)->run.payer.user, 1000U);
}

// After lost events the observer tells the present state of all: nothing that is over stays.
TEST_F(DonationTurns, AResynchronisationEndsWhatIsOver) {
  t.provides(p2, r1);
  waits();
  t.take(Woken{.time = t.now, .thread = p1, .unrelated = true});
  t.take(Woken{.time = t.now, .thread = p2, .unrelated = true});
  t.turn();
  EXPECT_THAT(t.panel->grants(), IsEmpty());
}

}  // namespace
}  // namespace swapd::test
