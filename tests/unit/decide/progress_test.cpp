#include "decide/progress.h"

#include <gtest/gtest.h>

#include <chrono>

namespace swapd::decide {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr ThreadId client{10, 1};
constexpr ThreadId server{20, 1};
constexpr ThreadId other{21, 1};
const Resource lock{ResourceKind::futex, {7, 8, 9, 0}};
constexpr Time start = Time(seconds(100));

SpinJudge::Verdict judge(std::size_t samples, std::size_t states, bool in_user = true) {
  SpinJudge judge;
  for (std::size_t i = 0; i < samples; ++i) judge.add(i % states, in_user);
  return judge.verdict();
}

TEST(SpinJudge, TheSameStatesAgainAndAgainAreASpin) {
  EXPECT_EQ(judge(4, 1), SpinJudge::Verdict::unknown);
  EXPECT_EQ(judge(16, 1), SpinJudge::Verdict::spins);
  EXPECT_EQ(judge(16, 4), SpinJudge::Verdict::spins);
  EXPECT_EQ(judge(16, 6), SpinJudge::Verdict::spins) << "a loop of sched_yield() is seen at so many places";
  EXPECT_EQ(judge(16, 9), SpinJudge::Verdict::unknown);
}

TEST(SpinJudge, StatesNeverSeenBeforeAreAComputation) {
  EXPECT_EQ(judge(8, 1000), SpinJudge::Verdict::computes);
  EXPECT_EQ(judge(16, 1000), SpinJudge::Verdict::computes);
}

TEST(SpinJudge, AThreadThatIsInCallsAllTheTimeWorks) { EXPECT_EQ(judge(150, 1, false), SpinJudge::Verdict::computes); }

TEST(Progress, ASpinnerStepsDownAndComesBackWhenItComputes) {
  Progress progress;
  progress.lent(client, lock, false, start, start);
  EXPECT_EQ(progress.step(client, server, start), Step::full);
  progress.judged(server, SpinJudge::Verdict::spins);
  EXPECT_EQ(progress.step(client, server, start), Step::less);
  progress.judged(server, SpinJudge::Verdict::spins);
  EXPECT_EQ(progress.step(client, server, start), Step::none);
  progress.judged(server, SpinJudge::Verdict::computes);
  EXPECT_EQ(progress.step(client, server, start), Step::full);
}

TEST(Progress, ASpinnerThatBlocksIsHelpedAgainAndSuspected) {
  Progress progress;
  progress.lent(client, lock, false, start, start);
  progress.judged(server, SpinJudge::Verdict::spins);
  progress.blocked(server);
  EXPECT_EQ(progress.step(client, server, start), Step::full);
  EXPECT_TRUE(progress.suspected(server));
  progress.judged(server, SpinJudge::Verdict::spins);  // known by now: at once
  EXPECT_EQ(progress.step(client, server, start), Step::none);
}

TEST(Progress, ALongComputationOfWhichNothingIsKnownKeepsMostOfItsBoost) {
  Progress progress;
  progress.lent(client, lock, false, start, start);
  Duration boosted{};
  constexpr int steps = 300;
  for (int i = 0; i < steps; ++i) {
    if (progress.step(client, server, start + i * milliseconds(10)) != Step::full) continue;
    progress.used(client, server, milliseconds(10));
    boosted += milliseconds(10);
  }
  EXPECT_GE(boosted, steps * milliseconds(10) * 88 / 100);
  EXPECT_LE(boosted, steps * milliseconds(10) * 92 / 100) << "else what it keeps from its CPU waits for ever";
  progress.ended(client, server);
  progress.lent(client, lock, false, start + seconds(4), start + seconds(4));
  progress.used(client, server, seconds(9));
  EXPECT_EQ(progress.step(client, server, start + seconds(13)), Step::full) << "it was right";
}

// A thread that it keeps from its CPU may need no more than that to end the wait: at most 0.3 s are lost to a wrong
// provider.
TEST(Progress, AfterAQuarterOfASecondAnUnknownProviderRestsOnce) {
  Progress progress;
  progress.lent(client, lock, false, start, start);
  progress.used(client, server, milliseconds(250));
  EXPECT_EQ(progress.step(client, server, start + milliseconds(250)), Step::none);
  EXPECT_EQ(progress.step(client, server, start + milliseconds(299)), Step::none);
  EXPECT_EQ(progress.step(client, server, start + milliseconds(312)), Step::full);
}

TEST(Progress, TheOneThatEndedSuchAWaitComputesAsLongAsItMust) {
  Progress progress;
  progress.lent(client, lock, true, start, start);
  progress.used(client, server, milliseconds(20));
  progress.ended(client, server);
  progress.lent(client, lock, true, start + seconds(1), start + seconds(1));
  progress.used(client, server, seconds(5));
  EXPECT_EQ(progress.step(client, server, start + seconds(6)), Step::full);
}

// The bound that matters: the requester waits no more than a tenth longer than without a boost.
TEST(Progress, AGuessThatWasWrongHasASmallShareOfTheNextWait) {
  Progress progress;
  progress.lent(client, lock, true, start, start);
  progress.used(client, server, milliseconds(20));
  progress.ended(client, other);
  const Time again = start + seconds(1);
  progress.lent(client, lock, true, again, again);
  Duration boosted{};
  constexpr int steps = 100;
  for (int i = 0; i < steps; ++i) {
    if (progress.step(client, server, again + i * milliseconds(10)) == Step::none) continue;
    progress.used(client, server, milliseconds(10));
    boosted += milliseconds(10);
    EXPECT_LE(boosted * 10, (i + 1) * milliseconds(10));
  }
  EXPECT_GT(boosted, Duration::zero());
}

TEST(Progress, BeingRightAgainEndsTheDoubt) {
  Progress progress;
  progress.lent(client, lock, true, start, start);
  progress.used(client, server, milliseconds(20));
  progress.ended(client, other);
  Time again = start;
  for (int right = 0; right < 2; ++right) {
    again += seconds(1);
    progress.lent(client, lock, true, again, again);
    EXPECT_EQ(progress.step(client, server, again), Step::none);
    progress.ended(client, server);
  }
  again += seconds(1);
  progress.lent(client, lock, true, again, again);
  EXPECT_EQ(progress.step(client, server, again), Step::full);
}

// Waits of the client, one a second.
class Waits : public ::testing::Test {
 protected:
  void begin(bool choice, const Resource& resource = lock) {
    now += seconds(1);
    progress.lent(client, resource, choice, now, now);
  }
  void end(ThreadId lent_to, ThreadId by) {
    progress.used(client, lent_to, milliseconds(20));
    progress.ended(client, by);
  }
  [[nodiscard]] Step step(ThreadId thread) const { return progress.step(client, thread, now); }
  [[nodiscard]] static Resource lock_of(std::uint64_t number) { return {ResourceKind::futex, {number, 0, 0, 0}}; }
  Progress progress;
  Time now = start;
};

TEST_F(Waits, TryNextTheOneThatItWasInstead) {
  begin(true);
  end(server, other);
  begin(true);
  EXPECT_EQ(step(other), Step::full);
  end(other, other);
  begin(true);
  progress.used(client, other, seconds(9));
  EXPECT_EQ(step(other), Step::full);
}

// As a wait for each new child is.
TEST_F(Waits, DoubtOneOfSeveralThatWasWrongForOtherResourcesToo) {
  begin(true);
  end(server, other);
  begin(true, lock_of(1));
  EXPECT_EQ(step(server), Step::none);
}

TEST_F(Waits, DoNotDoubtTheOnlyOneForOtherResources) {
  begin(false);
  end(server, other);
  begin(false, lock_of(1));
  EXPECT_EQ(step(server), Step::full);
}

// Waits for new things each time, of which what is known is always wrong.
TEST_F(Waits, DoubtWhatIsKnownForARequesterThatWasMisledTwiceUntilAGuessIsRight) {
  for (std::uint64_t i = 1; i <= 2; ++i) {
    const ThreadId guessed{static_cast<pid_t>(40 + i), 1};
    begin(false, lock_of(i));
    EXPECT_EQ(step(guessed), Step::full);
    end(guessed, other);
  }
  begin(false, lock_of(3));
  EXPECT_EQ(step(server), Step::none);
  end(server, server);
  begin(false, lock_of(4));
  EXPECT_EQ(step({44, 1}), Step::full);
}

// A lock that moves from thread to thread.
TEST_F(Waits, TryNoneAnyMoreWhereItIsAnotherOneEachTime) {
  for (pid_t holder = 30; holder < 33; ++holder) {
    begin(true);
    end({holder, 1}, {holder + 1, 1});
  }
  begin(true);
  EXPECT_EQ(step({33, 1}), Step::none);
}

// As a child that ends.
TEST_F(Waits, ThatAStrangerEndsShowThatTheGuessWasWrong) {
  begin(false);
  end(server, ThreadId{});
  begin(false);
  EXPECT_EQ(step(server), Step::none);
}

TEST_F(Waits, ThatAreShortEndNoDoubt) {
  begin(false);
  end(server, other);
  begin(false);
  progress.ended(client, other);  // nothing was used meanwhile
  begin(false);
  EXPECT_EQ(step(server), Step::none);
}

TEST(Progress, WhatAThreadThatBlockedHasUsedWasNotInVain) {
  Progress progress;
  progress.lent(client, lock, false, start, start);
  progress.used(client, server, seconds(2));
  progress.blocked(server);
  EXPECT_EQ(progress.step(client, server, start + milliseconds(2100)), Step::full);
}

TEST(Progress, WhoHandsTheRequestOnHasHelped) {
  Progress progress;
  progress.lent(client, lock, false, start, start);
  progress.used(client, server, milliseconds(30));
  progress.delivered(server);  // to the other one, which answers
  progress.ended(client, other);
  progress.lent(client, lock, false, start + seconds(1), start + seconds(1));
  EXPECT_EQ(progress.step(client, server, start + seconds(1)), Step::full);
}

TEST(Progress, AnEndThatNobodyIsNamedForSaysNothing) {
  Progress progress;
  progress.lent(client, lock, false, start, start);
  progress.used(client, server, milliseconds(50));
  progress.ended(client, std::nullopt);
  progress.lent(client, lock, false, start + seconds(1), start + seconds(1));
  EXPECT_EQ(progress.step(client, server, start + seconds(1)), Step::full);
}

}  // namespace
}  // namespace swapd::decide
