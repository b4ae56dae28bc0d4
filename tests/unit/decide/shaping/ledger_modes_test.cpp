// The ways in which calls count: by calls or by the disk, operations, connections, calls that are settled together.
#include "unit/decide/shaping/ledger_fixture.h"

namespace swapd::test {
namespace {

using Amount = decide::CallKind::Amount;
using Told = decide::CallKind::Told;

class LedgerModes : public LedgerTest {
 protected:
  void in_device_mode() {
    ClassLimits limits = of_disks();
    limits.mode = ShapeMode::device;
    set(limits);
  }
  void limit_networks() {
    ClassLimits limits = of_disks();
    limits.networks.both = limit();
    set(limits);
  }
  void count_operations(Tokens rate) {
    ClassLimits limits;
    limits.disks.both.operations = rate;
    set(limits);
  }
  // 500 by calls, of which the disk moved 200.
  static CallerMoved partly_cached() {
    CallerMoved out;
    out.disk.read_chars = 500;
    out.disk.read_bytes = 200;
    return out;
  }
  Caller a = thread(1);
};

TEST_F(LedgerModes, InLogicalModeCallsCount) {
  (void)at_gate(a, read(1'000));
  settle(a, partly_cached());
  EXPECT_EQ(account().bytes[0], 500);
  EXPECT_EQ(account().cached, 300);
  EXPECT_EQ(level(), full - 500);
}

TEST_F(LedgerModes, InDeviceModeWhatComesFromMemoryIsFree) {
  in_device_mode();
  (void)at_gate(a, read(1'000));
  settle(a, partly_cached());
  EXPECT_EQ(account().bytes[0], 200);
  EXPECT_EQ(account().cached, 300);
  EXPECT_EQ(level(), full - 200);
}

TEST_F(LedgerModes, OfACallThatTheDiskTellsOfNothingElseCounts) {
  (void)at_gate(a, read(1'000, disk, {.told = Told::by_disk}));
  settle(a, partly_cached());
  EXPECT_EQ(account().bytes[0], 200);
}

TEST_F(LedgerModes, ACallThatNothingTellsOfIsChargedWhatItAskedFor) {
  (void)at_gate(a, read(1'000, disk, {.told = Told::by_none}));
  settle(a, {});
  EXPECT_EQ(account().bytes[0], 1'000);
}

TEST_F(LedgerModes, ASubmissionIsChargedWhatEachOfItsRequestsAskedFor) {
  WantedCall want = read(300, disk, {.amount = Amount::submission, .told = Told::by_none});
  want.add({.device = other_disk, .direction = IoDirection::write, .cost = 200});
  (void)at_gate(a, want);
  settle(a, {});
  EXPECT_EQ(account(disk).bytes[0], 300);
  EXPECT_EQ(account(other_disk).bytes[1], 200);
}

TEST_F(LedgerModes, ASyncMovesNothingOfItsOwn) {
  (void)at_gate(a, write(1, disk, {.amount = Amount::nothing}));
  settle(a, has_written(5'000));
  EXPECT_EQ(account().bytes[1], 0);
  EXPECT_EQ(account().calls, 1U);
}

TEST_F(LedgerModes, ACallAboutAnEntryMovesBytesInDeviceModeAlone) {
  (void)at_gate(a, read(1, disk, {.amount = Amount::entry}));
  settle(a, has_read(4'096));
  EXPECT_EQ(account().bytes[0], 0);
  in_device_mode();
  (void)at_gate(a, read(1, disk, {.amount = Amount::entry}));
  settle(a, has_read(4'096));
  EXPECT_EQ(account().bytes[0], 4'096);
}

// ---- operations ----

TEST_F(LedgerModes, EachCallIsOneOperation) {
  count_operations(100);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(at_gate(a, read(1 << 20), has_read(i == 0 ? 0 : 1 << 20)).waits) << i;
  EXPECT_EQ(delay(at_gate(a, read(1), has_read(1 << 20))), ms(10));
}

TEST_F(LedgerModes, AnOperationIsNotGivenBack) {
  count_operations(100);
  (void)at_gate(a, read(1'000));
  settle(a, {});
  EXPECT_EQ(account().both.operations, 4);
}

TEST_F(LedgerModes, AnOperationThatWasNotMadeIsGivenBack) {
  count_operations(100);
  for (int i = 0; i < 6; ++i) (void)at_gate(a, read(1));
  ledger.end_delay(*a.call, false, now);
  EXPECT_EQ(account().both.operations, 0);
}

TEST_F(LedgerModes, ASyncIsAnOperation) {
  count_operations(100);
  (void)at_gate(a, write(1, disk, {.amount = Amount::nothing}));
  EXPECT_EQ(account().both.operations, 4);
}

// ---- connections ----

TEST_F(LedgerModes, AReceiverIsChargedWhatItHasReceived) {
  limit_networks();
  (void)at_gate(a, read(1, link));
  CallerMoved moved;
  moved.traffic_is_counted = true;
  moved.traffic.received = 5'000;
  settle(a, moved);
  EXPECT_EQ(account(link).bytes[0], 5'000);
  EXPECT_EQ(account(link).both.bytes, full - 5'000);
}

TEST_F(LedgerModes, WhereTrafficIsNotCountedCallsCount) {
  limit_networks();
  (void)at_gate(a, read(1, link));
  CallerMoved moved;
  moved.disk.read_chars = 700;
  settle(a, moved);
  EXPECT_EQ(account(link).bytes[0], 700);
}

TEST_F(LedgerModes, WhereTrafficIsNotCountedARingsIsNot) {
  limit_networks();
  (void)at_gate(a, read(1, link, {.amount = Amount::ring, .told = Told::by_disk}));
  CallerMoved moved;
  moved.disk.read_chars = 700;
  settle(a, moved);
  EXPECT_EQ(account(link).bytes[0], 0);
}

TEST_F(LedgerModes, TrafficWithoutACallIsOfAnUnknownLink) {
  limit_networks();
  CallerMoved moved;
  moved.traffic_is_counted = true;
  moved.traffic = {.received = 30, .sent = 50};
  settle(a, moved);
  EXPECT_EQ(account(unknown_link).mapped, 80);
}

TEST_F(LedgerModes, TrafficOfACallIsNotChargedTwice) {
  limit_networks();
  (void)at_gate(a, write(50, link));
  CallerMoved moved;
  moved.traffic_is_counted = true;
  moved.traffic.sent = 50;
  settle(a, moved);
  EXPECT_EQ(account(unknown_link).mapped, 0);
}

// ---- calls that are settled together ----

class JoinedCalls : public LedgerModes {
 protected:
  bool joins(const WantedCall& want) { return ledger.join_last(a, want, now); }
};

TEST_F(JoinedCalls, AreSettledAsTheirSum) {
  EXPECT_TRUE(at_gate(a, read(1'000)).spares);
  EXPECT_TRUE(joins(read(500)));
  EXPECT_EQ(level(), full - 1'500);
  settle(a, has_read(1'200));
  EXPECT_EQ(level(), full - 1'200);
  EXPECT_EQ(account().calls, 2U);
}

TEST_F(JoinedCalls, AreEightAtMost) {
  (void)at_gate(a, read(10));
  for (int i = 1; i < 8; ++i) EXPECT_TRUE(joins(read(10))) << i;
  EXPECT_FALSE(joins(read(10)));
  EXPECT_EQ(level(), full - 80);
}

TEST_F(JoinedCalls, AreNotLongAfterTheLastSettlement) {
  (void)at_gate(a, read(10));
  now += ms(10);
  EXPECT_TRUE(joins(read(10)));
  now += us(1);
  EXPECT_FALSE(joins(read(10)));
}

TEST_F(JoinedCalls, LeaveHalfOfTheBucket) {
  EXPECT_TRUE(at_gate(a, read(49'000)).spares);
  EXPECT_FALSE(joins(read(1'001)));
  EXPECT_EQ(level(), full - 49'000) << "nothing is kept";
  EXPECT_TRUE(joins(read(1'000)));
}

TEST_F(JoinedCalls, AreNotTriedWhereLessThanHalfIsLeft) { EXPECT_FALSE(at_gate(a, read(50'001)).spares); }

TEST_F(JoinedCalls, AreOfOneDeviceAndDirection) {
  (void)at_gate(a, read(10));
  EXPECT_FALSE(joins(read(10, other_disk)));
  EXPECT_FALSE(joins(write(10)));
  EXPECT_FALSE(joins(write(10, link)));
  EXPECT_TRUE(joins(read(10)));
}

TEST_F(JoinedCalls, KeepRoomInDeviceModeForWhatIsReadAhead) {
  in_device_mode();
  (void)at_gate(a, read(10));
  EXPECT_FALSE(joins(read(10)));
  ClassLimits limits = of_disks(limit(1'000'000'000, 4 * decide::moves_besides));
  limits.mode = ShapeMode::device;
  set(limits);
  now += std::chrono::seconds(1);
  (void)at_gate(a, read(10), has_read(10));
  EXPECT_FALSE(joins(read(10))) << "two calls: twice as much";
  limits.disks.both.burst = 5 * decide::moves_besides;
  set(limits);
  now += std::chrono::seconds(1);
  (void)at_gate(a, read(10), has_read(10));
  EXPECT_TRUE(joins(read(10)));
}

TEST_F(JoinedCalls, AreNotThoseOfAThreadThatOwes) {
  (void)at_gate(a, read(10));
  decide::Reservation debt = a.call->reservation;
  debt.places[0].rest = 5;
  a.debts->add(debt, true);
  EXPECT_FALSE(joins(read(10)));
}

TEST_F(JoinedCalls, AreNotThoseThatMayMoveMoreThanIsKnown) {
  (void)at_gate(a, read(10));
  WantedCall unknown = read(10);
  unknown.known = false;
  EXPECT_FALSE(joins(unknown));
  limit_networks();
  (void)at_gate(a, read(1, link), has_read(10));
  EXPECT_FALSE(joins(read(1, link))) << "a receiver's";
  (void)at_gate(a, write(1, link));
  EXPECT_TRUE(joins(write(1, link)));
}

TEST_F(JoinedCalls, AreNotThoseOfRingsAndSyncs) {
  for (const Amount amount : {Amount::ring, Amount::submission, Amount::nothing}) {
    (void)at_gate(a, read(1, disk, {.amount = amount}));
    EXPECT_FALSE(joins(read(1, disk, {.amount = amount})));
  }
}

TEST_F(JoinedCalls, AreNotThoseOfAClassThatPaysAtOnce) {
  ClassLimits limits = of_disks();
  limits.freezes = true;
  set(limits);
  (void)at_gate(a, read(10));
  EXPECT_FALSE(joins(read(10)));
}

TEST_F(JoinedCalls, AreNotThoseUnderOtherLimits) {
  (void)at_gate(a, read(10));
  set(of_disks(limit(2'000'000)));
  Caller moved_on = a;
  moved_on.view = view();
  EXPECT_TRUE(ledger.join_last(moved_on, read(10), now)) << "the bucket is the same";
  ClassLimits apart;
  apart.disks.read = limit();
  set(apart);
  EXPECT_FALSE(joins(read(10)));
}

TEST_F(JoinedCalls, AreNotThoseAfterADelay) {
  set(of_disks(limit(1'000'000'000)));
  empty_bucket();
  (void)at_gate(a, read(10));
  now += ms(1);  // the bucket is full again
  EXPECT_FALSE(joins(read(10))) << "held";
  ledger.end_delay(*a.call, true, now);
  EXPECT_FALSE(joins(read(10))) << "it waited";
  (void)at_gate(a, read(10), has_read(10));
  EXPECT_TRUE(joins(read(10))) << "the next one did not";
}

}  // namespace
}  // namespace swapd::test
