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

// --- conversations

// A requester with a nice value, and two threads that answer it.
class ConversationTurns : public testing::Test {
 protected:
  ConversationTurns() {
    t.enroll(p1, nice(-10));
    for (const ThreadId id : {p2, p3, p4}) t.enroll(id, nice(0));
    for (const ThreadId id : {p2, p3}) t.provides(id, r1);
    t.provides(p4, r2);
  }
  void waits(ThreadId waiter, ThreadId provider, const Resource& through, int times) {
    for (int i = 0; i < times; ++i) {
      t.blocks(waiter, {through});
      t.turn();
      t.pass(milliseconds(10));
      t.wakes(waiter, provider, through);
      t.turn();
    }
  }
  void pass_without_news(Duration time) {
    t.pass(time);
    t.turn(true);
  }
  static SchedAttr with_slice(SchedAttr attr) {
    attr = donated(attr);
    attr.runtime_ns = 100'000;
    return attr;
  }
  Turns t;
};

TEST_F(ConversationTurns, WhoAnswersKeepsTheRequestersNiceValueBetweenTheWaits) {
  waits(p1, p2, r1, 4);
  EXPECT_EQ(t.runs_as(p2), with_slice(nice(-10))) << "no one waits just now";
  EXPECT_EQ(t.on_behalf_of(p2), p1);
  EXPECT_EQ(t.runs_as(p3), std::nullopt) << "it has answered nothing";
}

TEST_F(ConversationTurns, IsNoReasonToLetThemPastTheirLimits) {
  t.take(Conversed{.time = t.now, .thread = p1, .by = p2, .waits = 100});
  t.turn();
  EXPECT_TRUE(t.grant(p2)->run.stands);
  t.blocks(p1, {r1});
  t.turn();
  EXPECT_FALSE(t.grant(p2)->run.stands) << "an important thread waits for it";
}

TEST_F(ConversationTurns, WhoAsksKeepsItsOwnWithAShortSlice) {
  waits(p1, p2, r1, 4);
  ASSERT_NE(t.grant(p1), nullptr);
  EXPECT_TRUE(t.grant(p1)->run.slice_only);
  EXPECT_TRUE(t.grant(p1)->run.quiet);
  EXPECT_EQ(t.grant(p1)->run.attr.runtime_ns, 100'000U);
}

TEST_F(ConversationTurns, ItEndsASecondAfterTheLastToldWait) {
  waits(p1, p2, r1, 4);
  pass_without_news(milliseconds(980));
  EXPECT_NE(t.grant(p2), nullptr);
  pass_without_news(milliseconds(30));
  EXPECT_NE(t.runs_as(p2), with_slice(nice(-10)));
  EXPECT_EQ(t.grant(p1), nullptr);
}

TEST_F(ConversationTurns, AWaitInBetweenChangesNothing) {
  waits(p1, p2, r1, 4);
  t.blocks(p1, {r1});
  t.turn();
  EXPECT_EQ(t.runs_as(p2), with_slice(nice(-10)));
}

// p2 waits for p5 while p1 waits for p2.
TEST_F(ConversationTurns, WhoIsHelpedOnTheWayBelongsToIt) {
  t.enroll(p5, nice(0));
  t.provides(p5, r3);
  waits(p1, p2, r1, 4);
  t.blocks(p2, {r3});
  t.blocks(p1, {r1});
  t.turn();
  ASSERT_EQ(t.runs_as(p5), donated(nice(-10))) << "a donation, of the usual slice";
  t.wakes(p2, p5, r3);
  t.turn();
  t.wakes(p1, p2, r1);
  t.turn();
  EXPECT_EQ(t.runs_as(p5), with_slice(nice(-10)));
  EXPECT_EQ(t.on_behalf_of(p5), p1);
}

// A server waits for each of its clients; that makes them no providers of the one that matters.
TEST_F(ConversationTurns, WhoWakesTheServerHasAShortSliceAndNoMore) {
  t.enroll(p5, nice(0));
  waits(p1, p2, r1, 4);
  waits(p2, p5, r3, 1);
  ASSERT_NE(t.grant(p5), nullptr);
  EXPECT_TRUE(t.grant(p5)->run.slice_only);
  EXPECT_EQ(t.grant(p5)->run.attr.nice, 0);
}

// A room's reader: what it reads an important thread has sent, and it wakes a thread that answers.
TEST_F(ConversationTurns, WhoWakesTheServerForAnImportantThreadAnswersThatThread) {
  t.enroll(p5, nice(-10));
  t.enroll(p6, nice(0));
  waits(p1, p2, r1, 4);
  waits(p2, p6, r3, 1);
  t.take(Conversed{.time = t.now, .thread = p6, .by = p5, .waits = 100});
  t.turn();
  EXPECT_EQ(t.runs_as(p6), with_slice(nice(-10)));
  EXPECT_EQ(t.on_behalf_of(p6), p5);
}

// Else two threads that wake each other, and to which an important one sends now and then, would keep each other up.
TEST_F(ConversationTurns, WhoWakesAThreadThatOnlyServesDoesNotSupportIt) {
  t.enroll(p5, nice(0));
  t.enroll(p6, nice(0));
  waits(p1, p2, r1, 4);
  waits(p2, p6, r3, 1);
  t.take(Conversed{.time = t.now, .thread = p6, .by = p1, .waits = 100});
  t.take(Conversed{.time = t.now, .thread = p6, .by = p5, .waits = 100});
  t.turn();
  EXPECT_EQ(t.on_behalf_of(p6), p1);
  EXPECT_EQ(t.grant(p5), nullptr);
}

TEST_F(ConversationTurns, WhoReadsWhatAnotherUsersThreadSendsDoesNotWorkForIt) {
  t.enroll(p5, nice(-15), 1001);
  t.enroll(p6, nice(0));
  waits(p1, p2, r1, 4);
  waits(p2, p6, r3, 1);
  t.take(Conversed{.time = t.now, .thread = p6, .by = p5, .waits = 100});
  t.turn();
  ASSERT_NE(t.grant(p6), nullptr);
  EXPECT_TRUE(t.grant(p6)->run.slice_only);
}

TEST_F(ConversationTurns, WhoReadsWhatAnImportantThreadSendsIsLentNothingForThatAlone) {
  t.enroll(p5, nice(0));
  t.take(Conversed{.time = t.now, .thread = p5, .by = p1, .waits = 100});
  t.turn();
  EXPECT_EQ(t.grant(p5), nullptr) << "no one waits for what it does with that";
}

TEST_F(ConversationTurns, WaitsThatNobodyWasToldOfCount) {
  t.take(Conversed{.time = t.now, .thread = p1, .by = p2, .waits = 100});
  t.turn();
  EXPECT_EQ(t.runs_as(p2), with_slice(nice(-10)));
  t.take(Conversed{.time = t.now, .thread = p3, .by = p4, .waits = 100});
  t.turn();
  EXPECT_EQ(t.grant(p4), nullptr) << "who asks matters to nobody";
}

TEST_F(ConversationTurns, ARealTimeRequesterLeavesNothingBehind) {
  t.enroll(p1, fifo(50));
  waits(p1, p2, r1, 8);
  EXPECT_EQ(t.grant(p1), nullptr);
  EXPECT_EQ(t.runs_as(p2), donated(fifo(49))) << "it lingers, as after any wait, and has no slice of its own";
}

TEST_F(ConversationTurns, ThreadsThatMatterToNobodyHaveNone) {
  waits(p3, p4, r2, 8);
  EXPECT_EQ(t.grant(p3), nullptr);
  EXPECT_EQ(t.grant(p4), nullptr);
}

TEST_F(ConversationTurns, AnotherUsersThreadIsLeftAlone) {
  t.enroll(p2, nice(0), 1001);
  waits(p1, p2, r1, 4);
  EXPECT_EQ(t.grant(p2), nullptr);
}

TEST_F(ConversationTurns, AThreadWithAClassOfItsOwnIsLeftAlone) {
  SchedAttr idle;
  idle.policy = SchedPolicy::idle;
  t.enroll(p2, idle);
  waits(p1, p2, r1, 4);
  EXPECT_FALSE(t.grant(p2) != nullptr && t.grant(p2)->run.stands);
}

TEST_F(ConversationTurns, ARestoredDeciderDemandsTheSame) {
  waits(p1, p2, r1, 4);
  Turns other;
  other.now = t.now;
  other.model.restore(t.model.image());
  ASSERT_TRUE(other.panel->restore(t.panel->save()));
  for (Turns* one : {&t, &other}) {  // with a tree that grows, so that the turn has several passes
    one->enroll(p5, nice(0));
    one->provides(p5, r4);
    one->blocks(p1, {r4});
    one->turn();
  }
  EXPECT_EQ(other.runs_as(p2), with_slice(nice(-10)));
  EXPECT_TRUE(std::ranges::equal(other.panel->grants(), t.panel->grants()));
}

// Only the threads whose part has changed are found anew.
TEST_F(ConversationTurns, AfterEachChangeTheDemandsAreThoseOfADeciderThatFindsAllAnew) {
  const std::array threads{p1, p2, p3, p4, p5, p6};
  t.enroll(p5, nice(-5));
  t.enroll(p6, nice(0));
  unsigned state = 1;
  const auto any = [&](std::size_t below) { return (state = state * 1103515245U + 12345U) / 65536U % below; };
  for (int i = 0; i < 200; ++i) {
    t.pass(milliseconds(any(300)));
    t.take(Conversed{.time = t.now, .thread = threads[any(6)], .by = threads[any(6)], .waits = 100});
    t.turn(any(2) == 0);
    Turns whole;
    whole.now = t.now;
    whole.model.restore(t.model.image());
    ASSERT_TRUE(whole.panel->restore(t.panel->save()));
    t.turn();
    whole.turn();
    ASSERT_TRUE(std::ranges::equal(whole.panel->grants(), t.panel->grants())) << i;
  }
}

TEST_F(ConversationTurns, ItEndsWithItsRequester) {
  waits(p1, p2, r1, 4);
  t.leaves(p1);
  t.turn();
  EXPECT_EQ(t.grant(p2), nullptr);
}

TEST(DonationWithoutConversations, LeavesNothingBetweenTheWaits) {
  decide::DonationConfig config;
  config.rules.conversation = {};
  Turns t({}, {}, config);
  t.enroll(p1, nice(-10));
  t.enroll(p2, nice(0));
  t.provides(p2, r1);
  for (int i = 0; i < 8; ++i) {
    t.blocks(p1, {r1});
    t.turn();
    t.pass(milliseconds(10));
    t.wakes(p1, p2, r1);
    t.turn();
  }
  EXPECT_EQ(t.grant(p1), nullptr);
}

}  // namespace
}  // namespace swapd::test
