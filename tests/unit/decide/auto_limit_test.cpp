// The highest limit for some that leaves others what they need, found on a disk that is made up here.
#include "decide/auto_limit.h"

#include <gmock/gmock.h>

#include <random>

namespace swapd::test {
namespace {

using decide::AutoLimit;
using decide::Need;
using decide::NeedJudge;
using decide::NeedRules;
using decide::Tokens;

constexpr Tokens mib = 1 << 20;
constexpr double periods_a_second = 4;

// A disk that serves so much a second; who protects needs a part of it, the others take what they may.
struct Disk {
  double serves = 20.0 * mib, needs = 2.0 * mib, wants = 100.0 * mib;
  bool active = true;
  double noise = 0;
  std::mt19937 random{1};

  Need step(AutoLimit& limit) {
    const double allowed = limit.limit() ? static_cast<double>(*limit.limit()) : wants;
    const double others = std::min({allowed, wants, active ? serves : serves});
    taken = others;
    double left = serves - others;
    if (noise > 0) left += std::normal_distribution<>(0, noise)(random);
    const Need need = !active ? Need::idle : left >= needs ? Need::met : Need::missed;
    missed += need == Need::missed ? 1 : 0;
    limit.observe(need, static_cast<Tokens>(others));
    return need;
  }
  void run(AutoLimit& limit, double seconds) {
    for (int i = 0; i < static_cast<int>(seconds * periods_a_second); ++i) step(limit);
  }
  double taken = 0;
  int missed = 0;
};

TEST(AutoLimit, NobodyIsLimitedWhereNobodyNeedsIt) {
  Disk disk{.wants = 10.0 * mib};
  AutoLimit limit(64 << 10);
  disk.run(limit, 60);
  EXPECT_FALSE(limit.limit());
  EXPECT_EQ(limit.state(), AutoLimit::State::off);
}

// Within ten seconds nothing is missed any more, and what it holds then is nine tenths of the best or more.
TEST(AutoLimit, FindsTheHighestThatIsEnough) {
  for (const double serves : {3.0, 20.0, 200.0, 2000.0}) {
    Disk disk{.serves = serves * mib, .wants = 5000.0 * mib};
    AutoLimit limit(64 << 10);
    disk.run(limit, 10);
    const double best = disk.serves - disk.needs;
    EXPECT_LE(disk.taken, 1.06 * best) << serves;
    disk.run(limit, 10);
    disk.missed = 0;
    double moved = 0;
    for (int i = 0; i < 400; ++i) {
      disk.step(limit);
      moved += disk.taken / 400;
    }
    EXPECT_GE(moved, 0.9 * best) << serves;
    EXPECT_LE(disk.missed, 12) << "tries of a twentieth more, " << serves;
  }
}

// Ten per cent up or down at the most, once it has settled.
TEST(AutoLimit, IsSteadyOnceSettled) {
  Disk disk{.noise = 0.1 * mib};
  AutoLimit limit(64 << 10);
  disk.run(limit, 20);
  double low = 1e18, high = 0;
  for (int i = 0; i < 1200; ++i) {
    disk.step(limit);
    low = std::min(low, disk.taken);
    high = std::max(high, disk.taken);
  }
  EXPECT_LE(high / low, 1.2) << low / mib << " to " << high / mib;
}

TEST(AutoLimit, FollowsADiskThatGetsSlowerAndFasterAgain) {
  Disk disk;
  AutoLimit limit(64 << 10);
  disk.run(limit, 20);
  disk.serves = 8.0 * mib;
  disk.run(limit, 15);
  EXPECT_LE(disk.taken, 6.4 * mib);
  EXPECT_GE(disk.taken, 0.85 * 6 * mib);
  disk.serves = 40.0 * mib;
  disk.run(limit, 120);
  EXPECT_GE(disk.taken, 0.85 * 38 * mib);
}

TEST(AutoLimit, GivesBackWhatIsNotNeededAndKnowsItAgain) {
  Disk disk;
  AutoLimit limit(64 << 10);
  disk.run(limit, 20);
  disk.active = false;
  disk.run(limit, 3);
  EXPECT_FALSE(limit.limit());
  disk.active = true;
  disk.step(limit);
  disk.missed = 0;
  disk.run(limit, 5);
  EXPECT_EQ(disk.missed, 0) << "in force before anything is missed";
  EXPECT_GE(disk.taken, 0.85 * 18 * mib);
}

TEST(AutoLimit, GoesNoLowerThanItMay) {
  Disk disk{.serves = 1.0 * mib};  // which would not do without the others, either
  AutoLimit limit(256 << 10);
  disk.run(limit, 20);
  EXPECT_EQ(limit.limit(), 256 << 10);
  EXPECT_TRUE(limit.in_vain());
  disk.serves = 10.0 * mib;
  disk.run(limit, 30);
  EXPECT_FALSE(limit.in_vain());
  EXPECT_GE(disk.taken, 0.8 * 8 * mib);
}

// Others that take less than they may say nothing of how much that may be.
TEST(AutoLimit, IsNotRaisedWhileNobodyUsesIt) {
  Disk disk;
  AutoLimit limit(64 << 10);
  disk.run(limit, 20);
  const auto held = limit.limit();
  disk.wants = 1.0 * mib;
  disk.run(limit, 300);
  EXPECT_EQ(limit.limit(), held);
}

TEST(NeedJudge, ARateIsMissedByWhoWaitsForMore) {
  NeedJudge judge({.rate = 4 * mib, .wait = {}});
  const Duration period = AutoLimit::period;
  for (int i = 0; i < 8; ++i) EXPECT_EQ(judge.judge(mib, 0.1, period), Need::met);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(judge.judge(mib / 2, 0.1, period), Need::met) << "it asks for no more";
  for (int i = 0; i < 4; ++i) (void)judge.judge(mib / 2, 0.9, period);
  EXPECT_EQ(judge.judge(mib / 2, 0.9, period), Need::missed);
  for (int i = 0; i < 4; ++i) (void)judge.judge(0, 1, period);
  EXPECT_EQ(judge.judge(0, 1, period), Need::missed) << "it waits for its first byte";
  EXPECT_EQ(judge.judge(0, 0, period), Need::idle);
}

// One large read a second is as good as many small ones.
TEST(NeedJudge, LooksAtAWholeSecond) {
  NeedJudge judge({.rate = 4 * mib, .wait = {}});
  for (int i = 0; i < 4; ++i) (void)judge.judge(i % 4 == 0 ? 4 * mib : 0, 0.5, AutoLimit::period);
  for (int i = 0; i < 12; ++i) EXPECT_EQ(judge.judge(i % 4 == 0 ? 4 * mib : 0, 0.5, AutoLimit::period), Need::met) << i;
}

TEST(NeedJudge, AWaitIsMissedByWhoWaitsLonger) {
  NeedJudge judge({.rate = {}, .wait = 0.5});
  for (int i = 0; i < 8; ++i) EXPECT_EQ(judge.judge(mib, 0.4, AutoLimit::period), Need::met);
  for (int i = 0; i < 3; ++i) (void)judge.judge(mib, 0.8, AutoLimit::period);
  EXPECT_EQ(judge.judge(mib, 0.8, AutoLimit::period), Need::missed);
}

}  // namespace
}  // namespace swapd::test
