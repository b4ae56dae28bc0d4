// Messages that a process which is not managed passes on: whom may a waiter's message have reached?
#include "observe/resolve/relays.h"

#include <gtest/gtest.h>

namespace swapd::observe {
namespace {

using namespace std::chrono_literals;

constexpr ThreadId bus{10, 1};
constexpr pid_t client = 20, service = 30, other = 40;
const Resource end{ResourceKind::socket, {100}};
const std::vector<Resource> awaited{{ResourceKind::eventfd, {7}}, end};

Time at(int ms) { return Time{} + 1s + std::chrono::milliseconds(ms); }

class RelaysTest : public ::testing::Test {
 protected:
  RelaysTest() {
    std::vector<ThreadId> dropped;
    EXPECT_TRUE(relays.holds(end, bus, dropped));
    EXPECT_TRUE(dropped.empty());
    EXPECT_FALSE(relays.take_asked(bus.tid));
  }
  void sleeping() { relays.blocked(bus.tid, at(-20)); }
  Relays relays;
};

TEST_F(RelaysTest, TheWaiterWokeTheBusWhichSleepsAgain) {
  sleeping();
  relays.woken(bus.tid, client, client, at(0), 5);
  relays.blocked(bus.tid, at(2));
  const auto run = relays.run_of(client, awaited, at(-10), at(1));
  ASSERT_TRUE(run);
  EXPECT_EQ(run->tid, bus.tid);
  EXPECT_TRUE(run->over);
  EXPECT_TRUE(run->began_it);
  EXPECT_EQ(run->first, 6U) << "the first wake that it made after this one";
}

TEST_F(RelaysTest, AnotherThreadOfTheWaitersProcessMayHaveSent) {
  sleeping();
  relays.woken(bus.tid, client + 1, client, at(0), 5);
  relays.blocked(bus.tid, at(1));
  const auto run = relays.run_of(client, awaited, at(-10), at(3));
  ASSERT_TRUE(run);
  EXPECT_TRUE(run->began_it);
}

TEST_F(RelaysTest, WhileTheBusIsAwakeItMayStillPassTheMessageOn) {
  sleeping();
  relays.woken(bus.tid, client, client, at(0), 5);
  const auto run = relays.run_of(client, awaited, at(-10), at(1));
  ASSERT_TRUE(run);
  EXPECT_FALSE(run->over);
}

// It ran on another CPU, and slept before the client did.
TEST_F(RelaysTest, ARunThatWasOverBeforeTheWaitBeganCounts) {
  sleeping();
  relays.woken(bus.tid, client, client, at(0), 5);
  relays.blocked(bus.tid, at(1));
  EXPECT_TRUE(relays.run_of(client, awaited, at(-10), at(3)));
}

TEST_F(RelaysTest, ABusThatWasAwakeMayHaveGotTheMessageAnyway) {
  sleeping();
  relays.woken(bus.tid, other, other, at(0), 5);
  const auto run = relays.run_of(client, awaited, at(-10), at(1));
  ASSERT_TRUE(run);
  EXPECT_FALSE(run->began_it);
}

TEST_F(RelaysTest, OneThatIsNewHereCountsAsAwake) {
  const auto run = relays.run_of(client, awaited, at(-10), at(1));
  ASSERT_TRUE(run);
  EXPECT_FALSE(run->over);
  EXPECT_TRUE(run->unseen);
  relays.blocked(bus.tid, at(2));
  EXPECT_TRUE(relays.run_of(client, awaited, at(-10), at(1))->over);
  EXPECT_FALSE(relays.run_of(client, awaited, at(3), at(4)));
}

TEST_F(RelaysTest, WhatOthersSentIsNotTheWaiters) {
  sleeping();
  relays.woken(bus.tid, other, other, at(0), 5);
  relays.blocked(bus.tid, at(1));
  EXPECT_FALSE(relays.run_of(client, awaited, at(-10), at(3))) << "before the wait began";
  relays.woken(bus.tid, other, other, at(5), 6);
  EXPECT_FALSE(relays.run_of(client, awaited, at(-10), at(3))) << "after it";
}

TEST_F(RelaysTest, AMessageThatWasAnsweredIsNotThisWaits) {
  sleeping();
  relays.woken(bus.tid, client, client, at(0), 5);
  relays.blocked(bus.tid, at(1));
  EXPECT_FALSE(relays.run_of(client, awaited, at(10), at(12))) << "the last wait ended at 10";
}

TEST_F(RelaysTest, TheNextRunBoundsTheWakes) {
  sleeping();
  relays.woken(bus.tid, client, client, at(0), 5);
  relays.blocked(bus.tid, at(1));
  relays.woken(bus.tid, other, other, at(2), 7);
  relays.blocked(bus.tid, at(3));
  const auto run = relays.run_of(client, awaited, at(-10), at(1));
  ASSERT_TRUE(run);
  EXPECT_EQ(run->first, 6U);
  EXPECT_EQ(run->last, 7U);
  EXPECT_EQ(relays.last_sender(bus.tid), other);
}

// A bus that was busy with another one's message as the client began to wait may have answered the client by itself.
TEST_F(RelaysTest, WhoWokeItBeforeTheWaitBeganHasNotAnswered) {
  EXPECT_FALSE(relays.woken_after(bus.tid, at(0))) << "not seen yet";
  sleeping();
  relays.woken(bus.tid, service, service, at(0), 5);
  EXPECT_FALSE(relays.woken_after(bus.tid, at(1)));
  relays.blocked(bus.tid, at(2));
  relays.woken(bus.tid, service, service, at(3), 6);
  EXPECT_TRUE(relays.woken_after(bus.tid, at(1)));
}

TEST_F(RelaysTest, ABlockThatWasNotHeardOfEndsWithTheNextWake) {
  sleeping();
  relays.woken(bus.tid, client, client, at(0), 5);
  relays.woken(bus.tid, service, service, at(4), 6);
  const auto run = relays.run_of(client, awaited, at(-10), at(1));
  ASSERT_TRUE(run);
  EXPECT_TRUE(run->over);
}

TEST_F(RelaysTest, OnlyTheHolderOfWhatIsAwaitedIsAsked) {
  sleeping();
  relays.woken(bus.tid, client, client, at(0), 5);
  EXPECT_FALSE(relays.run_of(client, std::vector<Resource>{{ResourceKind::socket, {101}}}, at(-10), at(1)));
  EXPECT_EQ(relays.end_of(bus.tid, awaited), end);
}

TEST_F(RelaysTest, OneRoundTripProves) {
  sleeping();
  EXPECT_FALSE(relays.proven(bus.tid));
  relays.passed_on(bus.tid);
  EXPECT_TRUE(relays.passes_on(bus.tid));
  EXPECT_FALSE(relays.proven(bus.tid));
  relays.prove(bus.tid);
  EXPECT_TRUE(relays.proven(bus.tid));
}

TEST_F(RelaysTest, ItIsAskedOnce) {
  sleeping();
  relays.ask(bus.tid);
  EXPECT_TRUE(relays.take_asked(bus.tid));
  EXPECT_FALSE(relays.take_asked(bus.tid));
}

TEST_F(RelaysTest, ATidThatIsAnotherThreadsByNowIsNew) {
  sleeping();
  relays.prove(bus.tid);
  std::vector<ThreadId> dropped;
  EXPECT_FALSE(relays.holds(end, bus, dropped));
  EXPECT_TRUE(relays.holds(end, ThreadId{bus.tid, 2}, dropped));
  EXPECT_FALSE(relays.proven(bus.tid));
  EXPECT_FALSE(relays.thread(bus.tid) == bus);
}

TEST_F(RelaysTest, TheOneOfLeastUseMakesRoom) {
  sleeping();
  std::vector<ThreadId> dropped;
  for (std::size_t i = 1; i < Relays::max_threads; ++i)
    EXPECT_TRUE(relays.holds({ResourceKind::socket, {200 + i}}, ThreadId{static_cast<pid_t>(200 + i), 1}, dropped));
  EXPECT_TRUE(dropped.empty());
  EXPECT_FALSE(relays.holds(end, bus, dropped)) << "which is of use again";
  EXPECT_TRUE(relays.holds({ResourceKind::socket, {999}}, ThreadId{999, 1}, dropped));
  EXPECT_EQ(dropped, (std::vector{ThreadId{201, 1}}));
}

TEST_F(RelaysTest, WhatWasForgottenIsNotKnown) {
  sleeping();
  relays.forget(ThreadId{bus.tid, 2});
  EXPECT_TRUE(relays.knows(bus.tid));
  relays.forget(bus);
  EXPECT_FALSE(relays.knows(bus.tid));
  EXPECT_FALSE(relays.end_of(bus.tid, awaited));
}

TEST(MessageBuses, AreKnownByName) {
  EXPECT_TRUE(is_message_bus("dbus-daemon"));
  EXPECT_TRUE(is_message_bus("dbus-broker"));
  EXPECT_FALSE(is_message_bus("Xorg"));
  EXPECT_FALSE(is_message_bus("dbus-broker-lau"));
}

}  // namespace
}  // namespace swapd::observe
