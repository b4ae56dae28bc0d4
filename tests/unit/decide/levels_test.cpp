// Levels: whom a person waits for is found from what its threads await. Rules of one thread, the bound on all of them,
// and the decider in a panel.
#include "decide/levels/levels_decider.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include "unit/decide/turns.h"

namespace swapd::test {
namespace {

using decide::Awaited;
using decide::InteractiveShare;
using decide::LevelsDecider;
using decide::ThreadLevel;
using namespace std::chrono_literals;

constexpr Time at{1h};

TEST(ThreadLevel, BlockingRaisesItByWhatTheEventIsWorth) {
  for (const auto& [awaited, rise] : {std::pair{Awaited::terminal_input, 6}, std::pair{Awaited::terminal_output, 4},
                                      std::pair{Awaited::disk, 2}, std::pair{Awaited::other, 0}}) {
    ThreadLevel level;
    EXPECT_EQ(level.blocks(awaited, at), rise > 0);
    EXPECT_EQ(level.above(), rise);
  }
}

TEST(ThreadLevel, AQuantumTakesOneAwayAndNoneBelowTheBase) {
  ThreadLevel level;
  level.blocks(Awaited::terminal_output, at);
  for (const int above : {3, 2, 1, 0, 0, 0}) {
    level.uses_quantum();
    EXPECT_EQ(level.above(), above);
  }
}

TEST(ThreadLevel, TheBetterEventCounts) {
  ThreadLevel level;
  level.blocks(Awaited::terminal_input, at);
  EXPECT_FALSE(level.blocks(Awaited::disk, at + 1ms));
  EXPECT_EQ(level.above(), 6);
  EXPECT_EQ(level.why(), Awaited::terminal_input);
  EXPECT_EQ(level.since(), at);
  for (int i = 0; i < 5; ++i) level.uses_quantum();
  EXPECT_TRUE(level.blocks(Awaited::disk, at + 2ms));
  EXPECT_EQ(level.above(), 2);
  EXPECT_EQ(level.why(), Awaited::disk);
}

TEST(ThreadLevel, TheBaseIsTheNiceValues) {
  EXPECT_EQ(ThreadLevel::base_of(0), ThreadLevel::of_nice_0);
  EXPECT_EQ(ThreadLevel::base_of(19), ThreadLevel::of_nice_0 - 4);
  EXPECT_EQ(ThreadLevel::base_of(-20), ThreadLevel::of_nice_0 + 5);
  EXPECT_EQ(ThreadLevel::base_of(3), ThreadLevel::of_nice_0);
  EXPECT_EQ(ThreadLevel::base_of(-3), ThreadLevel::of_nice_0);
}

TEST(ThreadLevel, NoneIsAboveTheHighest) {
  ThreadLevel level(-20);
  level.blocks(Awaited::terminal_input, at);
  EXPECT_EQ(level.level(), ThreadLevel::highest);
}

TEST(ThreadLevel, ANewNiceValueMovesTheBaseAlone) {
  ThreadLevel level;
  level.blocks(Awaited::terminal_output, at);
  level.set_nice(8);
  EXPECT_EQ(level.above(), 4);
  EXPECT_EQ(level.base(), ThreadLevel::of_nice_0 - 2);
}

TEST(ThreadLevel, QuantaAreTheLongerTheLowerTheLevelIs) {
  EXPECT_EQ(ThreadLevel::quantum(ThreadLevel::highest), 5ms);
  for (int level = 1; level <= ThreadLevel::highest; ++level)
    EXPECT_LE(ThreadLevel::quantum(level), ThreadLevel::quantum(level - 1));
  EXPECT_EQ(ThreadLevel::quantum(0), 160ms);
}

TEST(ThreadLevel, APersonWaitsForWhatAwaitsATerminal) {
  ThreadLevel level;
  EXPECT_FALSE(level.interactive());
  level.blocks(Awaited::disk, at);
  EXPECT_FALSE(level.interactive());
  level.blocks(Awaited::terminal_input, at);
  EXPECT_TRUE(level.interactive());
  level.sink();
  EXPECT_FALSE(level.interactive());
}

TEST(InteractiveShare, LastsWhileNoMoreIsUsedThanComesIn) {
  InteractiveShare share(0.5, 1s);
  Time now = at;
  for (int i = 0; i < 100; ++i) {
    share.use(50ms, now);
    now += 100ms;
    EXPECT_TRUE(share.lasts(now));
  }
}

TEST(InteractiveShare, EndsAndComesBack) {
  InteractiveShare share(0.5, 1s);
  Time now = at;
  int used = 0;
  for (; share.lasts(now) && used < 1000; ++used) {
    share.use(10ms, now);
    now += 10ms;
  }
  EXPECT_NEAR(used, 200, 2) << "the burst, and half a CPU";
  const Time again = share.lasts_at(now);
  EXPECT_GT(again, now);
  EXPECT_FALSE(share.lasts(now));
  EXPECT_TRUE(share.lasts(again));
}

Blocked blocked(std::int32_t call, std::vector<Resource> awaited) { return {at, p1, call, std::move(awaited)}; }
const Resource terminal = pty_side(3, PtySide::master, 24), program = pty_side(3, PtySide::slave, 24);

TEST(AwaitedBy, AProgramInATerminalAwaitsIt) {
  EXPECT_EQ(decide::awaited_by(blocked(SYS_read, {terminal})), Awaited::terminal_input);
  EXPECT_EQ(decide::awaited_by(blocked(SYS_pselect6, {pipe_end(7, PipeEnd::write), terminal})),
            Awaited::terminal_input);
  EXPECT_EQ(decide::awaited_by(blocked(SYS_write, {terminal})), Awaited::terminal_output);
}

TEST(AwaitedBy, ATerminalThatAwaitsItsProgramAwaitsNoPerson) {
  EXPECT_EQ(decide::awaited_by(blocked(SYS_read, {program})), Awaited::other);
}

TEST(AwaitedBy, ACallOnAFileThatNoThreadProvidesAwaitsADisk) {
  EXPECT_EQ(decide::awaited_by(blocked(SYS_pread64, {})), Awaited::disk);
  EXPECT_EQ(decide::awaited_by(blocked(SYS_clock_nanosleep, {})), Awaited::other);
  EXPECT_EQ(decide::awaited_by(blocked(SYS_read, {socket_endpoint(5)})), Awaited::other);
}

class Levels : public testing::Test {
 protected:
  static constexpr std::size_t levels = 1;  // among the deciders
  explicit Levels(decide::LevelsConfig config = {.common = {.nice = 5}}) : turns(make(std::move(config))) {}
  std::vector<std::unique_ptr<decide::Decider>> make(decide::LevelsConfig config) {
    auto made = std::make_unique<LevelsDecider>(std::move(config));
    decider = made.get();
    std::vector<std::unique_ptr<decide::Decider>> all;
    all.push_back(std::move(made));
    return all;
  }
  void awaits(ThreadId id, std::int32_t call, std::vector<Resource> what) {
    turns.take(Blocked{turns.now, id, call, std::move(what)});
    turns.turn();
  }
  void wakes(ThreadId id) {
    turns.take(Woken{turns.now, id, std::nullopt, std::nullopt, true});
    turns.turn();
  }
  [[nodiscard]] const decide::Timer* quantum(ThreadId id) const {
    for (const decide::Timer& one : turns.panel->standing(levels).timers)
      if (one.requester == id) return &one;
    return nullptr;
  }
  void uses_quantum(ThreadId id) {
    const decide::Timer* timer = quantum(id);
    ASSERT_NE(timer, nullptr);
    turns.pass(timer->period);
    turns.panel->on(decide::TimerFired{.time = turns.now, .decider = levels, .requester = id, .serial = timer->serial});
    turns.turn();
  }
  [[nodiscard]] int nice(ThreadId id) const {
    const auto attr = turns.runs_as(id);
    return attr ? attr->nice : 0;
  }

  LevelsDecider* decider = nullptr;
  Turns turns;
};

TEST_F(Levels, WhatReadsItsTerminalGoesBeforeWhatComputes) {
  turns.enroll(p1);
  turns.enroll(p2);
  turns.turn();
  EXPECT_FALSE(turns.runs_as(p1));
  awaits(p1, SYS_read, {terminal});
  ASSERT_TRUE(turns.runs_as(p1));
  EXPECT_EQ(nice(p1), -5);
  EXPECT_EQ(turns.runs_as(p1)->runtime_ns, LevelsDecider::slice_ns);
  EXPECT_FALSE(turns.runs_as(p2));
  EXPECT_EQ(turns.grant(p1)->run.cause.by, "levels");
  EXPECT_EQ(turns.grant(p1)->run.cause.through, terminal);
}

TEST_F(Levels, ItSinksAsItUsesItsQuanta) {
  turns.enroll(p1);
  awaits(p1, SYS_read, {terminal});
  wakes(p1);
  std::vector<int> nices;
  for (int i = 0; i < 6; ++i) {
    nices.push_back(nice(p1));
    uses_quantum(p1);
  }
  EXPECT_EQ(nices, (std::vector{-5, -5, -4, -3, -2, -1}));
  EXPECT_FALSE(turns.runs_as(p1));
  EXPECT_EQ(quantum(p1), nullptr) << "nothing is measured at the base level";
}

TEST_F(Levels, ReadingAgainBringsNoMoreThanTheFirstTime) {
  turns.enroll(p1);
  for (int i = 0; i < 20; ++i) {
    awaits(p1, SYS_read, {terminal});
    wakes(p1);
  }
  EXPECT_EQ(nice(p1), -5);
}

TEST_F(Levels, AQuantumOfBeforeItBlockedAgainCountsNoMore) {
  turns.enroll(p1);
  awaits(p1, SYS_read, {terminal});
  const auto old = quantum(p1)->serial;
  awaits(p1, SYS_read, {terminal});
  turns.panel->on(decide::TimerFired{.time = turns.now, .decider = levels, .requester = p1, .serial = old});
  turns.turn();
  EXPECT_EQ(decider->level(p1)->above(), 6);
}

TEST_F(Levels, ItsOwnNiceValueIsWhatItStartsFrom) {
  turns.enroll(p1, SchedAttr{.nice = 10});
  awaits(p1, SYS_read, {terminal});
  EXPECT_EQ(nice(p1), 5);
  turns.enroll(p1, SchedAttr{.nice = 4});
  turns.turn();
  EXPECT_EQ(nice(p1), -1);
}

TEST_F(Levels, RealTimeThreadsHaveNone) {
  turns.enroll(p1, SchedAttr{.policy = SchedPolicy::fifo, .rt_priority = 1});
  awaits(p1, SYS_read, {terminal});
  EXPECT_FALSE(turns.runs_as(p1));
  EXPECT_EQ(decider->level(p1), nullptr);
  turns.enroll(p2);
  awaits(p2, SYS_read, {terminal});
  turns.enroll(p2, SchedAttr{.policy = SchedPolicy::fifo, .rt_priority = 1});
  turns.turn();
  EXPECT_FALSE(turns.runs_as(p2)) << "a class of its own counts from then on";
}

TEST_F(Levels, OnlyWaitsOfSomeLengthAreAskedFor) {
  turns.enroll(p1);
  turns.turn();
  EXPECT_EQ(turns.interests[p1].watch, decide::Interest::Watch::requester);
  EXPECT_EQ(turns.interests[p1].patience, LevelsDecider::patience);
}

TEST_F(Levels, TogetherTheyHaveABoundedShare) {
  turns.enroll(p1);
  Duration used{};
  while (!decider->rests() && used < 10s) {
    awaits(p1, SYS_read, {terminal});
    wakes(p1);
    used += quantum(p1)->period;
    uses_quantum(p1);
  }
  EXPECT_LT(used, 4s) << "the CPU is not given back, and half of one comes in";
  EXPECT_FALSE(turns.runs_as(p1));
  turns.pass(1s);
  turns.turn();
  EXPECT_FALSE(decider->rests());
  awaits(p1, SYS_read, {terminal});
  EXPECT_EQ(nice(p1), -5);
}

// A person waits for the server too.
TEST_F(Levels, WhatAwaitsATerminalDonatesWithoutAnyPriority) {
  turns.enroll(p1);
  turns.enroll(p2);
  turns.provides(p2, socket_endpoint(9));
  turns.turn();
  awaits(p1, SYS_recvfrom, {socket_endpoint(9)});
  EXPECT_FALSE(turns.runs_as(p2)) << "no person waits for it, as far as is known";
  wakes(p1);
  awaits(p1, SYS_read, {terminal});
  wakes(p1);
  awaits(p1, SYS_recvfrom, {socket_endpoint(9)});
  ASSERT_TRUE(turns.runs_as(p2));
  EXPECT_EQ(turns.runs_as(p2)->nice, -5);
  EXPECT_EQ(turns.on_behalf_of(p2), p1);
}

TEST_F(Levels, ItDonatesNoMoreOnceItComputes) {
  turns.enroll(p1);
  turns.enroll(p2);
  turns.provides(p2, socket_endpoint(9));
  awaits(p1, SYS_read, {terminal});
  wakes(p1);
  while (quantum(p1) != nullptr) uses_quantum(p1);
  turns.turn();
  awaits(p1, SYS_recvfrom, {socket_endpoint(9)});
  EXPECT_FALSE(turns.runs_as(p2));
}

TEST_F(Levels, AThreadThatLeavesIsForgotten) {
  turns.enroll(p1);
  awaits(p1, SYS_read, {terminal});
  turns.leaves(p1);
  turns.turn();
  EXPECT_FALSE(turns.runs_as(p1));
  EXPECT_EQ(decider->level(p1), nullptr);
}

TEST_F(Levels, OfAClassThatIsOffNoneIsRaised) {
  const decide::LevelsConfig config{.common = {.nice = 5}, .classes = {{}, {.nice = 2}}};
  EXPECT_EQ(config.of(0).nice, 5);
  EXPECT_EQ(config.of(1).nice, 0);
  EXPECT_EQ(config.of(2).nice, 2);
}

// Class 1 is that of the display server.
class LevelsOfADesktop : public Levels {
 protected:
  LevelsOfADesktop() : Levels({.common = {.nice = 5}, .classes = {{.nice = 5, .display = true}}}) {
    turns.take(Enrolled{turns.now, server, server.tid, 1000, {}, 1});
    turns.enroll(p1);
    turns.turn();
  }
  void answer(const Resource& socket, std::vector<ThreadId> holders) {
    turns.take(Holders{turns.now, socket, Evidence::holder, std::move(holders)});
    turns.turn();
  }
  ThreadId server = p2;
  Resource connection = socket_endpoint(9);
};

TEST_F(LevelsOfADesktop, ADisplayServerAwaitsInput) {
  awaits(server, SYS_epoll_wait, {});
  EXPECT_EQ(nice(server), -5);
  EXPECT_EQ(decider->level(server)->why(), Awaited::terminal_input);
}

TEST_F(LevelsOfADesktop, SoDoesAClientThatWaitsForIt) {
  awaits(p1, SYS_poll, {pipe_end(3, PipeEnd::write), connection});
  ASSERT_EQ(turns.questions.size(), 1u);
  EXPECT_EQ(turns.questions.front().waiter, p1);
  EXPECT_EQ(turns.questions.front().resources, std::vector{connection});
  EXPECT_EQ(nice(p1), 0) << "not known yet";
  answer(connection, {server});
  EXPECT_EQ(nice(p1), -5) << "though it has waited since before";
}

TEST_F(LevelsOfADesktop, AConnectionIsAskedAboutOnce) {
  awaits(p1, SYS_poll, {connection});
  answer(connection, {server});
  while (quantum(p1) != nullptr) uses_quantum(p1);
  awaits(p1, SYS_poll, {connection});
  EXPECT_EQ(nice(p1), -5);
  EXPECT_TRUE(turns.questions.empty());
}

TEST_F(LevelsOfADesktop, OneThatWaitsForAnotherServerAwaitsNoPerson) {
  awaits(p1, SYS_poll, {connection});
  answer(connection, {p3});
  awaits(p1, SYS_poll, {connection});
  EXPECT_EQ(nice(p1), 0);
  EXPECT_TRUE(turns.questions.empty()) << "that is known";
}

TEST_F(LevelsOfADesktop, AnAnswerThatComesAfterItsWaitRaisesNone) {
  awaits(p1, SYS_poll, {connection});
  awaits(p1, SYS_poll, {socket_endpoint(10)});
  answer(connection, {server});
  EXPECT_EQ(nice(p1), 0);
}

TEST_F(LevelsOfADesktop, WithoutADisplayServerNothingIsAsked) {
  turns.leaves(server);
  awaits(p1, SYS_poll, {connection});
  EXPECT_TRUE(turns.questions.empty());
}

}  // namespace
}  // namespace swapd::test
