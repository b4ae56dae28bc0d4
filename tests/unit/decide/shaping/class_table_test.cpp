// Members of classes, and what a class's accounts show.
#include "decide/shaping/class_table.h"

#include "unit/decide/shaping/ledger_fixture.h"

namespace swapd::test {
namespace {

class ClassMembers : public LedgerTest {
 protected:
  decide::ClassTable& table = ledger.classes();
  [[nodiscard]] std::string class_of(pid_t tgid) const {
    const auto member = const_cast<Ledger&>(ledger).classes().member(tgid);
    return member.view ? member.view->name : "none";
  }
};

TEST_F(ClassMembers, JoinAndLeave) {
  EXPECT_EQ(class_of(1), "none");
  table.join(1, "c", now);
  EXPECT_EQ(class_of(1), "c");
  table.leave(1, now);
  EXPECT_EQ(class_of(1), "none");
}

TEST_F(ClassMembers, OfNoSuchClassAreInNone) {
  table.join(1, "c", now);
  table.join(1, "unheard of", now);
  EXPECT_EQ(class_of(1), "none");
}

TEST_F(ClassMembers, AreBornIntoTheirParentsClass) {
  table.join(1, "c", now);
  table.born(2, 1, now);
  EXPECT_EQ(class_of(2), "c");
  table.born(3, 99, now);
  EXPECT_EQ(class_of(3), "none");
}

TEST_F(ClassMembers, MayHaveAClassOfTheirOwnWithLimitsLikeTheirParents) {
  set(of_disks(), "c", true);
  table.join(1, "c", now);
  table.born(2, 1, now);
  table.born(3, 2, now);
  EXPECT_EQ(class_of(2), "c#2");
  EXPECT_EQ(class_of(3), "c#3");
  EXPECT_EQ(table.member(3).view->of, "c");
  empty_bucket();
  Caller own = thread(2);
  EXPECT_FALSE(at_gate(own, read(full), {}, "c#2").waits) << "a bucket of its own";
  EXPECT_EQ(table.member(2).view->limits, of_disks());
}

TEST_F(ClassMembers, OwnClassesFollowTheLimitsOfTheirs) {
  set(of_disks(), "c", true);
  table.join(1, "c", now);
  table.born(2, 1, now);
  set(of_disks(limit(77)), "c", true);
  EXPECT_EQ(table.member(2).view->limits.disks.both.bytes, 77);
  table.set_automatic("c", 33, now);
  EXPECT_EQ(table.member(2).view->limits.disks.both.bytes, 33);
}

TEST_F(ClassMembers, WithAClassOfTheirOwnStayInItWhenTheyJoinTheOneItIsLike) {
  set(of_disks(), "c", true);
  table.join(1, "c", now);
  table.born(2, 1, now);
  table.join(2, "c", now);
  EXPECT_EQ(class_of(2), "c#2");
}

TEST_F(ClassMembers, OwnClassesEndWithTheirProcessAndLeaveTheirAccounts) {
  set(of_disks(), "c", true);
  table.join(1, "c", now);
  table.born(2, 1, now);
  Caller own = thread(2);
  (void)at_gate(own, read(100), {}, "c#2");
  (void)at_gate(own, read(70), has_read(90), "c#2");
  EXPECT_EQ(account().bytes[0], 90) << "shown with its class's while it lives";
  const auto before = own.view;
  table.leave(2, now);
  EXPECT_EQ(table.find("c#2"), nullptr);
  EXPECT_EQ(account().bytes[0], 90);
  ledger.settle_last(own, has_read(60), Ledger::Settles::all, now);
  EXPECT_EQ(account().bytes[0], 150) << "its last call is settled with the successor";
}

TEST_F(ClassMembers, OwnClassesEndWithTheClassTheyAreLike) {
  set(of_disks(), "c", true);
  table.join(1, "c", now);
  table.born(2, 1, now);
  table.remove("c");
  EXPECT_EQ(class_of(1), "none");
  EXPECT_EQ(class_of(2), "none");
  EXPECT_EQ(table.find("c#2"), nullptr);
}

TEST_F(ClassMembers, ThatAreReleasedAreKnownByTheirStart) {
  table.join(1, "c", now);
  table.release(1, 4'711, now);
  EXPECT_EQ(class_of(1), "none");
  EXPECT_EQ(table.member(1).released, 4'711U);
  table.join(1, "c", now);
  EXPECT_EQ(class_of(1), "c");
  table.leave(1, now);
  EXPECT_EQ(table.member(1).released, std::nullopt) << "it was a member since";
}

TEST_F(ClassMembers, EachChangeIsAnotherGeneration) {
  std::uint64_t last = table.generation();
  const auto changed = [&] { return std::exchange(last, table.generation()) != table.generation(); };
  EXPECT_FALSE(changed());
  table.join(1, "c", now);
  EXPECT_TRUE(changed());
  table.born(2, 1, now);
  EXPECT_TRUE(changed());
  set(of_disks(limit(5)));
  EXPECT_TRUE(changed());
  table.set_automatic("c", 3, now);
  EXPECT_TRUE(changed());
  table.release(2, 7, now);
  EXPECT_TRUE(changed());
  table.release(55, 7, now);
  EXPECT_TRUE(changed()) << "though it was no member";
  table.leave(1, now);
  EXPECT_TRUE(changed());
  table.remove("c");
  EXPECT_TRUE(changed());
}

TEST_F(ClassMembers, PayAtOnceWhoseClassSaysSoAndLimitsSomething) {
  ClassLimits limits = of_disks();
  limits.freezes = true;
  set(limits, "freezes");
  limits.disks = {};
  set(limits, "no limit");
  table.join(1, "c", now);
  table.join(2, "freezes", now);
  table.join(3, "no limit", now);
  const auto paying = table.paying_at_once();
  EXPECT_EQ(paying.size(), 1U);
  EXPECT_TRUE(paying.contains(2));
}

TEST_F(ClassMembers, AViewOfBeforeFindsItsClassByName) {
  const auto before = view();
  set(of_disks(limit(5)));
  EXPECT_EQ(table.index_of(*before), view()->index);
  table.remove("c");
  EXPECT_EQ(table.index_of(*before), std::nullopt);
  set(of_disks(), "takes its number");
  EXPECT_EQ(table.index_of(*before), std::nullopt);
  set(of_disks());
  EXPECT_EQ(table.index_of(*before), view()->index);
}

TEST_F(ClassMembers, AccountsAreTheSumOfTheClassAndThoseLikeIt) {
  set(of_disks(), "c", true);
  table.join(1, "c", now);
  table.born(2, 1, now);
  Caller base = thread(1), own = thread(2);
  (void)at_gate(base, read(10));
  settle(base, has_read(10));
  (void)at_gate(own, read(20), {}, "c#2");
  settle(own, has_read(20), "c#2");
  (void)at_gate(own, write(5, link), {}, "c#2");
  EXPECT_EQ(account().bytes[0], 30);
  EXPECT_EQ(account().calls, 2U);
  EXPECT_EQ(level(), full - 10) << "of its own bucket";
  EXPECT_EQ(ledger.classes().accounts("c", now).size(), 2U);
  EXPECT_TRUE(ledger.classes().accounts("unheard of", now).empty());
}

TEST_F(ClassMembers, AnotherDisksLimitIsItsOwn) {
  ClassLimits limits = of_disks();
  limits.devices[other_disk].both = limit(5);
  set(limits);
  table.set_automatic("c", 100, now);
  EXPECT_EQ(view()->limits.of(disk).both.bytes, 100);
  EXPECT_EQ(view()->limits.of(other_disk).both.bytes, 5) << "lower already";
  EXPECT_EQ(view()->limits.of(link).both.bytes, std::nullopt) << "networks have no automatic limit";
}

// ---- threads that stand still ----

TEST(HeldThreads, ALaterCallOfTheThreadStaysHeld) {
  decide::HeldThreads held;
  const auto first = std::make_shared<decide::PendingCall>(), second = std::make_shared<decide::PendingCall>();
  first->tid = second->tid = 7;
  held.hold(first);
  held.hold(second);
  held.end(*first);
  EXPECT_TRUE(held.holds(7));
  held.end(*second);
  EXPECT_FALSE(held.holds(7));
  EXPECT_EQ(held.total(), 2U);
}

TEST(HeldThreads, TellWhatTheyWaitFor) {
  decide::HeldThreads held;
  const auto call = std::make_shared<decide::PendingCall>();
  call->tid = 7;
  call->since = start;
  call->asked = 500;
  held.hold(call);
  EXPECT_EQ(held.delays().at(7).share, 0) << "for its turn";
  call->reservation.count = 1;
  call->reservation.places[0].rest = 100;
  EXPECT_EQ(held.delays().at(7).share, 500);
  EXPECT_EQ(held.delays().at(7).since, start);
}

TEST(HeldThreads, AFrozenThreadWouldRunToo) {
  decide::HeldThreads held;
  const std::vector<pid_t> threads{3}, others{4};
  held.freeze(threads, {.since = start, .favoured_wait = false, .debts = nullptr});
  held.freeze(others, {.since = start, .favoured_wait = true, .debts = nullptr});
  EXPECT_TRUE(held.would_run(3));
  EXPECT_FALSE(held.would_run(4));
  EXPECT_THAT(held.would_run(), testing::ElementsAre(std::pair(3, start)));
  EXPECT_TRUE(held.favour(3, true).frozen);
  EXPECT_FALSE(held.favour(3, false).frozen) << "it has not to be looked at";
  held.thaw(threads);
  EXPECT_FALSE(held.holds(3));
  EXPECT_TRUE(held.holds(4));
}

}  // namespace
}  // namespace swapd::test
