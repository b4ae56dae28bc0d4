// What the kernel's texts on memory say.
#include "sys/memory/memory_stat.h"

#include <gtest/gtest.h>
#include <map>

#include <filesystem>
#include <fstream>

#include "sys/memory/process_pages.h"

namespace swapd::test {
namespace {

namespace fs = std::filesystem;
using sys::parse::number_of;

TEST(MemoryText, ANumberIsThatOfItsKey) {
  const std::string text = "pswpin 12\npswpin_total 7\nMemAvailable:   24 kB\nSwap:\t 4096 kB\nodd\n";
  EXPECT_EQ(number_of(text, "pswpin"), 12);
  EXPECT_EQ(number_of(text, "pswpin_total"), 7);
  EXPECT_EQ(number_of(text, "MemAvailable"), 24 * 1024);
  EXPECT_EQ(number_of(text, "Swap"), 4096 * 1024);
  EXPECT_EQ(number_of(text, "pswp"), std::nullopt) << "the start of a key is none";
  EXPECT_EQ(number_of(text, "odd"), std::nullopt);
  EXPECT_EQ(number_of("", "odd"), std::nullopt);
}

TEST(MemoryText, TheGroupIsThatOfTheMemoryController) {
  const auto v1 = sys::parse::memory_group("12:cpu,cpuacct:/a\n11:memory:/ct/one\n0::/unified\n");
  ASSERT_TRUE(v1);
  EXPECT_TRUE(v1->v1);
  EXPECT_EQ(v1->path, "/ct/one");
  const auto v2 = sys::parse::memory_group("1:name=systemd:/x\n0::/user.slice/app\n");
  ASSERT_TRUE(v2);
  EXPECT_FALSE(v2->v1);
  EXPECT_EQ(v2->path, "/user.slice/app");
  EXPECT_EQ(sys::parse::memory_group("0::/\n")->path, "") << "the root has no name";
  EXPECT_FALSE(sys::parse::memory_group("nonsense\n"));
}

TEST(MemoryText, SwapIsCompressedMemoryWhereAllOfItIs) {
  const std::string head = "Filename\tType\tSize\tUsed\tPriority\n";
  EXPECT_TRUE(sys::parse::all_compressed(head + "/dev/zram0 partition 1 0 100\n"));
  EXPECT_FALSE(sys::parse::all_compressed(head + "/dev/zram0 partition 1 0 100\n/swapfile file 1 0 -2\n"));
  EXPECT_FALSE(sys::parse::all_compressed(head)) << "there is none";
}

TEST(MemoryText, RangesAreThePrivateWritableMappingsThatHavePagesOfTheirOwn) {
  const std::string smaps =
      "55d0c0000000-55d0c0021000 rw-p 00000000 00:00 0                          [heap]\n"
      "Rss:                  80 kB\nAnonymous:            64 kB\nSwap:                 12 kB\n"
      "7f0000000000-7f0000100000 rw-s 00000000 00:01 7                          /dev/shm/x\n"
      "Anonymous:           100 kB\nSwap:                  0 kB\n"
      "7f0000200000-7f0000300000 r--p 00000000 fe:00 9                          /usr/lib/libc.so.6\n"
      "Anonymous:            12 kB\nSwap:                  0 kB\n"
      "7f0000400000-7f0000500000 rw-p 00000000 00:00 0\n"
      "Anonymous:             0 kB\nSwap:                  0 kB\n"
      "7f0000600000-7f0000700000 rw-p 00000000 00:00 0\n"
      "Anonymous:             0 kB\nSwap:               1024 kB\n";
  const auto ranges = sys::parse::anonymous_ranges(smaps);
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(ranges[0].begin, 0x55d0c0000000u);
  EXPECT_EQ(ranges[0].end, 0x55d0c0021000u);
  EXPECT_EQ(ranges[0].resident, 64 * 1024);
  EXPECT_EQ(ranges[0].swapped, 12 * 1024);
  EXPECT_EQ(ranges[1].begin, 0x7f0000600000u);
  EXPECT_EQ(ranges[1].swapped, 1024 * 1024);
  EXPECT_TRUE(sys::parse::anonymous_ranges("").empty());
  EXPECT_TRUE(sys::parse::anonymous_ranges("7f00-7e00 rw-p 0 0 0\nAnonymous: 4 kB\n").empty())
      << "it ends before it begins";
}

// A /proc and a tree of control groups, made up.
class MemoryStatTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/swapd-memory-XXXXXX";
    root = ::mkdtemp(name);
    write("proc/vmstat", "workingset_refault_anon 100\npswpin 200\npswpout 300\n");
    write("proc/meminfo", "MemTotal: 4000 kB\nMemAvailable: 1000 kB\nSwapTotal: 2000 kB\nSwapFree: 1500 kB\n");
  }
  void TearDown() override { fs::remove_all(root); }
  void write(const std::string& file, const std::string& text) const {
    fs::create_directories((root / file).parent_path());
    std::ofstream(root / file) << text;
  }
  [[nodiscard]] sys::MemoryStat stat() const { return sys::MemoryStat(root / "proc", root / "groups"); }
  fs::path root;
};

TEST_F(MemoryStatTest, OfTheMachine) {
  const auto state = stat().machine();
  ASSERT_TRUE(state.ok());
  EXPECT_EQ(state->counters.refaults, 100u);
  EXPECT_EQ(state->counters.in, 200u);
  EXPECT_EQ(state->counters.out, 300u);
  EXPECT_EQ(state->room, 1000 * 1024);
  EXPECT_EQ(state->swap_room, 1500 * 1024);
  EXPECT_FALSE(sys::MemoryStat(root / "none").machine().ok());
}

TEST_F(MemoryStatTest, OfAGroupOfVersionOneWithAllBelowIt) {
  write("groups/memory/ct/memory.limit_in_bytes", "1024000\n");
  write("groups/memory/ct/memory.usage_in_bytes", "1000000\n");
  write("groups/memory/ct/memory.memsw.limit_in_bytes", "1524000\n");
  write("groups/memory/ct/memory.memsw.usage_in_bytes", "1224000\n");
  write("groups/memory/ct/memory.stat",
        "workingset_refault_anon 1\ntotal_workingset_refault_anon 50\ntotal_inactive_file 4000\ntotal_active_file "
        "2000\n");
  const auto state = stat().group("/ct", *stat().machine());
  ASSERT_TRUE(state);
  EXPECT_EQ(state->counters.refaults, 50u);
  EXPECT_EQ(state->counters.in, 50u) << "it does not say; what comes back to it comes from swap";
  EXPECT_EQ(state->counters.out, 300u) << "nor this: it is the machine's";
  EXPECT_EQ(state->room, 24000 + 3000);
  EXPECT_EQ(state->swap_room, 300'000);
}

TEST_F(MemoryStatTest, OfAGroupOfVersionTwo) {
  write("groups/ct/memory.max", "1024000\n");
  write("groups/ct/memory.current", "1000000\n");
  write("groups/ct/memory.swap.max", "900000\n");
  write("groups/ct/memory.swap.current", "100000\n");
  write("groups/ct/memory.stat", "workingset_refault_anon 50\npswpin 60\npswpout 70\ninactive_file 0\nactive_file 0\n");
  const auto state = stat().group("/ct", *stat().machine());
  ASSERT_TRUE(state);
  EXPECT_EQ(state->counters.in, 60u);
  EXPECT_EQ(state->counters.out, 70u);
  EXPECT_EQ(state->swap_room, 800'000);
}

TEST_F(MemoryStatTest, AGroupWithoutALimitIsNone) {
  write("groups/ct/memory.max", "max\n");
  write("groups/ct/memory.current", "1\n");
  write("groups/ct/memory.stat", "workingset_refault_anon 5\n");
  EXPECT_FALSE(stat().group("/ct", *stat().machine()));
  EXPECT_FALSE(stat().group("/nowhere", *stat().machine()));
  write("groups/ct/memory.max", "999999999999\n");
  EXPECT_FALSE(stat().group("/ct", *stat().machine())) << "more than the machine has";
}

TEST_F(MemoryStatTest, APageFromCompressedMemoryCostsLess) {
  write("proc/swaps", "Filename Type Size Used Priority\n/dev/zram0 partition 1 0 100\n");
  const Duration compressed = stat().page_cost();
  write("proc/swaps", "Filename Type Size Used Priority\n/swapfile file 1 0 -2\n");
  EXPECT_GT(stat().page_cost(), 4 * compressed);
}

TEST(MemoryStat, WhatMovesInAGroupAtItsLimitIsNotTheMachines) {
  const std::map<std::string, sys::MemoryState> groups = {{"", {.room = 1000, .limit = 2000}},
                                                          {"/a", {.room = 10, .limit = 800}},
                                                          {"/a/b/c", {.room = 0, .limit = 400}},
                                                          {"/roomy", {.room = 300, .limit = 400}}};
  std::map<std::string, sys::MemoryCounters> moved = {{"", {.refaults = 100, .in = 100, .out = 50}},
                                                      {"/a", {.refaults = 70, .in = 70, .out = 60}},
                                                      {"/a/b/c", {.refaults = 60, .in = 60, .out = 60}},
                                                      {"/roomy", {.refaults = 5, .in = 5, .out = 5}}};
  sys::leave_to_groups_within(groups, moved);
  EXPECT_EQ(moved[""].refaults, 30u) << "5 of them come back to a group with room: the machine had none";
  EXPECT_EQ(moved[""].out, 0u) << "never below zero";
  EXPECT_EQ(moved["/a"].refaults, 10u);
  EXPECT_EQ(moved["/a/b/c"].refaults, 60u);
  EXPECT_EQ(moved["/roomy"].refaults, 5u);
}

}  // namespace
}  // namespace swapd::test
