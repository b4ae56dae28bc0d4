// Conversations as the donation decider has them: who keeps what between the waits.
#include <gmock/gmock.h>

#include "unit/decide/turns.h"

namespace swapd::test {
namespace {

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

// One connection of many: its slot names the thread that has woken it last, and theirs name it each time.
TEST_F(ConversationTurns, WhoAnswersOnceAndIsSentWorkAllTheTimeAnswers) {
  for (const ThreadId one : {p2, p3}) {
    t.take(Conversed{.time = t.now, .thread = p1, .by = one, .waits = 1});
    t.take(Conversed{.time = t.now, .thread = one, .by = p1, .waits = 50});
    t.turn();
  }
  for (const ThreadId one : {p2, p3}) EXPECT_EQ(t.runs_as(one), with_slice(nice(-10)));
}

TEST_F(ConversationTurns, WhoAsksKeepsItsOwnWithAShortSlice) {
  waits(p1, p2, r1, 4);
  ASSERT_NE(t.grant(p1), nullptr);
  EXPECT_TRUE(t.grant(p1)->run.slice_only);
  EXPECT_TRUE(t.grant(p1)->run.quiet);
  EXPECT_EQ(t.grant(p1)->run.attr.runtime_ns, 100'000U);
}

// The thread that it spins for would get no CPU between the waits either.
TEST_F(ConversationTurns, WhoSpinsLeavesItUntilItComputes) {
  waits(p1, p2, r1, 4);
  t.blocks(p1, {r1});
  t.turn();
  for (int i = 0; i < 2; ++i) {
    t.panel->on(decide::Judged{t.now, p2, decide::SpinJudge::Verdict::spins});
    t.turn();
  }
  EXPECT_TRUE(t.grant(p2)->run.withheld);
  t.wakes(p1, p2, r1);
  t.turn();
  waits(p1, p2, r1, 8);
  EXPECT_NE(t.runs_as(p2), with_slice(nice(-10)));
  t.panel->on(decide::Judged{t.now, p2, decide::SpinJudge::Verdict::computes});
  waits(p1, p2, r1, 4);
  EXPECT_EQ(t.runs_as(p2), with_slice(nice(-10)));
}

// p2 answers p1. p5 waits for p2, too, which brings p5 nothing: that is no news about p1.
TEST_F(ConversationTurns, ABoostThatIsWithheldForOneRequesterLeavesTheOthersConversation) {
  t.enroll(p5, nice(-10));
  t.provides(p2, r3);
  waits(p1, p2, r1, 4);
  ASSERT_EQ(t.runs_as(p2), with_slice(nice(-10)));
  t.blocks(p5, {r3});
  t.turn();
  t.pass(milliseconds(490));
  t.panel->on(decide::CpuUsed{t.now, p2, p5, milliseconds(490)});
  t.turn();
  EXPECT_EQ(t.runs_as(p2), with_slice(nice(-10))) << "it stands for p1";
  t.wakes(p5, p3, r3);
  t.turn();
  EXPECT_EQ(t.runs_as(p2), with_slice(nice(-10)));
  EXPECT_EQ(t.on_behalf_of(p2), p1);
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
