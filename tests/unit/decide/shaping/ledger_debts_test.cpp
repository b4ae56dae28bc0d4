// Debts of threads, favoured threads, and what becomes of both when a thread ends or changes its class.
#include "unit/decide/shaping/ledger_fixture.h"

namespace swapd::test {
namespace {

using Settles = decide::Ledger::Settles;

// A thread has moved 2,000,000 by a call that was thought to move one: the class takes what it may owe, the rest is the
// thread's.
class LedgerDebts : public LedgerTest {
 protected:
  static constexpr Tokens moved = 2'000'000, of_thread = moved - full - most_owed;
  void get_into_debt() {
    (void)at_gate(debtor, read(1));
    settle(debtor, has_read(moved));
  }
  Caller debtor = thread(1), other = thread(2);
};

TEST_F(LedgerDebts, TheClassOwesHalfASecondAtMost) {
  get_into_debt();
  EXPECT_EQ(level(), -most_owed);
  EXPECT_EQ(debtor.debts->rest(), of_thread);
}

TEST_F(LedgerDebts, OtherThreadsDoNotPayForTheDebtor) {
  get_into_debt();
  EXPECT_EQ(delay(at_gate(other, read(1))), us(most_owed + 1));
}

TEST_F(LedgerDebts, TheDebtorPaysBeforeItsNextCall) {
  get_into_debt();
  const auto verdict = at_gate(debtor, read(1));
  EXPECT_TRUE(verdict.waits);
  EXPECT_TRUE(verdict.by_turns);
  Duration paid{};
  while (delay(debtor) > Duration::zero()) {
    paid += delay(debtor);
    now += delay(debtor);
  }
  EXPECT_GE(paid, us(most_owed + of_thread));
  EXPECT_LE(paid, us(most_owed + of_thread + 100));
  EXPECT_TRUE(debtor.debts->empty());
}

TEST_F(LedgerDebts, ACallThatMovesNothingDoesNotWaitForWhatCallsMoved) {
  get_into_debt();
  EXPECT_FALSE(at_gate(debtor, WantedCall{}).waits);
}

TEST_F(LedgerDebts, ACallThatMovesNothingWaitsForPages) {
  EXPECT_TRUE(at_gate(debtor, WantedCall{}, has_paged(moved)).waits);
  EXPECT_GT(delay(debtor), Duration::zero());
}

TEST_F(LedgerDebts, TheDelayOfACallThatMovesNothingIsInTheAccount) {
  (void)at_gate(debtor, WantedCall{}, has_paged(moved));
  ledger.end_delay(*debtor.call, true, now + ms(7));
  settle(debtor, {});
  EXPECT_EQ(account().delayed, 1U);
  EXPECT_EQ(account().waited, ms(7));
  EXPECT_EQ(account().calls, 0U);
}

TEST_F(LedgerDebts, AreShownUntilTheyArePaid) {
  get_into_debt();
  (void)at_gate(debtor, read(1));
  const auto shown = ledger.debts("c");
  ASSERT_EQ(shown.size(), 1U);
  EXPECT_EQ(shown[0].tid, 1);
  EXPECT_EQ(shown[0].device, disk);
  EXPECT_EQ(shown[0].bytes, of_thread);
  now += std::chrono::seconds(3);
  while (delay(debtor) > Duration::zero()) now += delay(debtor);
  EXPECT_TRUE(ledger.debts("c").empty());
}

TEST_F(LedgerDebts, AreWrittenOffWhenTheirThreadEnds) {
  get_into_debt();
  (void)at_gate(debtor, read(1));
  ledger.forget(debtor);
  EXPECT_EQ(account().written_off, of_thread);
  EXPECT_TRUE(ledger.debts("c").empty());
  EXPECT_TRUE(debtor.debts->empty());
}

TEST_F(LedgerDebts, AreNotThoseOfALaterThreadWithTheSameId) {
  get_into_debt();
  (void)at_gate(debtor, read(1));
  Caller later = thread(1);
  (void)at_gate(later, read(1));
  later.debts->add(debtor.debts->all().front().reservation, false);
  (void)at_gate(later, read(1));
  ledger.forget(debtor);
  EXPECT_FALSE(ledger.debts("c").empty()) << "the later thread's";
}

TEST_F(LedgerDebts, StayWithTheClassThatTheThreadLeaves) {
  set(of_disks(), "d");
  get_into_debt();
  EXPECT_FALSE(at_gate(debtor, read(1), {}, "d").waits);
  EXPECT_EQ(account().written_off, of_thread);
  EXPECT_EQ(level("d"), full - 1);
}

TEST_F(LedgerDebts, StayWithTheThreadWhenItsClassChangesItsLimits) {
  get_into_debt();
  set(of_disks(limit(2'000'000)));
  EXPECT_TRUE(at_gate(debtor, read(1)).waits);
  EXPECT_EQ(account().written_off, 0);
}

TEST_F(LedgerDebts, AreGoneWithTheLimit) {
  get_into_debt();
  set({});
  EXPECT_FALSE(at_gate(debtor, read(1)).waits);
  EXPECT_TRUE(debtor.debts->empty());
}

// ---- a thread ends, or another takes its id ----

TEST_F(LedgerDebts, TheLastCallOfAThreadIsSettledAfterItsEnd) {
  (void)at_gate(debtor, read(10));
  CallerMoved last = has_read(70);
  last.has_ended = true;
  ledger.settle_last(debtor, last, Settles::all, now);
  EXPECT_EQ(account().bytes[0], 70);
  EXPECT_EQ(level(), full - 70);
}

TEST_F(LedgerDebts, AThreadThatEndsInADelayHasMadeNoCall) {
  empty_bucket();
  (void)at_gate(debtor, read(10));
  CallerMoved last;
  last.has_ended = true;
  ledger.settle_last(debtor, last, Settles::all, now);
  EXPECT_EQ(level(), 0);
  EXPECT_EQ(account().calls, 0U);
}

TEST_F(LedgerDebts, AThreadThatIsReleasedHasMadeTheCallThatWasHeld) {
  empty_bucket();
  (void)at_gate(debtor, read(10));
  ledger.settle_last(debtor, has_read(10), Settles::call, now);
  EXPECT_EQ(level(), -10);
}

TEST_F(LedgerDebts, AThreadThatIsReleasedPaysNoPages) {
  (void)at_gate(debtor, WantedCall{});
  ledger.settle_last(debtor, has_paged(1'000), Settles::call, now);
  EXPECT_EQ(account().mapped, 0);
  ledger.settle_last(debtor, has_paged(1'000), Settles::all, now);
  EXPECT_EQ(account().mapped, 1'000);
}

TEST_F(LedgerDebts, WhenAnotherThreadExecsIntoTheIdTheLastCallWasNotMade) {
  (void)at_gate(debtor, read(50'000));
  CallerMoved exec;
  exec.anew = exec.another_thread = true;
  settle(debtor, exec);
  EXPECT_EQ(level(), full);
  EXPECT_EQ(account().calls, 0U);
}

// ---- favoured threads ----

TEST_F(LedgerDebts, AFavouredThreadIsNotHeld) {
  empty_bucket();
  ledger.held().favour(1, true);
  EXPECT_FALSE(at_gate(debtor, read(50'000)).waits);
  ledger.held().favour(1, false);
  EXPECT_TRUE(at_gate(debtor, read(1)).waits);
}

TEST_F(LedgerDebts, AFavouredThreadsCallIsADebtWhenItHasMoved) {
  empty_bucket();
  ledger.held().favour(1, true);
  (void)at_gate(debtor, read(50'000));
  EXPECT_EQ(level(), 0) << "postponed: others do not wait for it";
  settle(debtor, has_read(50'000));
  EXPECT_NEAR(static_cast<double>(level()), -50'000.0, 1.0);
}

TEST_F(LedgerDebts, AFavouredThreadIsHeldWhereItsClassSaysSo) {
  ClassLimits limits = of_disks();
  limits.favoured_wait = true;
  set(limits);
  empty_bucket();
  ledger.held().favour(1, true);
  EXPECT_TRUE(at_gate(debtor, read(50'000)).waits);
  EXPECT_GT(delay(debtor), Duration::zero());
  EXPECT_FALSE(ledger.held().would_run(1));
}

TEST_F(LedgerDebts, AHeldCallGoesOnWhenItsThreadIsFavoured) {
  empty_bucket();
  (void)at_gate(debtor, read(50'000));
  EXPECT_TRUE(ledger.held().would_run(1));
  EXPECT_TRUE(ledger.held().favour(1, true).held) << "so that it is looked at now";
  EXPECT_EQ(delay(debtor), Duration::zero());
  EXPECT_EQ(level(), 0) << "its tokens come back, for those behind it";
}

// ---- signals ----

TEST_F(LedgerDebts, ACallThatASignalLetGoMakesTheNextOneMorePatient) {
  empty_bucket();
  for (const Duration patience : {ms(200), ms(400), ms(800), ms(1'600), ms(2'000), ms(2'000)}) {
    (void)at_gate(debtor, read(10));
    Ledger::disturb_delay(*debtor.call, 1U << 3U);
    ledger.end_delay(*debtor.call, true, now);
    settle(debtor, has_read(10));
    EXPECT_EQ(debtor.disturbed.signals, 1U << 3U);
    EXPECT_EQ(debtor.disturbed.patience, patience);
  }
}

TEST_F(LedgerDebts, ACallThatWaitedForItsTimeEndsThePatience) {
  empty_bucket();
  (void)at_gate(debtor, read(10));
  Ledger::disturb_delay(*debtor.call, 1);
  ledger.end_delay(*debtor.call, true, now);
  (void)at_gate(debtor, read(10), has_read(10));
  ledger.end_delay(*debtor.call, true, now + ms(99));
  settle(debtor, has_read(10));
  EXPECT_EQ(debtor.disturbed.patience, ms(200)) << "less than a slice";
  empty_bucket();
  (void)at_gate(debtor, read(10));
  ledger.end_delay(*debtor.call, true, now + ms(100));
  settle(debtor, has_read(10));
  EXPECT_EQ(debtor.disturbed.patience, Duration::zero());
  EXPECT_EQ(debtor.disturbed.signals, 0U);
}

TEST_F(LedgerDebts, PatienceEndsWhenThereWasNoSignalForTwiceAsLong) {
  (void)at_gate(debtor, read(10));
  Ledger::disturb_delay(*debtor.call, 1);
  (void)at_gate(debtor, read(10), has_read(10));
  now += ms(400);
  (void)at_gate(debtor, read(10), has_read(10));
  EXPECT_EQ(debtor.disturbed.patience, ms(200));
  now += ms(1);
  (void)at_gate(debtor, read(10), has_read(10));
  EXPECT_EQ(debtor.disturbed.patience, Duration::zero());
}

}  // namespace
}  // namespace swapd::test
