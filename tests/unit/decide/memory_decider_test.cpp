// Jobs leave memory and come back: the decider in a panel, over made-up windows.
#include "decide/memory/memory_decider.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <algorithm>

#include "unit/decide/turns.h"

namespace swapd::test {
namespace {

using decide::MemoryDecider;
using decide::MemoryEvent;
using namespace std::chrono_literals;

constexpr std::int64_t mib = 1 << 20;

// Four programs of 400 MiB each, of which 100 are in swap; each is a job.
class MemoryDeciderTest : public testing::Test {
 protected:
  static constexpr std::size_t memory = 1;  // among the deciders
  MemoryDeciderTest() : turns(make()) {
    for (const ThreadId id : {p1, p2, p3, p4}) {
      turns.enroll(id);
      has(id, 400, 100);
    }
    turns.turn();
  }
  std::vector<std::unique_ptr<decide::Decider>> make() {
    auto made = std::make_unique<MemoryDecider>(decide::MemoryConfig{.on = true});
    decider = made.get();
    std::vector<std::unique_ptr<decide::Decider>> all;
    all.push_back(std::move(made));
    return all;
  }
  void has(ThreadId id, std::int64_t resident, std::int64_t swapped, bool needed = false) {
    sizes[id] = {.tgid = id.tid,
                 .job = static_cast<std::uint64_t>(id.tid),
                 .group = groups.contains(id) ? groups[id] : "",
                 .needed = needed,
                 .resident = resident * mib,
                 .swapped = swapped * mib};
  }
  void window(bool thrashes, const std::string& group = "") {
    turns.pass(1s);
    for (auto [id, size] : sizes) {
      size.time = turns.now;
      turns.panel->on(size);
    }
    const std::uint64_t pages = thrashes ? 5000 : 0;
    turns.panel->on(decide::MemoryFared{.time = turns.now,
                                        .group = group,
                                        .window = 1s,
                                        .refaults = pages,
                                        .in = pages,
                                        .out = pages,
                                        .page_cost = 100us,
                                        .room = room,
                                        .swap_room = std::int64_t{1} << 40});
    turns.turn();
  }
  void thrash(int windows = 3, const std::string& group = "") {
    for (int i = 0; i < windows; ++i) window(true, group);
  }
  void rest(int windows, const std::string& group = "") {
    for (int i = 0; i < windows; ++i) window(false, group);
  }
  std::vector<pid_t> away() const {
    std::vector<pid_t> out;
    for (const decide::Demand& one : turns.panel->standing(memory).demands)
      if (const auto* put = std::get_if<decide::PutAway>(&one)) out.push_back(put->tgid);
    return out;
  }
  using Pids = std::vector<pid_t>;

  std::map<ThreadId, decide::ProcessMemory> sizes;
  std::map<ThreadId, std::string> groups;
  std::int64_t room = 0;
  MemoryDecider* decider = nullptr;
  Turns turns;
};

TEST_F(MemoryDeciderTest, NoneLeavesWhereNothingThrashes) {
  rest(20);
  EXPECT_EQ(away(), Pids{});
}

TEST_F(MemoryDeciderTest, OneLeavesWhereTheMachineThrashes) {
  thrash(2);
  EXPECT_EQ(away(), Pids{});
  thrash(1);
  EXPECT_EQ(away().size(), 1u);
}

TEST_F(MemoryDeciderTest, TheOneThatMattersLeastLeaves) {
  turns.enroll(p3, SchedAttr{.nice = 10});
  thrash();
  EXPECT_EQ(away(), Pids{p3.tid});
}

// No priority is set anywhere: a person waits for the others.
TEST_F(MemoryDeciderTest, WhatAPersonWaitsForStays) {
  for (const ThreadId id : {p1, p2, p4}) turns.take(Ranked{turns.now, id, SchedAttr{.nice = -5}});
  thrash();
  EXPECT_EQ(away(), Pids{p3.tid});
}

TEST_F(MemoryDeciderTest, AChangeHasTimeToShowWhatItDoes) {
  thrash();
  ASSERT_EQ(away().size(), 1u);
  thrash(2);
  EXPECT_EQ(away().size(), 1u);
  thrash(1);
  EXPECT_EQ(away().size(), 2u) << "it was not enough";
}

TEST_F(MemoryDeciderTest, AllForWhichThereIsRoomComeBackTogether) {
  thrash(3);
  thrash(3);
  ASSERT_EQ(away().size(), 2u);
  const Pids out = away();
  for (auto& [id, size] : sizes)
    if (std::ranges::find(out, size.tgid) != out.end()) has(id, 0, 500);
  room = 600 * mib;
  for (int i = 0; i < 20 && away().size() == 2; ++i) rest(1);
  EXPECT_EQ(away().size(), 1u);
  thrash(3);
  ASSERT_EQ(away().size(), 2u);
  room = 1200 * mib;
  for (int i = 0; i < 20 && away().size() == 2; ++i) rest(1);
  EXPECT_EQ(away(), Pids{});
}

// As the compilers of one make -j are.
TEST_F(MemoryDeciderTest, WhereAllAreOneJobItsProcessesLeaveOneByOne) {
  for (auto& [id, size] : sizes) size.job = 1;
  thrash();
  ASSERT_EQ(away().size(), 1u);
  const Pids first = away();
  rest(20);
  EXPECT_NE(away(), first) << "they take turns";
  room = 2000 * mib;
  rest(20);
  EXPECT_EQ(away(), Pids{});
}

TEST_F(MemoryDeciderTest, AJobOfSeveralProcessesStaysWholeWhereAnotherSuffices) {
  sizes[p1].job = sizes[p2].job = 1;
  turns.enroll(p3, SchedAttr{.nice = 10});
  thrash();
  EXPECT_EQ(away(), Pids{p3.tid});
}

TEST_F(MemoryDeciderTest, TheBestOfAllNeverLeaves) {
  turns.enroll(p2, SchedAttr{.nice = -3});
  thrash(60);
  const Pids out = away();
  EXPECT_EQ(std::ranges::count(out, p2.tid), 0);
}

TEST_F(MemoryDeciderTest, OneThatIsNeededStays) {
  turns.enroll(p3, SchedAttr{.nice = 10});
  has(p3, 400, 100, true);
  thrash();
  EXPECT_EQ(away().size(), 1u);
  EXPECT_NE(away(), Pids{p3.tid});
}

TEST_F(MemoryDeciderTest, OneThatAnImportantThreadWaitsForStays) {
  turns.enroll(p1, SchedAttr{.nice = -10});
  turns.enroll(p3, SchedAttr{.nice = 10});
  turns.provides(p3, socket_endpoint(9));
  turns.blocks(p1, {socket_endpoint(9)});
  thrash();
  ASSERT_EQ(away().size(), 1u);
  EXPECT_NE(away(), Pids{p3.tid});
}

// While pages are short, threads wait for each other in page faults. What holds a lock there runs until it lets go.
TEST_F(MemoryDeciderTest, AShortWaitInsideTheKernelKeepsNoneThereAndALongOneBringsItBack) {
  const Resource lock = kernel_lock_of({.dev = 7, .ino = 12});
  turns.enroll(p1, SchedAttr{.nice = -10});
  turns.enroll(p3, SchedAttr{.nice = 10});
  turns.provides(p3, lock);
  thrash(2);
  turns.pass(500ms);
  turns.blocks(p1, {lock});
  turns.pass(-500ms);
  thrash(1);
  EXPECT_EQ(away(), Pids{p3.tid});
  thrash(1);
  EXPECT_EQ(std::ranges::count(away(), p3.tid), 0);
}

TEST_F(MemoryDeciderTest, AFuseDaemonThatAnImportantThreadWaitsForStays) {
  turns.enroll(p1, SchedAttr{.nice = -10});
  turns.enroll(p3, SchedAttr{.nice = 10});
  turns.provides(p3, fuse_files_of(7));
  turns.blocks(p1, {fuse_files_of(7)});
  thrash();
  EXPECT_EQ(std::ranges::count(away(), p3.tid), 0);
}

TEST_F(MemoryDeciderTest, OneThatAnImportantThreadBeginsToWaitForIsBackAtOnce) {
  turns.enroll(p1, SchedAttr{.nice = -10});
  turns.enroll(p3, SchedAttr{.nice = 10});
  turns.provides(p3, socket_endpoint(9));
  thrash();
  ASSERT_EQ(away(), Pids{p3.tid});
  turns.blocks(p1, {socket_endpoint(9)});
  turns.turn();
  ASSERT_EQ(away().size(), 1u);
  EXPECT_TRUE(away() == Pids{p2.tid} || away() == Pids{p4.tid}) << "another one makes room for it";
}

// Else all would wait for each other's pages until that is seen, three seconds later.
TEST_F(MemoryDeciderTest, RoomIsMadeForOneThatIsBackAtOnceAndOnlyIfItHasNone) {
  turns.enroll(p3, SchedAttr{.nice = 10});
  thrash();
  ASSERT_EQ(away(), Pids{p3.tid});
  has(p3, 0, 500);
  room = 1000 * mib;
  window(false);
  turns.panel->on(MemoryEvent{turns.now, p3.tid, MemoryEvent::What::input});
  turns.turn();
  EXPECT_EQ(away(), Pids{}) << "with what the others want it fits";
}

TEST_F(MemoryDeciderTest, NoneLeavesForOneThatIsBackWhereThatWouldNotBeEnough) {
  turns.enroll(p3, SchedAttr{.nice = 10});
  thrash();
  ASSERT_EQ(away(), Pids{p3.tid});
  for (const ThreadId id : {p1, p2, p4}) has(id, 10, 0);
  has(p3, 0, 5000);
  window(false);
  turns.panel->on(MemoryEvent{turns.now, p3.tid, MemoryEvent::What::input});
  turns.turn();
  EXPECT_EQ(away(), Pids{});
}

TEST_F(MemoryDeciderTest, OneToWhichInputHasComeIsBackAtOnce) {
  turns.enroll(p3, SchedAttr{.nice = 10});
  thrash();
  ASSERT_EQ(away(), Pids{p3.tid});
  turns.panel->on(MemoryEvent{turns.now, p3.tid, MemoryEvent::What::input});
  turns.turn();
  EXPECT_EQ(std::ranges::count(away(), p3.tid), 0);
  thrash(4);
  EXPECT_EQ(std::ranges::count(away(), p3.tid), 0) << "it stays for some seconds";
  thrash(6);
  EXPECT_EQ(std::ranges::count(away(), p3.tid), 1);
}

TEST_F(MemoryDeciderTest, ItComesBackWhereThereIsRoom) {
  thrash();
  const Pids out = away();
  ASSERT_EQ(out.size(), 1u);
  rest(8);
  EXPECT_EQ(away(), out) << "nothing is free";
  room = 1000 * mib;
  rest(1);
  EXPECT_EQ(away(), Pids{});
}

TEST_F(MemoryDeciderTest, TheBestComesBackFirst) {
  turns.enroll(p1, SchedAttr{.nice = -1});
  turns.enroll(p2, SchedAttr{.nice = 5});
  turns.enroll(p3, SchedAttr{.nice = 10});
  thrash(6);
  ASSERT_EQ(away(), (Pids{p2.tid, p3.tid}));
  room = 200 * mib;
  rest(4);
  EXPECT_EQ(away(), Pids{p3.tid});
}

TEST_F(MemoryDeciderTest, EqualsTakeTurns) {
  thrash();
  const Pids first = away();
  ASSERT_EQ(first.size(), 1u);
  rest(10);
  EXPECT_EQ(away(), first) << "a turn is longer";
  rest(10);
  ASSERT_EQ(away().size(), 1u);
  EXPECT_NE(away(), first);
  std::map<pid_t, int> turns_of;
  for (int i = 0; i < 200; ++i) {
    rest(1);
    for (const pid_t pid : away()) ++turns_of[pid];
  }
  EXPECT_EQ(turns_of.size(), 4u) << "all get on";
}

TEST_F(MemoryDeciderTest, OneThatMattersMoreIsNotPutAwayForOneThatMattersLess) {
  turns.enroll(p3, SchedAttr{.nice = 10});
  thrash();
  rest(100);
  EXPECT_EQ(away(), Pids{p3.tid});
}

TEST_F(MemoryDeciderTest, WhereNoSetIsEnoughNoneLeavesAndItSaysSo) {
  for (const ThreadId id : {p1, p2, p3, p4}) has(id, 10, 5000);
  thrash(20);
  EXPECT_EQ(away(), Pids{});
  ASSERT_EQ(decider->groups().size(), 1u);
  EXPECT_TRUE(decider->groups()[0].thrashes);
  EXPECT_EQ(decider->groups()[0].stuck, MemoryDecider::Why::no_set_frees_enough);
}

TEST_F(MemoryDeciderTest, OneThatCannotBePutAwayIsLeftAloneForAWhile) {
  turns.enroll(p3, SchedAttr{.nice = 10});
  thrash();
  ASSERT_EQ(away(), Pids{p3.tid});
  turns.panel->on(MemoryEvent{turns.now, p3.tid, MemoryEvent::What::refused});
  turns.turn();
  EXPECT_EQ(std::ranges::count(away(), p3.tid), 0);
  thrash(6);
  EXPECT_FALSE(away().empty());
  EXPECT_EQ(std::ranges::count(away(), p3.tid), 0);
}

// A container thrashes within its limit while the machine is at rest.
TEST_F(MemoryDeciderTest, OfAGroupThatThrashesItsOwnLeave) {
  groups = {{p1, "/ct"}, {p2, "/ct/worker"}, {p3, "/ctx"}};
  for (const ThreadId id : {p1, p2, p3, p4}) has(id, 400, 100);
  turns.enroll(p3, SchedAttr{.nice = 19});
  turns.enroll(p4, SchedAttr{.nice = 19});
  thrash(3, "/ct");
  ASSERT_EQ(away().size(), 1u);
  EXPECT_TRUE(away() == Pids{p1.tid} || away() == Pids{p2.tid});
}

// The machine's counts are those of its groups, too.
TEST_F(MemoryDeciderTest, NoneLeavesTheMachineThatHasRoomForAll) {
  room = 1000 * mib;
  thrash(20);
  EXPECT_EQ(away(), Pids{});
  EXPECT_EQ(decider->groups()[0].stuck, MemoryDecider::Why::none);
}

TEST_F(MemoryDeciderTest, AllAreBackWhereNothingTellsOfMemoryAnyMore) {
  thrash();
  ASSERT_EQ(away().size(), 1u);
  turns.pass(10s);
  turns.panel->on(MemoryEvent{turns.now, 1, MemoryEvent::What::input});
  turns.turn();
  EXPECT_EQ(away(), Pids{});
}

TEST_F(MemoryDeciderTest, AJobOfSeveralProcessesLeavesAndReturnsAsOne) {
  sizes[p2].job = sizes[p1].job;
  turns.enroll(p1, SchedAttr{.nice = 10});
  turns.enroll(p2, SchedAttr{.nice = 10});
  thrash();
  EXPECT_EQ(away(), (Pids{p1.tid, p2.tid}));
  turns.leaves(p1);
  sizes.erase(p1);
  turns.turn();
  EXPECT_EQ(away(), Pids{p2.tid});
  turns.panel->on(MemoryEvent{turns.now, p2.tid, MemoryEvent::What::input});
  turns.turn();
  EXPECT_EQ(std::ranges::count(away(), p2.tid), 0) << "and makes another one leave";
}

}  // namespace
}  // namespace swapd::test
