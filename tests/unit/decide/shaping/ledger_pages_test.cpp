// Bytes that are moved without a call: pages of mapped files, directories, what io_uring's own threads move.
#include "unit/decide/shaping/ledger_fixture.h"

namespace swapd::test {
namespace {

using Charged = decide::Ledger::Charged;

class LedgerPages : public LedgerTest {
 protected:
  static constexpr Tokens mib = 1 << 20;
  void SetUp() override { set(of_disks(limit(1'000'000'000, 100 * mib))); }
  // A read of so many by a call, and so many more by the disk.
  CallerMoved read_and_ahead(Tokens by_call, Tokens ahead) {
    CallerMoved out = has_paged(by_call + ahead);
    out.disk.read_chars = static_cast<std::uint64_t>(by_call);
    out.disk_of_call = disk;
    return out;
  }
  Caller a = thread(1);
};

TEST_F(LedgerPages, AreCharged) {
  settle(a, has_paged(5'000));
  EXPECT_EQ(account().mapped, 5'000);
  EXPECT_EQ(account().calls, 0U);
  EXPECT_EQ(level(), 100 * mib - 5'000);
}

TEST_F(LedgerPages, AreNotWhatIsReadAheadOfACall) {
  (void)at_gate(a, read(4'096));
  settle(a, read_and_ahead(4'096, 2 * mib));
  EXPECT_EQ(account().mapped, 0);
  (void)at_gate(a, read(4'096));
  settle(a, read_and_ahead(4'096, 1'000));
  EXPECT_EQ(account().mapped, 1'000) << "two MiB in all are ahead";
}

TEST_F(LedgerPages, ReadAheadIsMadeUpForByTheCallsThatFetchIt) {
  (void)at_gate(a, read(4'096));
  settle(a, read_and_ahead(4'096, 2 * mib));
  (void)at_gate(a, read(mib));
  CallerMoved from_memory;
  from_memory.disk.read_chars = mib;
  settle(a, from_memory);
  (void)at_gate(a, read(4'096));
  settle(a, read_and_ahead(4'096, mib));
  EXPECT_EQ(account().mapped, 0);
}

TEST_F(LedgerPages, WhatIsReadFarBeyondACallIsOnThatCallsDisk) {
  (void)at_gate(a, read(4'096));
  CallerMoved moved = read_and_ahead(4'096, 3 * mib);
  moved.pages_disk = other_disk;
  settle(a, moved);
  EXPECT_EQ(account(disk).mapped, mib);
  EXPECT_EQ(account(other_disk).mapped, 0);
}

TEST_F(LedgerPages, AWriteMayMakeAFolioDirty) {
  (void)at_gate(a, write(100));
  CallerMoved moved = has_written(100);
  moved.disk.written_bytes = 100 + 2 * mib;
  moved.disk_of_call = disk;
  settle(a, moved);
  EXPECT_EQ(account().mapped, 0);
  (void)at_gate(a, write(100));
  moved.disk.written_bytes += 7;
  settle(a, moved);
  EXPECT_EQ(account().mapped, 7);
}

TEST_F(LedgerPages, EachOfTheCallsThatAreSettledTogetherMay) {
  (void)at_gate(a, write(100));
  ASSERT_TRUE(ledger.join_last(a, write(100), now));
  CallerMoved moved = has_written(200);
  moved.disk.written_bytes = 200 + 4 * mib;
  moved.disk_of_call = disk;
  settle(a, moved);
  EXPECT_EQ(account().mapped, 0);
}

TEST_F(LedgerPages, InDeviceModeWhatACallMadeTheDiskMoveIsTheCalls) {
  ClassLimits limits = of_disks(limit(1'000'000'000, 100 * mib));
  limits.mode = ShapeMode::device;
  set(limits);
  (void)at_gate(a, write(100));
  CallerMoved moved = has_written(5 * mib);
  moved.disk_of_call = disk;
  settle(a, moved);
  EXPECT_EQ(account().mapped, 0);
  EXPECT_EQ(account().bytes[1], 5 * mib);
}

TEST_F(LedgerPages, AWriteDoesNotExplainWhatIsRead) {
  (void)at_gate(a, write(100));
  settle(a, has_paged(300));
  EXPECT_EQ(account().mapped, 300);
}

TEST_F(LedgerPages, MoreThanFaultsExplainIsOfDirectories) {
  CallerMoved moved = has_paged(1'000);
  moved.paged = 400;
  moved.tree_disk = other_disk;
  settle(a, moved);
  EXPECT_EQ(account(disk).mapped, 400);
  EXPECT_EQ(account(other_disk).mapped, 600);
}

TEST_F(LedgerPages, DirectoriesArePaidBeforeACallThatMovesSomethingAlone) {
  set(of_disks());
  CallerMoved moved = has_paged(2'000'000);
  moved.paged = 0;
  EXPECT_FALSE(at_gate(a, WantedCall{}, moved).waits);
  EXPECT_TRUE(at_gate(a, read(1)).waits);
}

TEST_F(LedgerPages, WhatIoUringsThreadsMoveIsCharged) {
  CallerMoved moved;
  moved.workers = {{.tid = 8, .disk = {.read_bytes = 300, .written_bytes = 20}},
                   {.tid = 9, .disk = {.read_bytes = 5, .written_bytes = 0}}};
  moved.workers_traffic = {.received = 40, .sent = 2};
  moved.workers_disk = other_disk;
  moved.workers_link = link;
  settle(a, moved);
  EXPECT_EQ(account(other_disk).mapped, 325);
  EXPECT_EQ(account(link).mapped, 42);
}

TEST_F(LedgerPages, WhatIoUringsThreadsMoveIsPaidBeforeAnyCall) {
  set(of_disks());
  CallerMoved moved;
  moved.workers = {{.tid = 8, .disk = {.read_bytes = 2'000'000}}};
  moved.workers_disk = disk;
  EXPECT_TRUE(at_gate(a, WantedCall{}, moved).waits);
}

TEST_F(LedgerPages, WhatIoUringsThreadsHavePaidIsNotChargedAgain) {
  ledger.entries().add_paid(8, 200, 0);
  CallerMoved moved;
  moved.workers = {{.tid = 8, .disk = {.read_bytes = 300}}};
  moved.workers_disk = disk;
  settle(a, moved);
  EXPECT_EQ(account().mapped, 100);
}

// ---- processes that pay at once ----

class PagesAtOnce : public LedgerPages {
 protected:
  void SetUp() override {
    ClassLimits limits = of_disks();
    limits.freezes = true;
    set(limits);
    payer.tgid = 1;
  }
  Charged charge(Tokens read, std::uint64_t entries = 0) {
    return ledger.charge_pages(payer, *view(), 1, entries,
                               {.read = read,
                                .all_read = static_cast<std::uint64_t>(read),
                                .paged = read,
                                .pages_disk = disk,
                                .tree_disk = other_disk},
                               now);
  }
  PagePayer payer;
};

TEST_F(PagesAtOnce, AreDueWhenTheNextCallWouldBe) {
  EXPECT_EQ(charge(full - 1), Charged::charged);
  EXPECT_EQ(ledger.owed(payer, now).due, now);
  EXPECT_EQ(charge(1'001), Charged::charged);
  EXPECT_EQ(ledger.owed(payer, now).due, now + us(1'001));
  EXPECT_EQ(account().mapped, full + 1'000);
}

TEST_F(PagesAtOnce, BeyondWhatTheClassTakesAreAsManyTurns) {
  (void)charge(2'000'000);
  EXPECT_EQ(ledger.owed(payer, now).rest, 2'000'000 - full - most_owed);
  ASSERT_EQ(ledger.debts("c").size(), 1U);
  EXPECT_EQ(ledger.debts("c")[0].tid, 1);
  for (auto owed = ledger.owed(payer, now); owed.due > now; owed = ledger.owed(payer, now)) now = owed.due;
  EXPECT_TRUE(payer.debts->empty());
  EXPECT_TRUE(ledger.debts("c").empty());
  EXPECT_GE(now - start, us(2'000'000 - full));
}

TEST_F(PagesAtOnce, AreNotChargedAgainAtTheGate) {
  (void)charge(1'000);
  settle(a, has_paged(1'500));
  EXPECT_EQ(account().mapped, 1'500);
}

TEST_F(PagesAtOnce, AreNotChargedWhenACallHasComeToTheGateMeanwhile) {
  settle(a, {});
  EXPECT_EQ(charge(1'000, 0), Charged::at_gate);
  EXPECT_EQ(account().mapped, 0);
  EXPECT_EQ(charge(1'000, 1), Charged::charged);
}

TEST_F(PagesAtOnce, AreNotChargedToAClassThatIsNoMore) {
  const auto before = view();
  ledger.classes().remove("c");
  EXPECT_EQ(ledger.charge_pages(payer, *before, 1, 0, {.read = 5}, now), Charged::no_class);
}

TEST_F(PagesAtOnce, DirectoriesAreChargedToTheirDisk) {
  (void)ledger.charge_pages(payer, *view(), 1, 0,
                            {.read = 1'000, .written = 50, .paged = 400, .pages_disk = disk, .tree_disk = other_disk},
                            now);
  EXPECT_EQ(account(disk).mapped, 450);
  EXPECT_EQ(account(other_disk).mapped, 600);
}

TEST_F(PagesAtOnce, TheStopIsInTheAccount) {
  (void)charge(full + 1'000);
  const std::vector<pid_t> threads{1, 2};
  ledger.held().freeze(threads, {.since = now, .favoured_wait = false, .debts = payer.debts});
  EXPECT_EQ(ledger.held().count(), 2U);
  ledger.end_freeze(payer, threads, ms(9));
  EXPECT_EQ(ledger.held().count(), 0U);
  EXPECT_EQ(account().delayed, 1U);
  EXPECT_EQ(account().waited, ms(9));
  EXPECT_EQ(ledger.held().total(), 1U);
}

TEST_F(PagesAtOnce, DebtsAreWrittenOffWithTheProcess) {
  (void)charge(2'000'000);
  (void)ledger.owed(payer, now);
  ledger.write_off(payer);
  EXPECT_EQ(account().written_off, 2'000'000 - full - most_owed);
  EXPECT_TRUE(ledger.debts("c").empty());
}

TEST_F(PagesAtOnce, TheGateTellsWhatItsCallWasCharged) {
  CallerMoved moved;
  moved.in_all.read_bytes = 10'000;
  WantedCall want = read(300);
  want.add({.device = link, .direction = IoDirection::write, .cost = 300});
  (void)at_gate(a, want, moved);
  const auto entry = ledger.entries().find(1);
  EXPECT_EQ(entry.count, 1U);
  EXPECT_EQ(entry.counted.read_bytes, 10'000U);
  EXPECT_EQ(entry.charged().read_bytes, 10'300U);
  EXPECT_EQ(entry.charged().written_bytes, 0U) << "networks are not disks";
}

// ---- gate entries ----

TEST(GateEntries, WhatWasPaidIsTakenOffOnce) {
  decide::GateEntries entries;
  entries.add_paid(1, 100, 10);
  IoCounters moved{.read_bytes = 60, .written_bytes = 30};
  entries.take_paid(1, moved, false);
  EXPECT_EQ(moved.read_bytes, 0U);
  EXPECT_EQ(moved.written_bytes, 20U);
  moved = {.read_bytes = 60, .written_bytes = 30};
  entries.take_paid(1, moved, false);
  EXPECT_EQ(moved.read_bytes, 20U);
  EXPECT_EQ(moved.written_bytes, 30U);
}

TEST(GateEntries, WhatWasPaidBeforeCountingBeganIsForgotten) {
  decide::GateEntries entries;
  entries.add_paid(1, 100, 0);
  IoCounters moved;
  entries.take_paid(1, moved, true);
  moved.read_bytes = 50;
  entries.take_paid(1, moved, false);
  EXPECT_EQ(moved.read_bytes, 50U);
}

TEST(GateEntries, AreForgottenByTheirOwnGate) {
  decide::GateEntries entries;
  const int one = 0, another = 0;
  entries.note(1, {}, &one);
  entries.add_paid(1, 100, 0);
  entries.forget(1, &another);
  EXPECT_EQ(entries.find(1).count, 1U);
  entries.forget_paid(1);
  IoCounters moved{.read_bytes = 30};
  entries.take_paid(1, moved, false);
  EXPECT_EQ(moved.read_bytes, 0U) << "the gate will settle it yet";
  entries.forget(1, &one);
  EXPECT_EQ(entries.find(1).count, 0U);
  moved.read_bytes = 30;
  entries.take_paid(1, moved, false);
  EXPECT_EQ(moved.read_bytes, 30U);
}

TEST(GateEntries, CostsAreThoseOfTheLastCall) {
  decide::GateEntries entries;
  decide::WantedCall want;
  want.add({.device = {}, .direction = decide::IoDirection::write, .cost = 70});
  entries.note(1, {}, nullptr);
  entries.note_costs(1, want);
  entries.note(1, {}, nullptr);
  entries.note_costs(1, want);
  EXPECT_EQ(entries.find(1).charged().written_bytes, 70U);
  EXPECT_EQ(entries.find(1).count, 2U);
}

}  // namespace
}  // namespace swapd::test
