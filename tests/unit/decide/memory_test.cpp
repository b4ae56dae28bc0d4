// Memory: what is thrashing and what is not, and who leaves so that the others have their pages.
#include <gtest/gtest.h>

#include "decide/memory/thrashing.h"
#include "decide/memory/victims.h"

namespace swapd::test {
namespace {

using decide::choose_victims;
using decide::MemoryJob;
using decide::MemoryWindow;
using decide::Thrashing;
using namespace std::chrono_literals;

constexpr MemoryWindow still{.length = 1s, .page_cost = 100us};
// Half of each second is lost to a disk.
constexpr MemoryWindow thrash{.length = 1s, .refaults = 5000, .in = 6000, .out = 6000, .page_cost = 100us};

class ThrashingTest : public testing::Test {
 protected:
  bool after(int windows, const MemoryWindow& window) {
    for (; windows > 0; --windows) thrashing.window(window);
    return thrashing.there();
  }
  Thrashing thrashing;
};

TEST_F(ThrashingTest, IsBelievedAfterThreeWindows) {
  EXPECT_FALSE(after(2, thrash));
  EXPECT_TRUE(after(1, thrash));
  EXPECT_NEAR(thrashing.lost(), 0.5, 1e-9);
}

TEST_F(ThrashingTest, OneQuietWindowAmongFourChangesNothing) {
  after(2, thrash);
  EXPECT_FALSE(after(1, still));
  EXPECT_TRUE(after(1, thrash));
}

// grep over a disk, a backup, a large copy: whatever the kernel puts out for that.
TEST_F(ThrashingTest, AScanOfFilesIsNone) {
  MemoryWindow scan = still;
  scan.out = 20'000;
  EXPECT_FALSE(after(20, scan));
}

TEST_F(ThrashingTest, AProgramThatComesBackAfterLongIsNone) {
  MemoryWindow back = thrash;
  back.refaults = 500;
  EXPECT_FALSE(after(20, back)) << "its pages had been out for long";
}

TEST_F(ThrashingTest, PagesThatComeBackInPlaceOfNoOthersAreNone) {
  MemoryWindow back = thrash;
  back.out = 100;
  EXPECT_FALSE(after(20, back));
}

TEST_F(ThrashingTest, TheSamePagesFromCompressedMemoryAreNone) {
  MemoryWindow quick = thrash;
  quick.page_cost = 5us;
  EXPECT_FALSE(after(20, quick)) << "a fortieth of the time";
  quick.refaults = 100'000;
  quick.in = quick.out = 120'000;
  EXPECT_TRUE(after(3, quick));
}

TEST_F(ThrashingTest, ItIsCalmAfterFourWindowsWithHardlyAny) {
  EXPECT_FALSE(thrashing.calm()) << "nothing is known yet";
  after(3, thrash);
  MemoryWindow some = still;
  some.refaults = some.in = some.out = 1000;
  after(10, some);
  EXPECT_FALSE(thrashing.there());
  EXPECT_FALSE(thrashing.calm()) << "a tenth of the time is lost still";
  after(3, still);
  EXPECT_FALSE(thrashing.calm());
  after(1, still);
  EXPECT_TRUE(thrashing.calm());
}

TEST_F(ThrashingTest, WhatWasSeenBeforeSomethingWasDoneCountsNoMore) {
  after(3, thrash);
  thrashing.begin_anew();
  EXPECT_FALSE(after(2, thrash));
  EXPECT_TRUE(after(1, thrash));
}

constexpr std::int64_t one_mib = 1 << 20;
constexpr std::int64_t plenty = std::int64_t{1} << 40;  // of swap

MemoryJob job(MemoryJob::Id id, std::int64_t resident, std::int64_t swapped, int rank = 20) {
  return {.id = id, .rank = rank, .since = Time(1h), .resident = resident * one_mib, .swapped = swapped * one_mib};
}

using Ids = std::vector<MemoryJob::Id>;

TEST(Victims, OneThatMakesRoomForTheOthersLeaves) {
  const std::vector jobs = {job(1, 400, 100), job(2, 400, 100), job(3, 400, 100)};
  EXPECT_EQ(choose_victims(jobs, 0, plenty), Ids{1});
}

TEST(Victims, WhatMattersLeastLeavesFirst) {
  const std::vector jobs = {job(1, 400, 100), job(2, 400, 100, 10), job(3, 400, 100, 30)};
  EXPECT_EQ(choose_victims(jobs, 0, plenty), Ids{2});
}

TEST(Victims, OfEqualsOneThatWaits) {
  std::vector jobs = {job(1, 400, 100), job(2, 400, 100), job(3, 400, 100)};
  jobs[1].waits = true;
  EXPECT_EQ(choose_victims(jobs, 0, plenty), Ids{2});
  jobs[1].rank = 30;
  EXPECT_EQ(choose_victims(jobs, 0, plenty), Ids{1}) << "it matters more";
}

TEST(Victims, OfEqualsThatWaitTheOneThatHasWaitedLongest) {
  std::vector jobs = {job(1, 400, 100), job(2, 400, 100), job(3, 400, 100)};
  for (MemoryJob& one : jobs) one.waits = true;
  jobs[2].since -= 1s;
  jobs.push_back(job(4, 400, 100));
  EXPECT_EQ(choose_victims(jobs, 0, plenty), Ids{3});
}

TEST(Victims, NoneLeavesWhereNoSetIsEnough) {
  const std::vector jobs = {job(1, 10, 1000), job(2, 10, 1000), job(3, 10, 1000)};
  EXPECT_EQ(choose_victims(jobs, 0, plenty), Ids{}) << "two would free 20 MiB for 1000";
}

TEST(Victims, AFewLargeOnesRatherThanManySmallOnes) {
  const std::vector jobs = {job(1, 10, 0), job(2, 20, 0), job(3, 500, 0), job(4, 500, 300)};
  EXPECT_EQ(choose_victims(jobs, 0, plenty), Ids{3});
}

TEST(Victims, NoneThatHasNextToNothing) {
  std::vector jobs = {job(1, 1, 0), job(2, 400, 100), job(3, 400, 100), job(4, 2, 1)};
  jobs[0].waits = jobs[3].waits = true;
  EXPECT_EQ(choose_victims(jobs, 0, plenty), Ids{2}) << "a make that waits frees nothing";
}

TEST(Victims, NoneThatThrashesAlone) {
  std::vector jobs = {job(1, 400, 300), job(2, 5, 0)};
  EXPECT_EQ(choose_victims(jobs, 0, plenty), Ids{});
  jobs[1] = job(2, 5, 3);
  EXPECT_EQ(choose_victims(jobs, 0, plenty), Ids{}) << "3 MiB of 303";
  jobs[1].rank = 30;
  EXPECT_EQ(choose_victims(jobs, 0, plenty), Ids{1}) << "but that is of one that matters more";
}

TEST(Victims, SeveralWhereOneIsNotEnough) {
  const std::vector jobs = {job(1, 100, 100), job(2, 100, 100), job(3, 100, 100), job(4, 100, 100)};
  EXPECT_EQ(choose_victims(jobs, 50 * one_mib, plenty), (Ids{1, 2})) << "250 MiB for the 200 of those that stay";
  EXPECT_EQ(choose_victims(jobs, 0, plenty), (Ids{1, 2, 3})) << "200 for 200 leaves no margin";
}

TEST(Victims, TheBestOfAllStays) {
  const std::vector jobs = {job(1, 400, 100, 30)};
  EXPECT_EQ(choose_victims(jobs, 0, plenty), Ids{});
  const std::vector two = {job(1, 400, 300, 30), job(2, 100, 0, 10)};
  EXPECT_EQ(choose_victims(two, 0, plenty), Ids{});
}

TEST(Victims, NeededOnesStay) {
  std::vector jobs = {job(1, 400, 100, 10), job(2, 400, 100), job(3, 400, 100)};
  jobs[0].needed = true;
  EXPECT_EQ(choose_victims(jobs, 0, plenty), Ids{2});
}

TEST(Victims, NoneLeavesWhereSwapHasNoRoom) {
  const std::vector jobs = {job(1, 400, 100), job(2, 400, 100), job(3, 400, 100)};
  EXPECT_EQ(choose_victims(jobs, 0, 100 * one_mib), Ids{});
}

TEST(Victims, OneThatIsOutAlreadyLeavesSoThatItAsksForNothing) {
  const std::vector jobs = {job(1, 0, 500, 5), job(2, 400, 100), job(3, 400, 100)};
  EXPECT_EQ(choose_victims(jobs, 0, plenty), (Ids{1, 2}));
}

TEST(Victims, OneThatWaitsAsksForNothing) {
  std::vector jobs = {job(1, 100, 5000), job(2, 400, 100), job(3, 400, 100)};
  jobs[0].waits = true;
  EXPECT_EQ(choose_victims(jobs, 0, plenty), (Ids{1, 2}));
}

}  // namespace
}  // namespace swapd::test
