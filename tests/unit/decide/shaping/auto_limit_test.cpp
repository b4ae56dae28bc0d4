// The highest limit for some that leaves others what they need, found on a disk that is made up here.
#include "decide/shaping/auto_limit.h"

#include <gmock/gmock.h>

#include <random>
#include <utility>
#include <vector>

namespace swapd::test {
namespace {

using decide::AutoLimit;
using decide::Need;
using decide::Tokens;

constexpr Tokens mib = 1 << 20;
constexpr double periods_a_second = 4;

// A disk that serves so much a second; who is protected needs a part of it, the others take what they may. What all
// together ask for above that piles up in its queue, behind which everybody waits. What the others read is read ahead
// for them, up to `ahead`, and comes from there at once.
struct Disk {
  double serves = 20.0 * mib, needs = 2.0 * mib, wants = 100.0 * mib;
  double ahead = 0, queue_at_most = 0;  // 0: what it serves in a tenth of a second
  // How much may be queued (in what a period serves) before the protected one, that reads ahead too, misses anything;
  // from the half on it waits for more and more of its time. `waits`: how much of it it waits for anyway.
  double spare = 0.25, waits = 0, waits_now = 0;
  bool active = true;
  double noise = 0;
  std::mt19937 random{1};

  void step(AutoLimit& limit) {
    constexpr double dt = 1 / periods_a_second;
    const double allowed = std::min(limit.limit() ? static_cast<double>(*limit.limit()) : wants, wants);
    const double can = serves * (noise > 0 ? std::normal_distribution<>(1, noise)(random) : 1.0);
    const double from_ahead = std::min(allowed * dt, read_ahead);
    const double asks = allowed * dt - from_ahead + std::min(ahead - (read_ahead - from_ahead), wants * dt);
    const double room = can * dt;
    const double demand = queue + asks + (active ? needs * dt : 0);
    queue = std::clamp(demand - room, 0.0, queue_at_most > 0 ? queue_at_most : 0.1 * serves);
    const double served = std::min(demand, room);
    // Who waits behind a queue of half a second or more misses; and of what is served has his share.
    const double enough = spare * serves * dt;
    const bool misses = active && queue > enough;
    const double usual = waits > 0 ? std::clamp(std::normal_distribution<>(waits, 0.1)(random), 0.0, 1.0) : 0;
    const double waited = !active ? 0 : std::max({usual, waits_now, std::clamp(2 * queue / enough - 1, 0.0, 1.0)});
    const double own = !active ? 0 : misses ? needs * dt / 3 : needs * dt;
    const double disk = std::max(served - own, 0.0);
    const double calls = std::min(allowed * dt, read_ahead + disk);
    read_ahead = std::clamp(read_ahead + disk - calls, 0.0, ahead);
    taken = calls / dt;
    missed += misses ? 1 : 0;
    limit.observe({.need = !active  ? Need::idle
                           : misses ? Need::missed
                                    : Need::met,
                   .protected_moved = static_cast<Tokens>(own / dt),
                   .others_calls = limit.limit() ? static_cast<Tokens>(taken) : 0,
                   .others_disk = static_cast<Tokens>(disk / dt),
                   .waited = waited});
  }
  void run(AutoLimit& limit, double seconds) {
    for (int i = 0; i < static_cast<int>(seconds * periods_a_second); ++i) step(limit);
  }
  double taken = 0, queue = 0, read_ahead = 0;
  int missed = 0;
};

Tokens in_force(const AutoLimit& limit) { return limit.limit() ? *limit.limit() : 20 * mib; }

TEST(AutoLimit, NobodyIsLimitedWhereNobodyNeedsIt) {
  Disk disk{.wants = 10.0 * mib};
  AutoLimit limit(64 << 10);
  disk.run(limit, 60);
  EXPECT_FALSE(limit.limit());
  EXPECT_EQ(limit.state(), AutoLimit::State::off);
}

// After twelve seconds it is near, though nothing was known of the disk; what it holds then is nine tenths of the best
// or more.
TEST(AutoLimit, FindsTheHighestThatIsEnough) {
  for (const double serves : {3.0, 20.0, 200.0, 2000.0}) {
    Disk disk{.serves = serves * mib, .wants = 5000.0 * mib};
    AutoLimit limit(64 << 10);
    disk.run(limit, 12);
    const double best = disk.serves - disk.needs;
    EXPECT_LE(disk.taken, 1.12 * best) << serves;
    disk.run(limit, 10);
    disk.missed = 0;
    double moved = 0;
    for (int i = 0; i < 400; ++i) {
      disk.step(limit);
      moved += disk.taken / 400;
    }
    EXPECT_GE(moved, 0.9 * best) << serves;
    EXPECT_LE(disk.missed, 40) << "while more is tried, " << serves;
  }
}

// Ten per cent up or down at the most, once it has settled.
TEST(AutoLimit, IsSteadyOnceSettled) {
  Disk disk{.noise = 0.02};
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

// Also where what a try too high has piled up takes its time to go.
TEST(AutoLimit, IsSteadyWithAQueueToo) {
  for (const double ahead : {0.0, 48.0}) {
    Disk disk{.ahead = ahead * mib, .queue_at_most = 10.0 * mib, .noise = 0.02};
    AutoLimit limit(64 << 10);
    disk.run(limit, 60);
    std::vector<double> limits;
    for (int i = 0; i < 2400; ++i) {
      disk.step(limit);
      limits.push_back(static_cast<double>(in_force(limit)));
    }
    std::ranges::sort(limits);
    const double usual = limits[limits.size() / 2];
    EXPECT_GE(limits.front(), 0.9 * usual) << ahead;
    EXPECT_LE(limits.back(), 1.1 * usual) << ahead;
  }
}

// A second of misses now and then that nobody's limit is to blame for: the disk's own affairs.
TEST(AutoLimit, DoesNotSinkByHiccups) {
  Disk disk{.noise = 0.02};
  AutoLimit limit(64 << 10);
  disk.run(limit, 60);
  double least = 1e18, moved = 0;
  for (int minute = 0; minute < 60; ++minute) {
    const double usual = std::exchange(disk.serves, 1.0 * mib);
    disk.run(limit, 0.5);
    disk.serves = usual;
    disk.run(limit, 59.5);
    least = std::min(least, static_cast<double>(in_force(limit)));
    moved += disk.taken / 60;
  }
  EXPECT_GE(least, 0.75 * 18 * mib);
  EXPECT_GE(moved, 0.85 * 18 * mib);
}

// Megabytes that have been read ahead, and a queue of a second: what a change does shows late.
TEST(AutoLimit, IsPatientWithADiskThatReadsAheadAndQueues) {
  Disk disk{.ahead = 48.0 * mib, .queue_at_most = 20.0 * mib};
  AutoLimit limit(64 << 10);
  disk.run(limit, 12);
  disk.missed = 0;
  double moved = 0;
  for (int i = 0; i < 480; ++i) {
    disk.step(limit);
    moved += disk.taken / 480;
  }
  EXPECT_GE(moved, 0.8 * 18 * mib);
  EXPECT_LE(disk.missed, 64);
}

// It shows before anything is missed: next to nothing is, once the limit is found, while every now and then more is
// tried (twenty minutes).
TEST(AutoLimit, GoesNoFurtherWhereWaitsGrow) {
  for (const double waits : {0.0, 0.3}) {
    Disk disk{.queue_at_most = 8.0 * mib, .spare = 1.1, .waits = waits, .noise = 0.02};
    AutoLimit limit(64 << 10);
    disk.run(limit, 30);
    disk.missed = 0;
    double moved = 0;
    for (int i = 0; i < 4 * 1200; ++i) {
      disk.step(limit);
      moved += disk.taken / (4 * 1200);
    }
    EXPECT_LE(disk.missed, 40) << waits;
    EXPECT_GE(moved, 0.93 * 18 * mib) << waits;
  }
}

// A program that always waits for its reads, more and less, is not taken for one that is kept from them.
TEST(AutoLimit, WhoWaitsAnywayIsNoReason) {
  Disk disk{.waits = 0.6, .noise = 0.02};
  AutoLimit limit(64 << 10);
  disk.run(limit, 30);
  double moved = 0;
  for (int i = 0; i < 4 * 600; ++i) {
    disk.step(limit);
    moved += disk.taken / (4 * 600);
  }
  EXPECT_GE(moved, 0.9 * 18 * mib);
}

// What he waits for now and then, or for a while, is his own affair as long as nothing is missed: it lowers the limit
// by a tenth at most, and not while nobody uses it.
TEST(AutoLimit, WaitsOfHisOwnDoNotDriveItDown) {
  const auto seldom = [](int i) { return i % 40 < 2 ? 1.0 : 0.0; };
  const auto often = [](int i) { return i % 17 < 2 ? 1.0 : 0.0; };
  const auto long_ones = [](int i) { return i % 400 < 200 ? 0.7 : 0.0; };
  const std::vector<double (*)(int)> patterns = {seldom, often, long_ones};
  for (std::size_t p = 0; p < patterns.size(); ++p) {
    Disk disk;
    AutoLimit limit(64 << 10);
    disk.run(limit, 30);
    const Tokens found = in_force(limit);
    Tokens lowest = found;
    for (int i = 0; i < 4 * 3600; ++i) {
      disk.waits_now = patterns[p](i);
      disk.step(limit);
      if (limit.state() == AutoLimit::State::holding) lowest = std::min(lowest, in_force(limit));
    }
    EXPECT_GE(static_cast<double>(lowest), 0.85 * static_cast<double>(found)) << p;
    disk.wants = 0;
    disk.run(limit, 60);
    const Tokens before = in_force(limit);
    for (int i = 0; i < 4 * 600; ++i) {
      disk.waits_now = patterns[p](i);
      disk.step(limit);
    }
    EXPECT_EQ(in_force(limit), before) << p;
  }
}

// Awake for four seconds a minute.
TEST(AutoLimit, WhoIsAwakeForShortIsNoTrap) {
  Disk disk;
  AutoLimit limit(64 << 10);
  disk.run(limit, 30);
  for (int awake = 0; awake < 200; ++awake) {
    disk.active = true;
    for (int i = 0; i < 16; ++i) {
      disk.waits_now = i < 8 ? 0 : 0.6;
      disk.step(limit);
    }
    disk.active = false;
    disk.run(limit, 4);
  }
  disk.active = true;
  disk.waits_now = 0;
  disk.run(limit, 2);
  EXPECT_GE(static_cast<double>(in_force(limit)), 0.85 * 18 * mib);
}

TEST(AutoLimit, FollowsADiskThatGetsSlowerAndFasterAgain) {
  Disk disk;
  AutoLimit limit(64 << 10);
  disk.run(limit, 20);
  disk.serves = 8.0 * mib;
  disk.run(limit, 20);
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
  Tokens lowest = 1000 * mib;
  for (int i = 0; i < 200; ++i) {
    disk.step(limit);
    lowest = std::min(lowest, in_force(limit));
  }
  EXPECT_EQ(lowest, 256 << 10);
  EXPECT_TRUE(limit.in_vain());
  EXPECT_FALSE(limit.limit()) << "it has given up for a minute";
  disk.serves = 10.0 * mib;
  disk.run(limit, 120);
  EXPECT_FALSE(limit.in_vain());
  EXPECT_GE(disk.taken, 0.8 * 8 * mib);
  EXPECT_LE(disk.taken, 1.1 * 8 * mib);
}

// A program's first reads may come late without anybody's doing.
TEST(AutoLimit, DoesNotBlameWhoDoesNothing) {
  AutoLimit limit(64 << 10);
  for (int i = 0; i < 40; ++i) limit.observe({.need = Need::missed, .protected_moved = mib});
  EXPECT_FALSE(limit.limit());
}

TEST(AutoLimit, DoesNotLowerForWhoDoesNothingAnyMore) {
  Disk disk;
  AutoLimit limit(64 << 10);
  disk.run(limit, 20);
  disk.wants = 0;
  disk.run(limit, 1);
  const auto held = limit.limit();
  for (int i = 0; i < 400; ++i) limit.observe({.need = Need::missed, .protected_moved = mib});
  EXPECT_EQ(limit.limit(), held);
}

// Whoever waits for the disk all the time, whatever others do, must not keep them from it for ever.
TEST(AutoLimit, GivesUpForAWhileWhereItIsInVain) {
  AutoLimit limit(64 << 10);
  int limited = 0, periods = 0;
  for (; periods < 4 * 3600; ++periods) {
    const Tokens others = in_force(limit);
    limited += limit.limit() ? 1 : 0;
    limit.observe(
        {.need = Need::missed, .protected_moved = mib, .others_calls = 2 * others, .others_disk = 2 * others});
  }
  EXPECT_TRUE(limit.in_vain());
  EXPECT_LT(limited, periods / 10);
  EXPECT_GT(limited, 0);
}

// Met and missed by turns is neither enough nor a reason to stay.
TEST(AutoLimit, NoPatternOfMissesKeepsItWhereItIs) {
  for (const int every : {2, 3, 5, 7}) {
    AutoLimit limit(64 << 10);
    Tokens before = 0;
    int still = 0, longest = 0;
    for (int i = 0; i < 4000; ++i) {
      const Tokens others = in_force(limit);
      limit.observe({.need = i % every == 0 ? Need::missed : Need::met,
                     .protected_moved = mib,
                     .others_calls = limit.limit() ? others : 0,
                     .others_disk = others});
      still = limit.limit() && in_force(limit) == before && limit.state() != AutoLimit::State::holding ? still + 1 : 0;
      longest = std::max(longest, still);
      before = in_force(limit);
    }
    EXPECT_LT(longest, 100) << every;
  }
}

// A burst of two seconds in six.
TEST(AutoLimit, WhoReadsInBurstsIsLearntToo) {
  Disk disk;
  AutoLimit limit(64 << 10);
  for (int burst = 0; burst < 20; ++burst) {
    disk.missed = 0;
    disk.active = true;
    disk.run(limit, 2);
    disk.active = false;
    disk.run(limit, 4);
  }
  EXPECT_LE(disk.missed, 4);
}

// A byte every three seconds takes the others' half from them for half a second at most.
TEST(AutoLimit, WhoReadsAByteNowAndThenDoesNotHalveTheLimit) {
  Disk disk;
  AutoLimit limit(64 << 10);
  disk.run(limit, 30);
  double moved = 0;
  for (int i = 0; i < 1200; ++i) {
    disk.active = i % 12 == 0;
    disk.step(limit);
    moved += disk.taken / 1200;
  }
  EXPECT_GE(moved, 0.85 * 18 * mib);
}

// A program that reads 1 MiB at a time at 2 MiB/s is still for every other period, and not calm.
TEST(AutoLimit, LargeCallsAreNoCalm) {
  AutoLimit limit(64 << 10);
  const auto period = [&](Tokens others, Need need, double waited) {
    limit.observe(
        {.need = need, .protected_moved = mib, .others_calls = others, .others_disk = others, .waited = waited});
  };
  for (int i = 0; i < 8; ++i) period(i % 2 == 0 ? 4 * mib : 0, Need::missed, 1);
  EXPECT_TRUE(limit.limit()) << "what is missed is missed because of them";
}

// Others that take less than they may say nothing of how much that may be.
TEST(AutoLimit, IsNotRaisedWhileNobodyUsesIt) {
  Disk disk;
  AutoLimit limit(64 << 10);
  disk.run(limit, 20);
  disk.wants = 1.0 * mib;
  disk.run(limit, 20);  // a try may be under way
  const auto held = limit.limit();
  disk.run(limit, 300);
  EXPECT_EQ(limit.limit(), held);
}

}  // namespace
}  // namespace swapd::test
