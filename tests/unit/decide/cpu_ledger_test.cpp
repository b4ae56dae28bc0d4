// Run-time equalisation [DCS97 §3.2]: a job is owed its share of the time in which it can run, less the CPU time that
// it has used.
#include "decide/coscheduling/cpu_ledger.h"

#include <gtest/gtest.h>

#include "decide/state.h"
#include "unit/model/world.h"

namespace swapd::test {
namespace {

using decide::CpuLedger;
using namespace std::chrono_literals;

class Ledger : public testing::Test {
 protected:
  Ledger() { ledger.set_bound(1s); }
  void at(Duration time, ThreadId thread, Duration cpu, bool runnable = true) {
    ledger.settle(thread, cpu, runnable, Time(1h) + time);
  }
  CpuLedger ledger;
};

TEST_F(Ledger, CreditIsTheShareOfTheTimeThatItCanRunLessItsCpuTime) {
  ledger.set_share(p1, 0.5);
  at(0ms, p1, 0ms);
  at(10ms, p1, 2ms);
  EXPECT_EQ(ledger.credit(), 3ms);
  at(20ms, p1, 12ms);
  EXPECT_EQ(ledger.credit(), -2ms);
  EXPECT_EQ(ledger.used(), 12ms);
  EXPECT_EQ(ledger.entitled(), 10ms);
}

TEST_F(Ledger, CountingBeginsWithTheFirstSettlement) {
  ledger.set_share(p1, 0.5);
  at(700ms, p1, 3s);
  EXPECT_EQ(ledger.credit(), 0ms);
  EXPECT_EQ(ledger.used(), 0ms);
}

TEST_F(Ledger, ThreadsOfAJobHaveOneCreditTogether) {
  ledger.set_share(p1, 0.5);
  ledger.set_share(p2, 0.25);
  for (const ThreadId thread : {p1, p2}) at(0ms, thread, 0ms);
  at(8ms, p1, 8ms);
  at(8ms, p2, 0ms);
  EXPECT_EQ(ledger.credit(), 4ms - 8ms + 2ms);
}

TEST_F(Ledger, BlockedThreadEarnsNothing) {
  ledger.set_share(p1, 0.5);
  at(0ms, p1, 0ms, false);
  at(100ms, p1, 0ms);
  EXPECT_EQ(ledger.credit(), 0ms);
  at(110ms, p1, 0ms);
  EXPECT_EQ(ledger.credit(), 5ms) << "from then on it can run";
}

TEST_F(Ledger, ThreadThatRanBetweenTwoBlocksIsDueItsShareOfThat) {
  ledger.set_share(p1, 0.5);
  at(0ms, p1, 0ms, false);
  at(100ms, p1, 4ms, false);
  EXPECT_EQ(ledger.credit(), -2ms);
}

TEST_F(Ledger, CreditIsBoundedBothWays) {
  ledger.set_bound(20ms);
  ledger.set_share(p1, 0.5);
  at(0ms, p1, 0ms);
  at(1s, p1, 0ms);
  EXPECT_EQ(ledger.credit(), 20ms) << "what it could not use for long it does not take at once";
  at(2s, p1, 1s);
  EXPECT_EQ(ledger.credit(), -20ms) << "a debt is forgiven";
}

TEST_F(Ledger, NarrowerBoundHoldsAtOnce) {
  ledger.set_share(p1, 1);
  at(0ms, p1, 0ms);
  at(90ms, p1, 0ms);
  ledger.set_bound(10ms);
  EXPECT_EQ(ledger.credit(), 10ms);
}

TEST_F(Ledger, ShareIsBetweenNothingAndAWholeCpu) {
  ledger.set_share(p1, 7);
  ledger.set_share(p2, -1);
  for (const ThreadId thread : {p1, p2}) at(0ms, thread, 0ms);
  for (const ThreadId thread : {p1, p2}) at(10ms, thread, 0ms);
  EXPECT_EQ(ledger.credit(), 10ms);
}

TEST_F(Ledger, NewShareCountsFromTheNextSettlementOn) {
  ledger.set_share(p1, 0.5);
  at(0ms, p1, 0ms);
  at(10ms, p1, 0ms);
  ledger.set_share(p1, 0.1);
  EXPECT_EQ(ledger.credit(), 5ms) << "what was earned stays";
  at(20ms, p1, 0ms);
  EXPECT_EQ(ledger.credit(), 6ms);
}

TEST_F(Ledger, ThreadsAreDueCpusTogetherWhileOneOfThemCanRun) {
  ledger.set_share(p1, 0.5);
  ledger.set_share(p2, 0.25);
  at(0ms, p1, 0ms);
  at(0ms, p2, 0ms, false);
  EXPECT_DOUBLE_EQ(ledger.due(), 0.75);
  EXPECT_EQ(ledger.runnable(), 1);
  at(1ms, p1, 0ms, false);
  EXPECT_DOUBLE_EQ(ledger.due(), 0);
  EXPECT_EQ(ledger.runnable(), 0);
}

TEST_F(Ledger, ForgottenThreadIsDueNothing) {
  ledger.set_share(p1, 0.5);
  ledger.set_share(p2, 0.25);
  for (const ThreadId thread : {p1, p2}) at(0ms, thread, 0ms);
  ledger.forget(p1);
  EXPECT_DOUBLE_EQ(ledger.due(), 0.25);
  EXPECT_EQ(ledger.runnable(), 1);
}

TEST_F(Ledger, ThreadThatIsBlockedWhileAMateCanRunWaitsForItAndEarns) {
  ledger.set_share(p1, 0.5);
  ledger.set_share(p2, 0.5);
  at(0ms, p1, 0ms);
  at(0ms, p2, 0ms, false);
  at(10ms, p1, 0ms);
  at(10ms, p2, 0ms, false);
  EXPECT_EQ(ledger.credit(), 10ms);
}

TEST_F(Ledger, TellsHowLongUntilACreditIsReached) {
  ledger.set_share(p1, 0.5);
  ledger.set_share(p2, 0.5);
  for (const ThreadId thread : {p1, p2}) at(0ms, thread, 0ms);
  EXPECT_EQ(ledger.until(4ms), 4ms) << "two threads earn half a CPU each";
  for (const ThreadId thread : {p1, p2}) at(4ms, thread, 0ms);
  EXPECT_EQ(ledger.until(4ms), 0ms);
}

TEST_F(Ledger, JobWhoseThreadsAllBlockReachesNone) {
  ledger.set_share(p1, 0.5);
  at(0ms, p1, 0ms, false);
  EXPECT_EQ(ledger.until(1ms), std::nullopt);
}

TEST_F(Ledger, CpuTimeOrAClockThatGoesBackIsNone) {
  ledger.set_share(p1, 0.5);
  at(10ms, p1, 10ms);
  at(5ms, p1, 3ms);
  EXPECT_EQ(ledger.credit(), 0ms);
}

TEST_F(Ledger, ForgottenThreadThatComesBackIsCountedAnew) {
  ledger.set_share(p1, 0.5);
  at(0ms, p1, 0ms);
  ledger.forget(p1);
  ledger.set_share(p1, 0.5);
  at(10ms, p1, 5s);
  EXPECT_EQ(ledger.credit(), 0ms);
}

TEST_F(Ledger, ComesBackFromARecordingAsItWas) {
  ledger.set_share(p1, 0.5);
  at(0ms, p1, 0ms);
  at(10ms, p1, 2ms);
  decide::StateWriter saved;
  saved(ledger);
  CpuLedger other;
  decide::StateReader in(saved.numbers());
  in(other);
  ASSERT_TRUE(in.good());
  other.settle(p1, 2ms, true, Time(1h) + 20ms);
  EXPECT_EQ(other.credit(), 8ms);
  EXPECT_EQ(other.entitled(), 10ms);
}

}  // namespace
}  // namespace swapd::test
