// Classes, their devices, and calls that wait [TAP08 §2.1–2.4].
#include "decide/shaping/shaping.h"

#include <gmock/gmock.h>

#include "unit/decide/start.h"

namespace swapd::test {
namespace {

using decide::ClassLimits;
using decide::Device;
using decide::IoDirection;
using decide::Limit;
using decide::Reservation;
using decide::Shaping;
using decide::Tokens;
using decide::Transfer;
using std::chrono::milliseconds;
using std::chrono::seconds;

const Device disk{Device::Kind::disk, 8ULL << 32}, other_disk{Device::Kind::disk, 9ULL << 32};
const Device link{Device::Kind::network, 2};

Limit at(Tokens rate, Tokens burst = 1000) { return {.bytes = rate, .operations = {}, .burst = burst}; }

class Classes : public testing::Test {
 protected:
  Reservation enter(Shaping::ClassIndex of, const std::vector<Transfer>& transfers, Time now = start) {
    return shaping.reserve(of, transfers.data(), transfers.size(), now);
  }
  Duration wait(const Reservation& passage, Time now = start) { return shaping.due(passage, now) - now; }
  Shaping shaping;
};

TEST_F(Classes, DoNotWaitForEachOther) {
  ClassLimits limits;
  limits.disks.both = at(1000);
  const auto one = shaping.set("one", limits, start), two = shaping.set("two", limits, start);
  shaping.charge(one, disk, IoDirection::read, 3'000, start);
  EXPECT_EQ(wait(enter(one, {{disk, IoDirection::read, 1}})), milliseconds(2'001));
  EXPECT_EQ(wait(enter(two, {{disk, IoDirection::read, 1}})), Duration::zero());
}

// Whoever pays at once goes on when the next call would.
TEST_F(Classes, WhatIsChargedIsPaidWhenTheNextCallWouldGoOn) {
  ClassLimits limits;
  limits.disks.both = at(1000);
  const auto one = shaping.set("one", limits, start);
  EXPECT_EQ(wait(shaping.charge(one, disk, IoDirection::read, 999, start)), Duration::zero());
  const Reservation owed = shaping.charge(one, disk, IoDirection::write, 1001, start);
  EXPECT_EQ(wait(owed), milliseconds(1001));
  shaping.waited(owed, milliseconds(1001));
  const auto account = shaping.accounts(one, start).at(0);
  EXPECT_EQ(account.mapped, 2000);
  EXPECT_EQ(account.calls, 0U);
  EXPECT_EQ(account.delayed, 1U);
  EXPECT_EQ(account.waited, milliseconds(1001));
  limits.disks.both = at(10'000);
  shaping.set("one", limits, start);
  EXPECT_LT(wait(owed), milliseconds(1001)) << "a change holds at once";
}

// Calls that nobody has to wait for may be settled together: the sum is what it would have been.
TEST_F(Classes, CallsAreSettledTogether) {
  ClassLimits limits;
  limits.disks.both = at(1000);
  const auto one = shaping.set("one", limits, start);
  Reservation last = enter(one, {{disk, IoDirection::read, 200}});
  EXPECT_TRUE(shaping.spares(last, 300, start));
  EXPECT_FALSE(shaping.spares(last, 301, start)) << "half of the burst has to stay";
  Reservation next = enter(one, {{disk, IoDirection::read, 100}});
  ASSERT_TRUE(next.join(last));
  const auto settle = [&](Tokens bytes, std::uint64_t calls) {
    Shaping::Moved moved{.calls = calls};
    moved.bytes[0] = bytes;
    shaping.settle(next, moved, start);
    return shaping.accounts(one, start).at(0);
  };
  const auto account = settle(50, 2);
  EXPECT_EQ(account.both.bytes, 950);
  EXPECT_EQ(account.calls, 2U);
  EXPECT_EQ(account.bytes[0], 50);
  for (const Transfer& other : {Transfer{disk, IoDirection::write, 100}, Transfer{other_disk, IoDirection::read, 100}})
    EXPECT_FALSE(enter(one, {other}).join(next)) << "elsewhere";
  next = enter(one, {{disk, IoDirection::read, 100}});
  ASSERT_TRUE(next.join(enter(one, {{disk, IoDirection::read, 100}})));
  EXPECT_EQ(settle(0, 2).both.bytes, 950 - 100 - 2) << "one token a call is kept (and what was written is not settled)";
  last = enter(one, {{disk, IoDirection::read, 1}});
  limits.disks = {};
  limits.disks.read = at(1000);
  shaping.set("one", limits, start);
  EXPECT_FALSE(enter(one, {{disk, IoDirection::read, 1}}).join(last)) << "the bucket is another one";
  EXPECT_FALSE(shaping.spares(last, 0, start));
}

// Each device has buckets of its own, also where the limit is that of all.
TEST_F(Classes, HaveABucketForEachDevice) {
  ClassLimits limits;
  limits.disks.both = at(1000);
  limits.devices[other_disk].both = at(10);
  const auto one = shaping.set("one", limits, start);
  (void)enter(one, {{disk, IoDirection::read, 1000}});
  (void)enter(one, {{other_disk, IoDirection::read, 1000}});
  EXPECT_EQ(wait(enter(one, {{disk, IoDirection::write, 1}})), milliseconds(1));
  EXPECT_EQ(wait(enter(one, {{other_disk, IoDirection::write, 1}})), milliseconds(100));
  EXPECT_EQ(wait(enter(one, {{link, IoDirection::write, 1'000'000}})), Duration::zero());
  EXPECT_EQ(wait(enter(one, {{link, IoDirection::write, 1'000'000}})), Duration::zero()) << "no limit of networks";
}

TEST_F(Classes, TellOfAnUnknownDiskLast) {
  const auto one = shaping.set("one", {}, start);
  (void)enter(one, {{Device{Device::Kind::disk, 0}, IoDirection::read, 1000}});
  (void)enter(one, {{disk, IoDirection::read, 1000}});
  EXPECT_EQ(shaping.accounts(one, start).front().device, disk);
  EXPECT_EQ(shaping.accounts(one, start).back().device.number, 0U);
}

// The paper's READ-WRITE mode, and a limit on both besides.
TEST_F(Classes, ReadAndWriteTogetherOrApart) {
  ClassLimits limits;
  limits.disks.read = at(1000);
  limits.disks.write = at(500);
  const auto apart = shaping.set("apart", limits, start);
  (void)enter(apart, {{disk, IoDirection::read, 1000}});
  EXPECT_EQ(wait(enter(apart, {{disk, IoDirection::write, 1000}})), Duration::zero());
  EXPECT_EQ(wait(enter(apart, {{disk, IoDirection::write, 1000}})), milliseconds(2));
  EXPECT_EQ(wait(enter(apart, {{disk, IoDirection::read, 1000}})), milliseconds(1));
  limits.disks.both = at(100);
  const auto all = shaping.set("all", limits, start);
  (void)enter(all, {{disk, IoDirection::read, 1000}});
  EXPECT_EQ(wait(enter(all, {{disk, IoDirection::write, 1}})), milliseconds(10)) << "the slowest of its buckets";
}

TEST_F(Classes, OperationsAreCountedBesidesBytes) {
  ClassLimits limits;
  limits.disks.both.operations = 100;
  const auto one = shaping.set("one", limits, start);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(wait(enter(one, {{disk, IoDirection::read, 1 << 20}})), Duration::zero()) << i;
  EXPECT_EQ(wait(enter(one, {{disk, IoDirection::read, 1}})), milliseconds(10));
}

// sendfile(2): from the disk to the network.
TEST_F(Classes, ACallWithTwoLegsGoesWhenBothLetIt) {
  ClassLimits limits;
  limits.disks.both = at(1000);
  limits.networks.both = at(100);
  const auto one = shaping.set("one", limits, start);
  EXPECT_EQ(wait(enter(one, {{disk, IoDirection::read, 1000}, {link, IoDirection::write, 1000}})), Duration::zero());
  shaping.charge(one, link, IoDirection::write, 100, start);
  const Reservation waits = enter(one, {{disk, IoDirection::read, 1000}, {link, IoDirection::write, 1000}});
  EXPECT_EQ(wait(waits), milliseconds(1010)) << "101 tokens of the network; of the disk it were 1 ms";
  shaping.settle(waits, {.bytes = {500, 500}, .cached = 500, .waited = milliseconds(1010)}, start);
  const auto accounts = shaping.accounts(one, start);
  ASSERT_EQ(accounts.size(), 2U);
  EXPECT_EQ(accounts[0].device, disk);
  EXPECT_EQ(accounts[0].bytes[0], 500);
  EXPECT_EQ(accounts[0].cached, 500);
  EXPECT_EQ(accounts[0].delayed, 1U);
  EXPECT_EQ(accounts[0].both.bytes, 1000 - 1000 - 500);
  EXPECT_EQ(accounts[1].bytes[1], 500);
  EXPECT_EQ(accounts[1].waited, milliseconds(1010));
}

// copy_file_range(2) on one disk.
TEST_F(Classes, ACallDoesNotWaitForItself) {
  ClassLimits limits;
  limits.disks.both = at(1000);
  const auto one = shaping.set("one", limits, start);
  EXPECT_EQ(wait(enter(one, {{disk, IoDirection::read, 900}, {disk, IoDirection::write, 900}})), Duration::zero());
  EXPECT_EQ(shaping.accounts(one, start).at(0).both.bytes, -800);
  EXPECT_EQ(wait(enter(one, {{disk, IoDirection::read, 1}})), milliseconds(801));
}

// Time goes on until the call may, and others come each 10 ms meanwhile; when it does, and what the others waited at
// most.
struct Course {
  Duration goes{}, others{};
};

class LargeCalls : public Classes {
 protected:
  static constexpr Tokens rate = 1'000'000;
  LargeCalls() {
    limits.disks.both = at(rate, rate / 20);
    one = shaping.set("one", limits, start);
  }
  // others: bytes a second.
  template <typename Advance>
  Course course(const Advance& advance, Tokens others) {
    Course out;
    std::vector<std::pair<Reservation, Time>> waiting;
    Time now = start;
    for (; advance(now) > now && now - start < seconds(60); now += milliseconds(1)) {
      std::erase_if(waiting, [&](const auto& other) {
        if (shaping.due(other.first, now) > now) return false;
        out.others = std::max(out.others, now - other.second);
        return true;
      });
      if (others > 0 && (now - start) % milliseconds(10) == Duration::zero())
        waiting.emplace_back(enter(one, {{disk, IoDirection::read, others / 100}}, now), now);
    }
    out.goes = now - start;
    return out;
  }
  ClassLimits limits;
  Shaping::ClassIndex one = 0;
};

TEST_F(LargeCalls, WaitForTheirShareBeforeTheyMoveAnything) {
  Reservation call = enter(one, {{disk, IoDirection::write, 10 * rate}});
  const Course alone = course([&](Time now) { return shaping.advance(call, now); }, 0);
  EXPECT_GE(alone.goes, milliseconds(9'840)) << "a tenth of a second's worth ahead, and the burst";
  EXPECT_LE(alone.goes, milliseconds(10'000));
  Shaping::Moved moved;
  moved.bytes[0] = 10 * rate;
  EXPECT_TRUE(shaping.settle(call, moved, start + alone.goes).empty()) << "it owes nothing besides";
  EXPECT_GE(*shaping.accounts(one, start + alone.goes).at(0).both.bytes, -rate / 10 - rate / 100);
}

TEST_F(LargeCalls, LetOthersHaveTheirTurns) {
  Reservation call = enter(one, {{disk, IoDirection::write, 5 * rate}});
  const Course shared = course([&](Time now) { return shaping.advance(call, now); }, rate / 2);
  EXPECT_LE(shared.others, milliseconds(50));
  EXPECT_GE(shared.goes, milliseconds(9'000)) << "half of the time is the others'";
  EXPECT_LE(shared.goes, milliseconds(10'500));
}

TEST_F(LargeCalls, GoAtOnceWhereTheBurstHoldsThem) {
  limits.disks.both = at(rate, 20 * rate);
  const auto idle = shaping.set("idle", limits, start);
  Reservation call = enter(idle, {{disk, IoDirection::write, 15 * rate}});
  EXPECT_EQ(shaping.advance(call, start), start);
  Reservation next = enter(idle, {{disk, IoDirection::write, 15 * rate}});
  EXPECT_GT(shaping.advance(next, start), start);
  EXPECT_GT(shaping.advance(next, start + seconds(9)), start + seconds(9));
  EXPECT_EQ(shaping.advance(next, start + seconds(10)), start + seconds(10));
}

TEST_F(LargeCalls, ThatAreNotMadeGiveBackWhatTheyHaveTaken) {
  Reservation call = enter(one, {{disk, IoDirection::write, 100 * rate}});
  (void)shaping.advance(call, start + seconds(1));
  shaping.cancel(call, start + seconds(1));
  EXPECT_EQ(shaping.accounts(one, start + seconds(1)).at(0).both.bytes, rate / 20);
}

// A favoured provider's calls: the class lends them no more than a debt may be, however many they are.
TEST_F(LargeCalls, ThatAreNotHeldAreADebtOfTheirThread) {
  decide::Debts debts;
  Shaping::Moved moved;
  moved.bytes[0] = rate;
  for (int i = 0; i < 500; ++i) {
    Reservation call = enter(one, {{disk, IoDirection::read, rate}});
    if (shaping.advance(call, start) > start) shaping.postpone(call, start);
    debts.add(shaping.settle(call, moved, start), false);
  }
  EXPECT_EQ(shaping.accounts(one, start).at(0).both.bytes, -rate / 2);
  EXPECT_NEAR(static_cast<double>(shaping.owed(debts, one).at(0).second), 499.45 * rate, 1000) << "a token a call";
}

// A call of which nobody knew what it would move: its thread pays, and the others of its class for half a second.
TEST_F(LargeCalls, DebtsAreTheirThreads) {
  decide::Debts debts;
  const Reservation call = enter(one, {{disk, IoDirection::read, 1}});
  Shaping::Moved moved;
  moved.bytes[0] = 20 * rate;
  debts.add(shaping.settle(call, moved, start), false);
  EXPECT_EQ(shaping.accounts(one, start).at(0).both.bytes, -rate / 2);
  EXPECT_EQ(wait(enter(one, {{disk, IoDirection::read, 1}})), milliseconds(500) + std::chrono::microseconds(1));
  ASSERT_EQ(shaping.owed(debts, one).size(), 1U);
  EXPECT_NEAR(static_cast<double>(shaping.owed(debts, one).at(0).second), 19.45 * rate, 10);
  EXPECT_EQ(shaping.advance(debts, true, start), start) << "a call that moves nothing does not wait for it";
  const Course paid = course([&](Time now) { return shaping.advance(debts, false, now); }, rate / 4);
  EXPECT_TRUE(debts.empty());
  EXPECT_GE(paid.goes, seconds(24));
  EXPECT_LE(paid.goes, seconds(28));
  EXPECT_LE(paid.others, milliseconds(560)) << "those that came first waited for the class's part";
}

TEST_F(LargeCalls, DebtsOfSeveralCallsAreOne) {
  decide::Debts debts;
  for (int i = 0; i < 3; ++i) debts.add(shaping.charge(one, disk, IoDirection::read, 2 * rate, start), false);
  ASSERT_EQ(shaping.owed(debts, one).size(), 1U);
  EXPECT_EQ(shaping.owed(debts, one).at(0).second, 6 * rate - rate / 2 - rate / 20);
}

TEST_F(LargeCalls, DebtsOfThreadsThatHaveEndedNobodyPays) {
  decide::Debts debts;
  debts.add(shaping.charge(one, disk, IoDirection::read, 17 * rate, start), true);
  shaping.write_off(debts);
  EXPECT_EQ(wait(enter(one, {{disk, IoDirection::read, 1}})), milliseconds(500) + std::chrono::microseconds(1));
  EXPECT_EQ(shaping.accounts(one, start).at(0).written_off, 17 * rate - rate / 2 - rate / 20);
}

TEST_F(Classes, WhatIsWithdrawnLeavesNoTrace) {
  ClassLimits limits;
  limits.disks.both = {.bytes = 1000, .operations = 20, .burst = 1000};
  const auto one = shaping.set("one", limits, start);
  const Reservation gone = enter(one, {{disk, IoDirection::read, 700}});
  shaping.cancel(gone, start);
  const auto account = shaping.accounts(one, start).at(0);
  EXPECT_EQ(account.both.bytes, 1000);
  EXPECT_EQ(account.both.operations, 1);
  EXPECT_EQ(account.calls, 0U);
}

TEST_F(Classes, AtLeastOneTokenACall) {
  ClassLimits limits;
  limits.disks.both = at(1000);
  const auto one = shaping.set("one", limits, start);
  const Reservation empty = enter(one, {{disk, IoDirection::read, 500}});
  shaping.settle(empty, {}, start);
  EXPECT_EQ(shaping.accounts(one, start).at(0).both.bytes, 999);
}

// Limits that change, go and come back while somebody waits.
TEST_F(Classes, ChangesHoldAtOnce) {
  ClassLimits limits;
  limits.disks.both = at(1000);
  const auto one = shaping.set("one", limits, start);
  shaping.charge(one, disk, IoDirection::read, 4'999, start);
  const Reservation waits = enter(one, {{disk, IoDirection::read, 1}});
  EXPECT_EQ(wait(waits), milliseconds(4'000));
  limits.disks.both = at(10'000);
  EXPECT_EQ(shaping.set("one", limits, start), one);
  EXPECT_EQ(wait(waits), milliseconds(400));
  shaping.set("one", {}, start);
  EXPECT_EQ(wait(waits), Duration::zero());
  shaping.set("one", limits, start);
  EXPECT_EQ(wait(waits), Duration::zero()) << "the bucket of before is another";
  shaping.settle(waits, {.bytes = {1, 0}, .cached = 0, .waited = {}}, start);
  EXPECT_EQ(shaping.accounts(one, start).at(0).both.bytes, 1000);
}

TEST_F(Classes, OneThatIsRemovedHoldsNobody) {
  ClassLimits limits;
  limits.disks.both = at(1);
  const auto one = shaping.set("one", limits, start);
  (void)enter(one, {{disk, IoDirection::read, 5000}});
  const Reservation waits = enter(one, {{disk, IoDirection::read, 5000}});
  EXPECT_EQ(wait(waits), seconds(1));
  shaping.remove("one");
  EXPECT_EQ(wait(waits), Duration::zero());
  EXPECT_EQ(shaping.find("one"), std::nullopt);
  EXPECT_TRUE(enter(one, {{disk, IoDirection::read, 1}}).empty());
}

// A process may have a class for itself: thousands come and go.
TEST_F(Classes, TheirPlacesAreUsedAgain) {
  ClassLimits limits;
  limits.disks.both = at(1000);
  const auto kept = shaping.set("kept", limits, start);
  const auto first = shaping.set("first", limits, start);
  const Reservation open = enter(first, {{disk, IoDirection::read, 700}});
  shaping.merge_into("first", kept, start);
  for (int i = 0; i < 1000; ++i) {
    const std::string name = "own#" + std::to_string(i);
    const auto own = shaping.set(name, limits, start);
    EXPECT_EQ(own, first);
    EXPECT_EQ(wait(enter(own, {{disk, IoDirection::read, 300}})), Duration::zero()) << "a full bucket of its own";
    shaping.settle(open, {.bytes = {700, 0}, .cached = 0, .waited = {}}, start);
    EXPECT_EQ(shaping.accounts(own, start).at(0).both.bytes, 700)
        << "what another class's call moved is not its affair";
    EXPECT_EQ(shaping.accounts(own, start).at(0).bytes[0], 0);
    shaping.remove(name);
  }
  EXPECT_EQ(shaping.find("first"), std::nullopt);
  EXPECT_EQ(shaping.find("own#999"), std::nullopt);
  EXPECT_EQ(shaping.find("kept"), kept);
}

// A process ends in its last call, which is settled when it has; its class was for it alone.
TEST_F(Classes, WhatIsRetiredHasAnHeir) {
  ClassLimits limits;
  limits.disks.both = at(1000);
  const auto all = shaping.set("all", limits, start);
  const auto own = shaping.set("own", limits, start);
  shaping.settle(enter(own, {{disk, IoDirection::read, 700}}), {.bytes = {700, 0}, .cached = 0, .waited = {}}, start);
  const Reservation last = enter(own, {{disk, IoDirection::read, 300}}),
                    killed = enter(own, {{disk, IoDirection::read, 300}});
  shaping.merge_into("own", all, start);
  for (int i = 0; i < 100; ++i) {  // others come and go meanwhile
    const std::string name = "own#" + std::to_string(i);
    (void)enter(shaping.set(name, limits, start), {{disk, IoDirection::read, 300}});
    shaping.remove(name);
  }
  EXPECT_EQ(shaping.find("own"), std::nullopt);
  shaping.settle(last, {.bytes = {200, 0}, .cached = 50, .waited = seconds(1)}, start);
  shaping.cancel(killed, start);
  const auto account = shaping.accounts(all, start).at(0);
  EXPECT_EQ(account.bytes[0], 900);
  EXPECT_EQ(account.calls, 2U);
  EXPECT_EQ(account.cached, 50);
  EXPECT_EQ(account.waited, seconds(1));
  EXPECT_EQ(account.both.bytes, 1000) << "what it owed has ended with it";
  shaping.remove("all");
  (void)shaping.set("another", limits, start);
  shaping.settle(last, {.bytes = {200, 0}, .cached = 0, .waited = {}}, start);  // of nobody's
  EXPECT_TRUE(shaping.accounts(*shaping.find("another"), start).empty());
}

// A mapped file: read without a call, owed by the next one.
TEST_F(Classes, WhatMovesWithoutACallIsOwed) {
  ClassLimits limits;
  limits.disks.both = at(1000);
  const auto one = shaping.set("one", limits, start);
  shaping.charge(one, disk, IoDirection::read, 3000, start);
  EXPECT_EQ(wait(enter(one, {{disk, IoDirection::read, 1}})), milliseconds(2001));
  const auto account = shaping.accounts(one, start).at(0);
  EXPECT_EQ(account.mapped, 3000);
  EXPECT_EQ(account.bytes[0], 0) << "no call moved them";
}

TEST_F(Classes, MoreDevicesThanItKeepsShareOne) {
  ClassLimits limits;
  limits.networks.both = at(1000);
  const auto one = shaping.set("one", limits, start);
  for (std::uint64_t i = 1; i <= 1000; ++i) (void)enter(one, {{{Device::Kind::network, i}, IoDirection::read, 1}});
  EXPECT_LE(shaping.accounts(one, start).size(), 257U);
}

}  // namespace
}  // namespace swapd::test
