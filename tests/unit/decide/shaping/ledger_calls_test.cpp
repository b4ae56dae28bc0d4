// Calls: what they reserve, how long they are held, what is settled.
#include "unit/decide/shaping/ledger_fixture.h"

namespace swapd::test {
namespace {

class LedgerCalls : public LedgerTest {};

TEST_F(LedgerCalls, GoOnWhileTheBucketHoldsTokens) {
  Caller a = thread(1);
  EXPECT_FALSE(at_gate(a, read(full)).waits);
  EXPECT_EQ(level(), 0);
}

TEST_F(LedgerCalls, WaitForATokenWhenTheBucketIsEmpty) {
  empty_bucket();
  Caller a = thread(1);
  const auto verdict = at_gate(a, read(10));
  EXPECT_TRUE(verdict.waits);
  EXPECT_EQ(delay(verdict), us(1));
}

TEST_F(LedgerCalls, AreServedInTheOrderInWhichTheyCome) {
  empty_bucket();
  Caller a = thread(1), b = thread(2), c = thread(3);
  EXPECT_EQ(delay(at_gate(a, read(300))), us(1));
  EXPECT_EQ(delay(at_gate(b, write(200))), us(301));
  EXPECT_EQ(delay(at_gate(c, read(1))), us(501));
}

TEST_F(LedgerCalls, ThatAreGivenUpLetLaterOnesComeEarlier) {
  empty_bucket();
  Caller a = thread(1), b = thread(2);
  (void)at_gate(a, read(300));
  (void)at_gate(b, read(200));
  ledger.end_delay(*a.call, false, now);
  EXPECT_EQ(delay(b), us(1));
}

TEST_F(LedgerCalls, DoNotWaitForAnotherClass) {
  set(of_disks(), "d");
  empty_bucket();
  Caller a = thread(1);
  EXPECT_FALSE(at_gate(a, read(10), {}, "d").waits);
}

TEST_F(LedgerCalls, DoNotWaitForAnotherDevice) {
  empty_bucket();
  Caller a = thread(1), b = thread(2);
  EXPECT_FALSE(at_gate(a, read(10, other_disk)).waits);
  EXPECT_FALSE(at_gate(b, read(10, link)).waits) << "networks have no limit";
}

TEST_F(LedgerCalls, ThatAreNotChargedReserveNothing) {
  Caller a = thread(1);
  settle(a, {});
  EXPECT_EQ(a.call, nullptr);
  EXPECT_TRUE(ledger.classes().accounts("c", now).empty());
}

TEST_F(LedgerCalls, ThatMoveNothingAreNotHeld) {
  empty_bucket();
  Caller a = thread(1);
  EXPECT_FALSE(at_gate(a, WantedCall{}).waits);
  EXPECT_EQ(a.call, nullptr);
}

TEST_F(LedgerCalls, HaveGivenBackWhatTheyDidNotMove) {
  Caller a = thread(1);
  (void)at_gate(a, read(50'000));
  settle(a, has_read(10'000));
  EXPECT_EQ(level(), full - 10'000);
}

TEST_F(LedgerCalls, KeepOneTokenThatMoveNothing) {
  Caller a = thread(1);
  (void)at_gate(a, read(50'000));
  settle(a, {});
  EXPECT_EQ(level(), full - 1);
}

TEST_F(LedgerCalls, OweWhatTheyMovedBesides) {
  Caller a = thread(1);
  (void)at_gate(a, read(10'000));
  settle(a, has_read(30'000));
  EXPECT_EQ(level(), full - 30'000);
}

TEST_F(LedgerCalls, AreSettledBeforeTheNextOneReserves) {
  Caller a = thread(1);
  (void)at_gate(a, read(full));
  EXPECT_FALSE(at_gate(a, read(10), has_read(100)).waits);
  EXPECT_EQ(level(), full - 100 - 10);
}

TEST_F(LedgerCalls, AreSettledOnce) {
  Caller a = thread(1);
  (void)at_gate(a, read(1'000));
  settle(a, has_read(1'000));
  settle(a, {});
  EXPECT_EQ(level(), full - 1'000);
  EXPECT_EQ(account().calls, 1U);
}

TEST_F(LedgerCalls, WithTwoTransfersWaitForBothDevices) {
  ClassLimits limits = of_disks();
  limits.networks.both = limit();
  set(limits);
  Caller sender = thread(1), greedy = thread(2);
  (void)at_gate(greedy, write(full, link));
  WantedCall sendfile = read(100);
  sendfile.add({.device = link, .direction = IoDirection::write, .cost = 100});
  EXPECT_EQ(delay(at_gate(sender, sendfile)), us(1));
  CallerMoved moved = has_read(100);
  moved.disk.written_chars = 100;
  settle(sender, moved);
  EXPECT_EQ(account(disk).bytes[0], 100);
  EXPECT_EQ(account(link).bytes[1], 100);
}

TEST_F(LedgerCalls, AreCountedByDirection) {
  Caller a = thread(1);
  (void)at_gate(a, read(100));
  (void)at_gate(a, write(70), has_read(100));
  settle(a, has_written(60));
  EXPECT_EQ(account().bytes[0], 100);
  EXPECT_EQ(account().bytes[1], 60);
  EXPECT_EQ(account().calls, 2U);
}

TEST_F(LedgerCalls, ThatNoBucketLimitsAreCountedAllTheSame) {
  Caller a = thread(1);
  (void)at_gate(a, write(5'000, link));
  CallerMoved moved;
  moved.traffic_is_counted = true;
  moved.traffic.sent = 4'000;
  settle(a, moved);
  EXPECT_EQ(account(link).bytes[1], 4'000);
}

TEST_F(LedgerCalls, OfADryRunTakeTheirTokensAndAreNotHeld) {
  Ledger dry{{.slice = ms(100), .dry_run = true}};
  dry.classes().set("c", of_disks(), false, now);
  Caller a = thread(1), b = thread(2);
  const WantedCall all = read(full);
  (void)dry.settle_and_reserve(a, dry.classes().find("c"), {}, &all, now);
  const auto verdict = dry.settle_and_reserve(b, dry.classes().find("c"), {}, &all, now);
  EXPECT_FALSE(verdict.waits);
  EXPECT_EQ(verdict.due, now + us(1));
  EXPECT_EQ(dry.held().count(), 0U);
  EXPECT_EQ(dry.classes().accounts("c", now).at(0).both.bytes, -full);
}

// ---- calls that are held ----

TEST_F(LedgerCalls, AreKnownWhileTheyAreHeld) {
  empty_bucket();
  Caller a = thread(1);
  (void)at_gate(a, read(10));
  EXPECT_TRUE(ledger.held().holds(1));
  EXPECT_TRUE(a.call->held);
  ledger.forget_delay(*a.call);
  EXPECT_FALSE(ledger.held().holds(1));
  EXPECT_FALSE(a.call->held);
}

TEST_F(LedgerCalls, AreDueWhenTheirTokensHaveCome) {
  empty_bucket();
  Caller a = thread(1), b = thread(2);
  (void)at_gate(a, read(300));
  (void)at_gate(b, read(300));
  now += us(300);
  EXPECT_EQ(delay(b), us(1));
  now += us(1);
  EXPECT_EQ(delay(b), Duration::zero());
}

TEST_F(LedgerCalls, HaveTheirDelayInTheAccount) {
  empty_bucket();
  Caller a = thread(1);
  (void)at_gate(a, read(10));
  ledger.end_delay(*a.call, true, now + ms(5));
  now += ms(5);
  settle(a, has_read(10));
  EXPECT_EQ(account().delayed, 1U);
  EXPECT_EQ(account().waited, ms(5));
}

TEST_F(LedgerCalls, GiveTheirTokensBackWhenTheirThreadIsKilled) {
  empty_bucket();
  Caller a = thread(1);
  (void)at_gate(a, read(10));
  EXPECT_EQ(level(), -10);
  ledger.end_delay(*a.call, false, now);
  EXPECT_EQ(level(), 0);
  settle(a, {});
  EXPECT_EQ(level(), 0) << "once";
  EXPECT_EQ(account().bytes[0], 0);
}

TEST_F(LedgerCalls, ThatAreSettledGiveNothingBackAfterwards) {
  empty_bucket();
  Caller a = thread(1);
  (void)at_gate(a, read(10));
  const auto held = a.call;
  settle(a, has_read(10));
  ledger.end_delay(*held, false, now);
  EXPECT_EQ(level(), -10);
}

TEST_F(LedgerCalls, OfOneThreadMayBeHeldBeforeTheDelayOfTheLastHasEnded) {
  empty_bucket();
  Caller a = thread(1);
  (void)at_gate(a, read(10));
  const auto first = a.call;
  (void)at_gate(a, read(10), has_read(10));
  ASSERT_NE(a.call, first) << "its memory is in use yet";
  ledger.forget_delay(*first);
  EXPECT_TRUE(ledger.held().holds(1));
  EXPECT_TRUE(a.call->held);
}

TEST_F(LedgerCalls, ThatAreLargeTakeTheirTokensTurnByTurn) {
  Caller large = thread(1), small = thread(2);
  const auto verdict = at_gate(large, read(1'000'000));
  EXPECT_TRUE(verdict.by_turns);
  EXPECT_EQ(level(), -10'000) << "all there is, and the share of one turn after it";
  const Duration of_small = delay(at_gate(small, read(10)));
  EXPECT_EQ(of_small, us(10'001)) << "between two turns";
  Duration of_large{};
  while (delay(large) > Duration::zero()) {
    of_large += delay(large);
    now += delay(large);
  }
  EXPECT_GE(of_large, ms(790)) << "a tenth of a second ahead of what it moves, and what was there";
}

// ---- limits that change ----

class LimitsThatChange : public LedgerTest {
 protected:
  void SetUp() override {
    LedgerTest::SetUp();
    empty_bucket();
    Caller before = thread(1);
    (void)at_gate(before, read(50'000));
    (void)at_gate(held, read(10));
    EXPECT_EQ(delay(held), us(50'001));
  }
  Caller held = thread(2);
};

TEST_F(LimitsThatChange, HoldAtOnceForHeldCallsWhenTheyRise) {
  set(of_disks(limit(10'000'000)));
  EXPECT_EQ(delay(held), std::chrono::nanoseconds(5'000'100));
}

TEST_F(LimitsThatChange, HoldAtOnceForHeldCallsWhenTheySink) {
  set(of_disks(limit(100'000)));
  EXPECT_EQ(delay(held), us(500'010));
}

TEST_F(LimitsThatChange, LetHeldCallsGoWhenThereAreNone) {
  set({});
  EXPECT_EQ(delay(held), Duration::zero());
}

TEST_F(LimitsThatChange, LetHeldCallsGoWithTheirClass) {
  EXPECT_TRUE(ledger.classes().remove("c"));
  EXPECT_EQ(delay(held), Duration::zero());
  EXPECT_FALSE(ledger.classes().remove("c"));
}

TEST_F(LimitsThatChange, AreNotThoseOfTheNextClassWithThatNumber) {
  ledger.classes().remove("c");
  set(of_disks(limit(1)), "d");
  empty_bucket_of("d");
  EXPECT_EQ(delay(held), Duration::zero());
}

TEST_F(LimitsThatChange, CallsUnderAViewOfBeforeReserveInTheClassOfNow) {
  const auto before = view();
  set(of_disks(limit(10'000'000)));
  Caller a = thread(3);
  const WantedCall want = read(1);
  const auto verdict = ledger.settle_and_reserve(a, before, {}, &want, now);
  EXPECT_EQ(delay(verdict), std::chrono::nanoseconds(5'001'100));
}

TEST_F(LimitsThatChange, CallsOfAClassThatIsNoMoreGoOn) {
  const auto before = view();
  ledger.classes().remove("c");
  Caller a = thread(3);
  const WantedCall want = read(1);
  EXPECT_FALSE(ledger.settle_and_reserve(a, before, {}, &want, now).waits);
  EXPECT_EQ(a.call, nullptr);
}

TEST_F(LimitsThatChange, AutomaticOnesAreTheLowerOfTheTwo) {
  EXPECT_TRUE(ledger.classes().set_automatic("c", 200'000, now));
  EXPECT_EQ(account().both.limit.bytes, 200'000);
  EXPECT_TRUE(ledger.classes().set_automatic("c", 5'000'000, now));
  EXPECT_EQ(account().both.limit.bytes, 1'000'000);
  EXPECT_TRUE(ledger.classes().set_automatic("c", std::nullopt, now));
  EXPECT_EQ(account().both.limit.bytes, 1'000'000);
}

TEST_F(LimitsThatChange, AutomaticOnesOutliveTheClasssOwn) {
  ledger.classes().set_automatic("c", 200'000, now);
  set(of_disks(limit(3'000'000)));
  EXPECT_EQ(account().both.limit.bytes, 200'000);
}

TEST_F(LimitsThatChange, AnAutomaticOneHasNoLargeBurst) {
  ledger.classes().set_automatic("c", 200'000, now);
  EXPECT_EQ(account().both.limit.burst, std::nullopt);
}

TEST_F(LimitsThatChange, AnAutomaticOneThatIsTheSameChangesNothing) {
  ledger.classes().set_automatic("c", 200'000, now);
  EXPECT_FALSE(ledger.classes().set_automatic("c", 200'000, now));
  EXPECT_FALSE(ledger.classes().set_automatic("none", 200'000, now));
}

TEST_F(LimitsThatChange, WhatIsOwedIsCutToTwoSecondsOfAnAutomaticOne) {
  ledger.classes().set_automatic("c", 10'000, now);
  EXPECT_EQ(level(), -20'000);
}

}  // namespace
}  // namespace swapd::test
