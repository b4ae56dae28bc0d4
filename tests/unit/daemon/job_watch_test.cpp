// Does anything compete for CPUs, and which processes share memory?
#include "engine/job_watch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

namespace swapd::daemon {
namespace {

class ContentionTest : public testing::Test {
 protected:
  static constexpr int cpus = 4;
  void compete(int looks = 1) {
    for (int i = 0; i < looks; ++i) contention_.look(cpus + 1, cpus);
  }
  void rest(int looks = 1) {
    for (int i = 0; i < looks; ++i) contention_.look(cpus, cpus);
  }
  Contention contention_;
};

TEST_F(ContentionTest, AsManyThreadsAsCpusDoNotCompete) {
  rest(20);
  EXPECT_FALSE(contention_.there());
}

TEST_F(ContentionTest, OneLookIsNotBelieved) {
  for (int i = 0; i < 10; ++i) {
    compete();
    rest(2);
    EXPECT_FALSE(contention_.there());
  }
}

TEST_F(ContentionTest, TwoOfThreeLooksAre) {
  compete();
  rest();
  EXPECT_FALSE(contention_.there());
  compete();
  EXPECT_TRUE(contention_.there());
}

TEST_F(ContentionTest, ItLastsOverAShortPause) {
  compete(2);
  for (int i = 0; i < 10; ++i) {
    rest(5);
    EXPECT_TRUE(contention_.there());
    compete();
  }
}

TEST_F(ContentionTest, AndEndsAfterALongOne) {
  compete(2);
  rest(60);
  EXPECT_FALSE(contention_.there());
  compete();
  EXPECT_FALSE(contention_.there()) << "what was is forgotten";
  compete();
  EXPECT_TRUE(contention_.there());
}

TEST_F(ContentionTest, IsOftenAtAQuarterOfTheLastLooks) {
  compete(7);
  EXPECT_FALSE(contention_.often());
  compete();
  EXPECT_TRUE(contention_.often());
  for (int i = 0; i < 30; ++i) {
    rest(9);
    compete();
  }
  EXPECT_TRUE(contention_.there());
  EXPECT_FALSE(contention_.often()) << "now and then a thread wakes while all CPUs are taken";
}

class OthersShareTest : public testing::Test {
 protected:
  static constexpr pid_t client = 10, server = 20;
  // Windows of a hundred samples; the rest of them is the client's.
  void pass(int windows, std::uint64_t unmanaged, std::uint64_t of_server = 0, bool helped = false) {
    for (int i = 0; i < windows; ++i) {
      now_ += std::chrono::milliseconds(125);
      const std::array<OthersShare::Seen, 2> seen{
          {{.tgid = client, .samples = 100 - unmanaged - of_server, .matters = true},
           {.tgid = server, .samples = of_server, .matters = helped}}};
      share_.end_window(seen, unmanaged, 100, now_);
    }
  }
  OthersShare share_;
  Time now_{std::chrono::hours(1)};
};

TEST_F(OthersShareTest, CountsWhereNothingIsKnown) { EXPECT_TRUE(share_.counts()); }

TEST_F(OthersShareTest, CountsFromAFiftiethOn) {
  pass(40, 1);
  EXPECT_FALSE(share_.counts()) << "a shell, a journal";
  pass(3, 50);
  EXPECT_TRUE(share_.counts());
  pass(40, 0);
  EXPECT_FALSE(share_.counts());
}

TEST_F(OthersShareTest, AProcessThatWasHelpedLatelyIsNoOther) {
  pass(40, 0, 40);
  EXPECT_TRUE(share_.counts()) << "it is managed, and nothing says that it works for the client";
  pass(1, 0, 40, true);
  pass(40, 0, 40);
  EXPECT_FALSE(share_.counts());
  pass(100, 0, 40);
  EXPECT_TRUE(share_.counts()) << "ten seconds later it is one";
}

TEST_F(ContentionTest, CrowdIsThreadsForEachCpu) {
  contention_.look(12, cpus);
  EXPECT_DOUBLE_EQ(contention_.crowd(), 3);
  contention_.look(1, cpus);
  EXPECT_DOUBLE_EQ(contention_.crowd(), 1) << "never less than one";
}

class BusyWaitersTest : public ::testing::Test {
 protected:
  bool after(int windows, std::uint64_t waits, std::uint64_t samples) {
    for (; windows > 0; --windows) {
      waiters_.add(7, waits, samples);
      last_ = waiters_.waits(7);
      waiters_.end_window();
    }
    return last_;
  }
  BusyWaiters waiters_;
  bool last_ = false;
};

TEST_F(BusyWaitersTest, OneThatWaitsOnItsCpuIsFoundAfterSomeSamples) {
  EXPECT_FALSE(after(1, 5, 5));
  EXPECT_TRUE(after(1, 5, 5));
}

// The backend of a database: a window here and there shows it in a loop.
TEST_F(BusyWaitersTest, OneThatPassesThroughALoopNowAndThenIsNone) {
  for (int second = 0; second < 5; ++second) {
    EXPECT_FALSE(after(1, 1, 1)) << "one sample of one";
    EXPECT_FALSE(after(7, 0, 3));
  }
}

// Nor is a client that asks for answers which are always there.
TEST_F(BusyWaitersTest, OneThatAsksForMessagesInAThirdOfItsTimeIsNone) { EXPECT_FALSE(after(40, 2, 6)); }

TEST_F(BusyWaitersTest, OneThatWaitsNoMoreIsNoneAfterAWhile) {
  EXPECT_TRUE(after(8, 4, 4));
  EXPECT_FALSE(after(8, 0, 4));
}

TEST_F(BusyWaitersTest, AThreadThatIsSeenNoMoreIsForgotten) {
  EXPECT_TRUE(after(8, 4, 4));
  EXPECT_FALSE(after(40, 0, 0));
}

TEST(SamplingTurns, GoOnWhileSomeThreadMayBeWaiting) {
  SamplingTurns turns;
  const Time now{std::chrono::hours(1)};
  for (int i = 0; i < 100; ++i) {
    turns.end_window(i % 10 == 0, now);
    EXPECT_TRUE(turns.on(now));
  }
}

TEST(SamplingTurns, RestForAWhileWhereNoneIs) {
  SamplingTurns turns;
  const Time now{std::chrono::hours(1)};
  for (int i = 0; i < 16; ++i) {
    EXPECT_TRUE(turns.on(now));
    turns.end_window(false, now);
  }
  EXPECT_FALSE(turns.on(now));
  EXPECT_FALSE(turns.on(now + std::chrono::seconds(3)));
  EXPECT_TRUE(turns.on(now + std::chrono::seconds(4)));
}

TEST(SamplingTurns, RestAShorterTimeWhereAProgramBegins) {
  SamplingTurns turns;
  const Time now{std::chrono::hours(1)};
  for (int i = 0; i < 16; ++i) turns.end_window(false, now);
  for (int programs = 0; programs < 3; ++programs) turns.program_begins();
  EXPECT_FALSE(turns.on(now + std::chrono::milliseconds(999))) << "a compiler's begin all the time";
  EXPECT_TRUE(turns.on(now + std::chrono::seconds(1)));
}

class MemorySharersTest : public testing::Test {
 protected:
  static constexpr std::uint64_t device = 1;
  void maps(pid_t pid, const std::vector<std::uint64_t>& inodes) {
    std::vector<MemorySharers::Place> places;
    for (const std::uint64_t inode : inodes) places.emplace_back(device, inode);
    sharers_.set(pid, std::move(places));
  }
  MemorySharers sharers_;
};

TEST_F(MemorySharersTest, ProcessAloneIsItsOwnJob) {
  EXPECT_EQ(sharers_.job_of(10), 10);
  maps(10, {1});
  EXPECT_EQ(sharers_.job_of(10), 10);
}

TEST_F(MemorySharersTest, LowestPidStandsForThoseThatShare) {
  maps(30, {1});
  maps(10, {1});
  maps(20, {2});
  EXPECT_EQ(sharers_.job_of(10), 10);
  EXPECT_EQ(sharers_.job_of(30), 10);
  EXPECT_EQ(sharers_.job_of(20), 20);
}

TEST_F(MemorySharersTest, ConnectedThroughOthersIsOneJob) {
  maps(30, {1, 2});
  maps(20, {2, 3});
  maps(40, {3});
  maps(10, {1});
  for (const pid_t pid : {10, 20, 30, 40}) EXPECT_EQ(sharers_.job_of(pid), 10);
}

TEST_F(MemorySharersTest, SameInodeOnAnotherDeviceIsOtherMemory) {
  sharers_.set(10, {{1, 7}});
  sharers_.set(20, {{2, 7}});
  EXPECT_EQ(sharers_.job_of(20), 20);
}

TEST_F(MemorySharersTest, MappingsThatChangeJoinAndPart) {
  maps(10, {1});
  maps(20, {2});
  maps(20, {2, 1});
  EXPECT_EQ(sharers_.job_of(20), 10);
  maps(20, {2});
  EXPECT_EQ(sharers_.job_of(20), 20);
}

TEST_F(MemorySharersTest, MappingThatIsThereTwiceIsOne) {
  maps(10, {1, 1, 1});
  maps(20, {1, 1});
  EXPECT_EQ(sharers_.job_of(20), 10);
}

TEST_F(MemorySharersTest, WhoHasGoneConnectsNobody) {
  maps(10, {1});
  maps(20, {1, 2});
  maps(30, {2});
  ASSERT_EQ(sharers_.job_of(30), 10);
  sharers_.keep_only({10, 30});
  EXPECT_EQ(sharers_.job_of(30), 30);
  EXPECT_EQ(sharers_.job_of(20), 20);
}

TEST_F(MemorySharersTest, NextLowestStandsForThemWhenTheFirstHasGone) {
  for (const pid_t pid : {10, 20, 30}) maps(pid, {1});
  sharers_.keep_only({20, 30});
  EXPECT_EQ(sharers_.job_of(30), 20);
}

TEST_F(MemorySharersTest, MemoryOfAServerAndAllItsClientsIsNoJob) {
  for (pid_t pid = 1; pid <= 100; ++pid) maps(pid, {1});
  EXPECT_EQ(sharers_.job_of(50), 50);
  maps(50, {1, 2});
  maps(60, {1, 2});
  EXPECT_EQ(sharers_.job_of(60), 50) << "what two of them share besides is theirs";
}

TEST_F(MemorySharersTest, RanksOfOneLauncherAreOneJobHoweverManyTheyAre) {
  for (pid_t pid = 101; pid <= 200; ++pid) sharers_.set(pid, {}, 100);
  sharers_.set(301, {}, 300);
  EXPECT_EQ(sharers_.job_of(200), 101);
  EXPECT_TRUE(sharers_.has_mates(200));
  EXPECT_FALSE(sharers_.shares(200)) << "no memory: that they wait for each other must be seen";
  EXPECT_EQ(sharers_.job_of(301), 301);
  EXPECT_FALSE(sharers_.has_mates(301));
}

TEST_F(MemorySharersTest, SaysWhetherTheMappingsOfAProcessAreOthersThanBefore) {
  EXPECT_TRUE(sharers_.set(1, {}));
  EXPECT_FALSE(sharers_.set(1, {}));
  EXPECT_TRUE(sharers_.set(1, {{8, 1}, {8, 2}}));
  EXPECT_FALSE(sharers_.set(1, {{8, 2}, {8, 1}, {8, 1}}));
}

class MappingLooksTest : public testing::Test {
 protected:
  // Moments at which the mappings are read, in milliseconds, where they changed at those in `changes`.
  std::vector<int> looks(const std::vector<int>& changes, int until) {
    std::vector<int> out;
    for (int at = 0; at <= until; at += 125) {
      const Time now{std::chrono::seconds(100) + std::chrono::milliseconds(at)};
      if (!looks_.due(7, now)) continue;
      const bool changed = at == 0 || std::ranges::any_of(changes, [&](int one) {
                             return one <= at && !out.empty() && one > out.back();
                           });
      looks_.looked(7, changed, took_, now);
      out.push_back(at);
    }
    return out;
  }
  Duration took_ = std::chrono::microseconds(50);
  MappingLooks looks_;
};

TEST_F(MappingLooksTest, ANewProcessIsLookedAtSoonAgainAndLessAndLessOften) {
  EXPECT_EQ(looks({}, 20'000), (std::vector<int>{0, 250, 750, 1750, 3750, 7750, 12'750, 17'750}));
}

TEST_F(MappingLooksTest, OneThatMapsWhatItSharesLateIsLookedAtSoonAfterThat) {
  EXPECT_EQ(looks({1000}, 4000), (std::vector<int>{0, 250, 750, 1750, 2000, 2500, 3500}));
}

TEST_F(MappingLooksTest, OneThatAlwaysChangesThemIsLookedAtOftenInItsBeginningAlone) {
  std::vector<int> all;
  for (int at = 0; at <= 60'000; at += 125) all.push_back(at);
  const auto found = looks(all, 60'000);
  EXPECT_GT(std::ranges::count_if(found, [](int at) { return at < 20'000; }), 70);
  EXPECT_LT(std::ranges::count_if(found, [](int at) { return at >= 30'000; }), 8);
}

TEST_F(MappingLooksTest, ALookThatTakesLongIsFollowedByALongRest) {
  took_ = std::chrono::milliseconds(20);
  EXPECT_EQ(looks({500, 1000}, 5000), (std::vector<int>{0, 2000, 4000}));
}

TEST_F(MappingLooksTest, ManyProcessesTakeAHundredthOfACpuTogether) {
  Duration used{};
  for (int at = 0; at <= 60'000; at += 125) {
    const Time now{std::chrono::seconds(100) + std::chrono::milliseconds(at)};
    for (pid_t pid = 1; pid <= 200; ++pid) {
      if (!looks_.due(pid, now)) continue;
      looks_.looked(pid, true, std::chrono::milliseconds(2), now);
      used += std::chrono::milliseconds(2);
    }
  }
  EXPECT_LE(used, std::chrono::milliseconds(660)) << "and what five seconds have saved";
  EXPECT_GE(used, std::chrono::milliseconds(600));
}

TEST_F(MappingLooksTest, OneThatIsNotManagedAnyMoreIsForgotten) {
  const Time now{std::chrono::seconds(100)};
  looks_.looked(7, true, took_, now);
  looks_.looked(8, true, took_, now);
  looks_.keep_only({8});
  EXPECT_TRUE(looks_.due(7, now));
  EXPECT_FALSE(looks_.due(8, now));
}

TEST(WaitLibraries, AreThoseOfMpiAndOpenMp) {
  for (const char* file : {"/usr/lib/x86_64-linux-gnu/libmpi.so.40.30.4", "/usr/lib/libmpich.so.12",
                           "/opt/ompi/lib/openmpi/mca_btl_vader.so", "libopen-pal.so.40", "/lib/libgomp.so.1.0.0"})
    EXPECT_TRUE(WaitLibraries::is_one(file)) << file;
  for (const char* file : {"", "[heap]", "/usr/lib/libm.so.6", "/home/me/libmpi.so/solver", "/usr/lib/libmpfr.so.6"})
    EXPECT_FALSE(WaitLibraries::is_one(file)) << file;
}

TEST(WaitLibraries, TellWhatPartOfTheSamplesIsInThem) {
  WaitLibraries libraries;
  libraries.set(7, {{100, 200}, {300, 400}});
  EXPECT_EQ(libraries.part(7, std::array<std::uint64_t, 4>{100, 199, 350, 200}), 0.75);
  EXPECT_EQ(libraries.part(7, std::array<std::uint64_t, 4>{150, 0, 0, 0}), 1) << "one sample";
  EXPECT_EQ(libraries.part(7, std::array<std::uint64_t, 2>{0, 0}), 0);
  EXPECT_EQ(libraries.part(8, std::array<std::uint64_t, 1>{150}), 0) << "another process";
  libraries.keep_only({8});
  EXPECT_EQ(libraries.part(7, std::array<std::uint64_t, 1>{150}), 0);
}

}  // namespace
}  // namespace swapd::daemon
