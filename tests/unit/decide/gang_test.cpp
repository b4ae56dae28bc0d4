// Slots of gangs: when they begin and end, and who waits for whom.
#include "decide/coscheduling/gang.h"

#include <gmock/gmock.h>

#include "decide/state.h"
#include "unit/model/world.h"

namespace swapd::test {
namespace {

using decide::GangConfig;
using decide::Gangs;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using namespace std::chrono_literals;

class GangSlots : public testing::Test {
 protected:
  static constexpr Gangs::JobId a = 1, b = 2;
  static constexpr GangConfig config{};

  // Two threads of a job, each due half a CPU.
  void set_a(std::vector<int> cpus = {0, 1}, double share = 0.5) {
    gangs.set(a, {{p1, share, cpus[0]}, {p2, share, cpus[1]}}, now);
  }
  void set_b(std::vector<int> cpus = {0, 1}, double share = 0.5) {
    gangs.set(b, {{p3, share, cpus[0]}, {p4, share, cpus[1]}}, now);
  }
  // Beside a busy loop on each CPU.
  void set_both_beside_others() {
    set_a({0, 1}, 0.4);
    set_b({0, 1}, 0.4);
  }
  // Time in which only the threads of jobs in their slots had CPUs; then slots end, and others may begin.
  void pass(Duration time) {
    now += time;
    for (const auto& [id, gang] : gangs.all())
      for (const ThreadId thread : gang.threads)
        if (gang.slot_until && !blocked.contains(thread)) used[thread] += time;
    std::vector<ThreadId> measure;
    if (!gangs.end_slots(now, measure)) return;
    measured = measure;
    for (const ThreadId thread : measure) gangs.settle(thread, used[thread], !blocked.contains(thread), now);
    gangs.begin_slots(now);
  }
  void pass_until(Duration time) {
    const Time end = now + time;
    while (now < end) pass(std::clamp<Duration>(gangs.next().value_or(end) - now, 1us, end - now));
  }
  [[nodiscard]] const Gangs::Gang& gang(Gangs::JobId id) const { return gangs.all().at(id); }
  [[nodiscard]] bool in_slot(Gangs::JobId id) const { return gang(id).slot_until.has_value(); }

  Gangs gangs{config};
  Time now{1h};
  std::map<ThreadId, Duration> used;
  std::set<ThreadId> blocked;
  std::vector<ThreadId> measured;
};

TEST_F(GangSlots, SlotBeginsWhenHalfOfItsCostIsOwed) {
  set_a();
  pass(0ms);  // counting begins
  ASSERT_FALSE(in_slot(a));
  // A slot costs what its two threads are not due of it: half of two times its length.
  const Duration half_cost = config.slot / 2;
  pass(half_cost - 100us);  // they earn a CPU together
  EXPECT_FALSE(in_slot(a));
  pass(300us);
  EXPECT_TRUE(in_slot(a));
}

TEST_F(GangSlots, ItSaysWhenThatIs) {
  set_a();
  pass(0ms);
  EXPECT_EQ(gangs.next(), now + config.slot / 2);
}

TEST_F(GangSlots, SlotEndsAfterItsLength) {
  set_a();
  pass(0ms);
  pass(config.slot);
  ASSERT_TRUE(in_slot(a));
  EXPECT_EQ(gangs.next(), now + config.slot);
  pass(config.slot - 1us);
  EXPECT_TRUE(in_slot(a));
  pass(1us);
  EXPECT_FALSE(in_slot(a));
  EXPECT_THAT(measured, UnorderedElementsAre(p1, p2)) << "what it has cost";
}

TEST_F(GangSlots, ThreadsAreNotMeasuredBeforeTheyMayBeOwedASlot) {
  set_a();
  pass(0ms);
  measured.clear();
  pass(config.slot / 4);
  EXPECT_THAT(measured, IsEmpty());
}

TEST_F(GangSlots, JobHasItsShareOverManySlots) {
  set_a();
  pass_until(10s);
  EXPECT_NEAR(std::chrono::duration<double>(used[p1]).count(), 5, 0.02);
  EXPECT_NEAR(std::chrono::duration<double>(used[p2]).count(), 5, 0.02);
  EXPECT_NEAR(static_cast<double>(gang(a).slots), 10s / (2 * config.slot), 10);
}

TEST_F(GangSlots, CreditStaysWithinASlot) {
  set_a();
  for (const Time end = now + 2s; now < end;) {
    pass(std::max<Duration>(*gangs.next() - now, 1us));
    EXPECT_LE(std::chrono::abs(gang(a).ledger.credit()), config.slot);
  }
}

TEST_F(GangSlots, TwoJobsOnTheSameCpusTakeTurns) {
  set_a();
  set_b();
  bool both = false;
  for (const Time end = now + 5s; now < end;) {
    pass(std::max<Duration>(*gangs.next() - now, 1us));
    both = both || (in_slot(a) && in_slot(b));
  }
  EXPECT_FALSE(both);
  EXPECT_GT(gang(a).refused.busy + gang(b).refused.busy, 0U);
  const double slots = 5.0 * config.slot_among_gangs / (config.slot_among_gangs + config.pause);
  for (const ThreadId thread : {p1, p2, p3, p4})
    EXPECT_NEAR(std::chrono::duration<double>(used[thread]).count(), slots / 2, 0.05);
}

// Slots follow each other but for a pause, of a twentieth at least, in which a thread that passes by has the CPUs.
TEST_F(GangSlots, BetweenJobsThatAreAllThereIsAPauseIsLeft) {
  set_a();
  set_b();
  pass(0ms);
  Duration free{}, longest_wait{}, wait{};
  const Time begin = now;
  for (const Time end = now + 1s; now < end;) {
    const Duration step = std::max<Duration>(*gangs.next() - now, 1us);
    EXPECT_FALSE(in_slot(a) && in_slot(b));
    const bool is_free = !in_slot(a) && !in_slot(b);
    free += is_free ? step : Duration::zero();
    wait = is_free ? Duration::zero() : wait + step;
    longest_wait = std::max(longest_wait, wait);
    pass(step);
  }
  EXPECT_GT(free, (now - begin) / 20);
  EXPECT_LT(free, (now - begin) / 15);
  EXPECT_EQ(longest_wait, config.slot_among_gangs);
}

TEST_F(GangSlots, WhereOthersCompeteTheyHaveTheTimeBetween) {
  set_a({0, 1}, 0.3);
  set_b({0, 1}, 0.3);
  Duration free{};
  pass(0ms);
  for (const Time end = now + 5s; now < end;) {
    const Duration step = std::max<Duration>(*gangs.next() - now, 1us);
    if (!in_slot(a) && !in_slot(b)) free += step;
    pass(step);
  }
  EXPECT_NEAR(std::chrono::duration<double>(free).count(), 2.0, 0.1);
}

TEST_F(GangSlots, OneSharedCpuIsEnoughToWait) {
  set_a({0, 1});
  set_b({1, 2});
  pass(0ms);
  pass(config.slot);
  EXPECT_NE(in_slot(a), in_slot(b));
}

TEST_F(GangSlots, TwoJobsOnDifferentCpusDoNotWait) {
  set_a({0, 1});
  set_b({2, 3});
  pass(0ms);
  pass(config.slot);
  EXPECT_TRUE(in_slot(a));
  EXPECT_TRUE(in_slot(b));
  pass_until(1s);
  EXPECT_EQ(gang(a).refused.busy + gang(b).refused.busy, 0U);
}

// Threads that may use any of the CPUs: where they were last says nothing of where they will be.
TEST_F(GangSlots, FloatingJobsThatDoNotFitTogetherTakeTurnsWhereverTheyWereLast) {
  gangs.set(a, {{p1, 0.5, 0}, {p2, 0.5, 0}}, now, a);
  gangs.set(b, {{p3, 0.5, 1}, {p4, 0.5, 1}}, now, a);
  for (const Time end = now + 1s; now < end;) {
    EXPECT_FALSE(in_slot(a) && in_slot(b));
    pass(std::max<Duration>(*gangs.next() - now, 1us));
  }
  EXPECT_GT(gang(a).slots, 20U);
  EXPECT_GT(gang(b).slots, 20U);
}

TEST_F(GangSlots, FloatingJobsThatFitTogetherDoNotWaitThoughTheyWereOnOneCpu) {
  gangs.set(a, {{p1, 0.5, 0}, {p2, 0.5, 1}}, now, a);
  gangs.set(b, {{p3, 0.5, 1}, {p4, 0.5, 2}}, now, b);
  pass(0ms);
  pass(config.slot);
  EXPECT_TRUE(in_slot(a));
  EXPECT_TRUE(in_slot(b));
}

TEST_F(GangSlots, JobThatIsOwedMostComesFirst) {
  set_both_beside_others();
  pass(0ms);
  used[p1] += 2ms;  // it found a CPU between its slots
  pass(config.slot);
  EXPECT_FALSE(in_slot(a));
  EXPECT_TRUE(in_slot(b));
  pass(config.slot);
  EXPECT_TRUE(in_slot(a)) << "when the other one is done";
}

TEST_F(GangSlots, JobWhoseThreadsAllBlockHasNoSlot) {
  set_a();
  blocked = {p1, p2};
  pass_until(1s);
  EXPECT_EQ(gang(a).slots, 0U);
  blocked.clear();
  pass_until(100ms);
  EXPECT_GT(gang(a).slots, 0U) << "it is looked at again";
}

TEST_F(GangSlots, JobThatBlockedForLongDoesNotTakeItAllAtOnce) {
  set_a();
  pass_until(100ms);
  blocked = {p1, p2};
  pass_until(5s);
  blocked.clear();
  const Duration before = used[p1];
  pass_until(200ms);
  EXPECT_LE(used[p1] - before, 100ms + 3 * config.slot);
}

TEST_F(GangSlots, ThreadThatComesLaterIsCountedFromThen) {
  set_a();
  pass_until(100ms);
  used[p3] = 5s;
  gangs.set(a, {{p1, 0.5, 0}, {p2, 0.5, 1}, {p3, 0.5, 2}}, now);
  pass(0ms);
  EXPECT_GT(gang(a).ledger.credit(), -2 * config.slot);
}

TEST_F(GangSlots, ThreadThatIsNoLongerOfTheJobIsNamedNowhere) {
  set_a();
  pass_until(100ms);
  gangs.set(a, {{p1, 0.5, 0}}, now);
  EXPECT_EQ(gang(a).threads, std::vector{p1});
  EXPECT_EQ(gang(a).cpus, std::vector{0});
  pass(config.slot * 4);
  EXPECT_EQ(gang(a).ledger.runnable(), 1);
}

TEST_F(GangSlots, ForgottenThreadInMidSlotIsNamedNowhere) {
  set_a();
  pass(0ms);
  pass(config.slot);
  ASSERT_TRUE(in_slot(a));
  gangs.forget(p1);
  EXPECT_EQ(gang(a).threads, std::vector{p2});
  measured.clear();
  pass(config.slot);
  EXPECT_EQ(measured, std::vector{p2});
  EXPECT_EQ(gang(a).ledger.runnable(), 1);
}

TEST_F(GangSlots, JobWithoutThreadsAsksForNoTurn) {
  set_a();
  pass(0ms);
  pass(config.slot);
  gangs.forget(p1);
  gangs.forget(p2);
  pass(config.slot);
  const auto next = gangs.next();
  EXPECT_TRUE(!next || *next > now) << "else the engine would never sleep";
}

TEST_F(GangSlots, WithoutJobsThereIsNothingToDo) {
  std::vector<ThreadId> measure;
  EXPECT_EQ(gangs.next(), std::nullopt);
  EXPECT_FALSE(gangs.end_slots(now, measure));
  EXPECT_FALSE(gangs.begin_slots(now));
}

TEST_F(GangSlots, RemovedJobFreesItsCpus) {
  set_both_beside_others();
  pass(0ms);
  used[p3] += 2ms;
  pass(config.slot);
  ASSERT_TRUE(in_slot(a));
  gangs.remove(a);
  pass(config.slot);
  EXPECT_TRUE(in_slot(b));
}

TEST_F(GangSlots, ComeBackFromARecordingAsTheyWere) {
  set_a();
  set_b();
  pass_until(103ms);
  decide::StateWriter saved;
  saved(gangs);
  Gangs other(config);
  decide::StateReader in(saved.numbers());
  in(other);
  ASSERT_TRUE(in.good());
  decide::StateWriter again;
  again(other);
  EXPECT_EQ(again.numbers(), saved.numbers());
  EXPECT_EQ(other.next(), gangs.next());
}

// A slot of one thread that is due half of its CPU costs half of the slot's length.
class CalledGang : public GangSlots {
 protected:
  static constexpr Duration cost = config.slot / 2;
  CalledGang() {
    gangs.set(a, {{p1, 0.5, 0}}, now);
    gangs.set_by_messages(a, true);
    pass(0ms);
  }
  void call(bool waits = false, std::uint32_t in_slot = 50) {
    gangs.call({.time = now, .thread = p1, .waits = waits, .messages = in_slot});
    pass(0ms);
  }
};

TEST_F(CalledGang, HasItsSlotAtOnceWhenAMessageComes) {
  pass(1ms);
  ASSERT_FALSE(in_slot(a));
  call();
  EXPECT_TRUE(in_slot(a));
}

TEST_F(CalledGang, HasOneWithoutAMessageWhenAWholeOneIsOwed) {
  pass_until(2 * cost - 300us);
  EXPECT_FALSE(in_slot(a));
  pass_until(600us);
  EXPECT_TRUE(in_slot(a));
}

TEST_F(CalledGang, MessageThatWaitsDoesNotCallItWhileItOwesMoreThanHalfOfOne) {
  call();
  pass_until(config.slot);
  ASSERT_FALSE(in_slot(a));
  ASSERT_EQ(gang(a).ledger.credit(), -cost);
  call(true);
  EXPECT_FALSE(in_slot(a));
  pass_until(cost - 300us);
  EXPECT_FALSE(in_slot(a));
  pass_until(600us);
  EXPECT_TRUE(in_slot(a)) << "once half of it is paid: the message is remembered";
}

TEST_F(CalledGang, MessageThatComesCallsItAlsoInDebtButNotJustAfterASlot) {
  call();
  pass_until(config.slot);
  call();
  EXPECT_FALSE(in_slot(a)) << "its mate's slot is about to end";
  EXPECT_THAT(gangs.callable(), IsEmpty()) << "one is enough";
}

TEST_F(CalledGang, MessageInVainIsCountedOnce) {
  call();
  pass_until(config.slot);
  EXPECT_EQ(gang(a).refused.debt, 0U);
  call();
  pass_until(cost / 4);
  EXPECT_EQ(gang(a).refused.debt, 1U);
  EXPECT_EQ(gang(a).refused.busy, 0U);
}

TEST_F(CalledGang, MessageThatComesLaterCallsItInDebt) {
  call();
  pass_until(config.slot);
  pass_until(cost / 2 + 300us);
  ASSERT_LT(gang(a).ledger.credit(), -cost / 2);
  call();
  EXPECT_TRUE(in_slot(a)) << "its sender has a CPU now";
}

TEST_F(CalledGang, MessageJustAfterASlotInWhichNoneCameCallsIt) {
  call();
  pass_until(config.slot);
  call(false, 1);
  EXPECT_TRUE(in_slot(a)) << "else the two would miss each other for ever";
}

TEST_F(CalledGang, NoMessageTakesItBelowTheLedgersBound) {
  call();
  for (int i = 0; i < 4; ++i) {
    pass_until(config.slot);
    call(false, 1);
  }
  EXPECT_FALSE(in_slot(a));
  EXPECT_GE(gang(a).ledger.credit(), -2 * config.slot);
}

TEST_F(CalledGang, AMessageInItsSlotCallsNoOther) {
  call();
  EXPECT_THAT(gangs.callable(), IsEmpty());
  call();
  pass_until(config.slot);
  EXPECT_FALSE(gang(a).called);
}

TEST_F(CalledGang, IsNoOtherGangsThread) {
  set_b({2, 3});
  gangs.call({.time = now, .thread = p3});
  EXPECT_FALSE(gang(b).called);
  EXPECT_THAT(gangs.callable(), testing::ElementsAre(p1));
}

}  // namespace
}  // namespace swapd::test
