// Children that are dead before swapd has looked.
#include "observe/bpf/short_lived_children.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace swapd::observe {
namespace {

using sys::BpfRecord;
using What = BpfRecord::What;

constexpr pid_t parent = 10;

BpfRecord fork_of(pid_t child, pid_t by = parent) {
  return {.what = What::fork, .tid = child, .tgid = child, .parent = by, .parent_tgid = by};
}
BpfRecord record(What what, pid_t tid) { return {.what = what, .tid = tid, .tgid = tid}; }

std::string skipped(const std::vector<BpfRecord>& records, pid_t known = 0) {
  const auto bits = short_lives(records, [&](pid_t tid) { return tid == known; });
  std::string out;
  for (std::size_t i = 0; i < records.size(); ++i) out += bits[i] ? 's' : '.';
  return out;
}

TEST(ShortLives, AreSkippedAsAWhole) {
  EXPECT_EQ(skipped({fork_of(20), record(What::exec, 20), record(What::blocked, 20), record(What::woken, 20),
                     record(What::exit, 20)}),
            "sssss");
}

TEST(ShortLives, WhatOthersDoMeanwhileIsNot) {
  EXPECT_EQ(skipped({record(What::blocked, 30), fork_of(20), record(What::woken, 30), record(What::exit, 20)}), ".s.s");
}

TEST(ShortLives, WhoStillLivesIsNot) {
  EXPECT_EQ(skipped({fork_of(20), record(What::exec, 20)}), "..");
  EXPECT_EQ(skipped({fork_of(20), record(What::exit, 21)}), "..");
}

// The end alone: its beginning was taken in another batch.
TEST(ShortLives, WhoWasKnownBeforeIsNot) { EXPECT_EQ(skipped({record(What::exit, 20)}), "."); }

TEST(ShortLives, WhoHasForkedIsNotButItsDeadChildIs) {
  EXPECT_EQ(skipped({fork_of(20), fork_of(21, 20), record(What::exit, 21), record(What::exit, 20)}), ".ss.");
}

// A child that the parent waits for must be known, as long as the parent waits.
TEST(ShortLives, AWaitingParentsAreNot) {
  EXPECT_EQ(skipped({fork_of(20), record(What::blocked, parent), record(What::exit, 20)}), "...");
  EXPECT_EQ(skipped({fork_of(20), record(What::blocked, parent), record(What::exit, 20), record(What::woken, parent)}),
            "s.s.");
}

TEST(ShortLives, WhoIsAMemberAlreadyIsNot) { EXPECT_EQ(skipped({fork_of(20), record(What::exit, 20)}, 20), ".."); }

TEST(ShortLives, ATidThatIsUsedAgainIsTwoLives) {
  EXPECT_EQ(skipped({fork_of(20), record(What::exit, 20), fork_of(20), record(What::exec, 20)}), "ss..");
}

TEST(ShortLives, ThreadsAndUnmanagedChildrenAreNot) {
  BpfRecord thread = fork_of(20);
  thread.tgid = parent;
  EXPECT_EQ(skipped({thread, record(What::exit, 20)}), "..");
  BpfRecord without = fork_of(20);
  without.without_slot = true;
  EXPECT_EQ(skipped({without, record(What::exit, 20)}), "..");
}

TEST(ShortLives, LeavingTheCpuIsToldOfWhoWaited) {
  EXPECT_EQ(skipped({fork_of(20), {.what = What::left, .tid = 20, .waiter = parent}, record(What::exit, 20)}), "s.s");
}

}  // namespace
}  // namespace swapd::observe
