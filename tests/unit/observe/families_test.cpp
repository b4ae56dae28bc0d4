// The wakers of waits for signals in a family of processes.
#include "observe/resolve/families.h"

#include <gtest/gtest.h>

#include <vector>

namespace swapd::observe {
namespace {

constexpr ThreadId thread(pid_t tid) { return {tid, 1000}; }
constexpr Family postmaster{.parent = thread(10), .dev = 1, .ino = 2};
constexpr Family another{.parent = thread(20), .dev = 1, .ino = 2};

TEST(FamilySenders, WhatOneSiblingTaughtHoldsForAll) {
  FamilySenders senders;
  EXPECT_TRUE(senders.of(postmaster).empty());
  senders.ended(postmaster, thread(11), false);
  EXPECT_EQ(senders.of(postmaster), std::vector{thread(11)});
  EXPECT_TRUE(senders.of(another).empty()) << "the same program, but not the same server";
}

TEST(FamilySenders, TheOneThatEndedMostComesFirstAndOfEqualsTheLast) {
  FamilySenders senders;
  senders.ended(postmaster, thread(11), false);
  senders.ended(postmaster, thread(12), false);
  EXPECT_EQ(senders.of(postmaster), (std::vector{thread(12), thread(11)}));
  senders.ended(postmaster, thread(11), false);
  senders.ended(postmaster, thread(13), false);
  EXPECT_EQ(senders.of(postmaster), (std::vector{thread(11), thread(13), thread(12)}));
}

TEST(FamilySenders, WhatWasOftenLongAgoDoesNotStandInTheWayForEver) {
  FamilySenders senders;
  for (int i = 0; i < 1000; ++i) senders.ended(postmaster, thread(11), false);
  for (int i = 0; i < 16; ++i) senders.ended(postmaster, thread(12), false);
  EXPECT_EQ(senders.of(postmaster).front(), thread(12));
}

TEST(FamilySenders, OneInterruptionMakesNoLatch) {
  FamilySenders senders;
  senders.ended(postmaster, thread(11), true);
  EXPECT_FALSE(senders.has_latches(postmaster));
  senders.ended(postmaster, thread(11), true);
  EXPECT_TRUE(senders.has_latches(postmaster));
  EXPECT_FALSE(senders.has_latches(another));
}

TEST(FamilySenders, TheDeadAreForgotten) {
  FamilySenders senders;
  senders.ended(postmaster, thread(11), false);
  senders.ended(postmaster, thread(12), false);
  senders.forget(thread(12));
  EXPECT_EQ(senders.of(postmaster), std::vector{thread(11)});
  senders.forget(thread(10));
  EXPECT_TRUE(senders.of(postmaster).empty()) << "with the parent the family has gone";
}

TEST(FamilySenders, IsBounded) {
  FamilySenders senders;
  for (pid_t tid = 100; tid < 200; ++tid) senders.ended(postmaster, thread(tid), false);
  EXPECT_EQ(senders.of(postmaster).size(), FamilySenders::max_senders);
  EXPECT_EQ(senders.of(postmaster).front(), thread(199));
  for (pid_t parent = 1000; parent < 1200; ++parent)
    senders.ended({.parent = thread(parent), .dev = 1, .ino = 2}, thread(11), false);
  EXPECT_TRUE(senders.of(postmaster).empty()) << "the one that was heard of least lately has made room";
}

}  // namespace
}  // namespace swapd::observe
