// Threads that try, sleep for a moment and try again: who does, when it is looked at what they try, and which locks
// that may be.
#include "observe/resolve/pollers.h"

#include <gmock/gmock.h>
#include <sys/syscall.h>

namespace swapd::observe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using LockType = sys::LockLine::Type;
using std::chrono::milliseconds;

constexpr pid_t tid = 100;

class PollersTest : public testing::Test {
 protected:
  bool sleeps_after(Duration time, bool found = false, std::int32_t nr = SYS_clock_nanosleep) {
    now_ += time;
    return pollers_.sleeps(tid, {.nr = nr, .args = {}}, found, now_);
  }
  Time now_{std::chrono::seconds(1000)};
  Pollers pollers_;
};

TEST_F(PollersTest, TheThirdShortSleepInARowIsLookedAt) {
  EXPECT_FALSE(sleeps_after(milliseconds(0)));
  EXPECT_FALSE(sleeps_after(milliseconds(1)));
  EXPECT_FALSE(pollers_.polls(tid, now_));
  EXPECT_TRUE(sleeps_after(milliseconds(100)));
  EXPECT_TRUE(pollers_.polls(tid, now_));
  EXPECT_FALSE(pollers_.polls(tid, now_ + milliseconds(200))) << "it does something else by now";
}

TEST_F(PollersTest, LongSleepsAndOtherCallsAreNoRow) {
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(sleeps_after(milliseconds(200)));
  for (int i = 0; i < 6; ++i)
    EXPECT_FALSE(sleeps_after(milliseconds(10), false, i % 2 == 0 ? SYS_nanosleep : SYS_poll));
}

TEST_F(PollersTest, ANewRowIsLookedAtThoughTheLastOneWasInVain) {
  for (int i = 0; i < 1000; ++i) (void)sleeps_after(milliseconds(10));
  int looks = 0;
  for (int i = 0; i < 3; ++i) looks += sleeps_after(milliseconds(10), false, SYS_nanosleep) ? 1 : 0;
  EXPECT_EQ(looks, 1);
}

TEST_F(PollersTest, WhereNothingIsFoundLooksBecomeRare) {
  int looks = 0;
  for (int i = 0; i < 1000; ++i) looks += sleeps_after(milliseconds(10)) ? 1 : 0;  // 10 s
  EXPECT_GE(looks, 5);
  EXPECT_LE(looks, 12);
}

TEST_F(PollersTest, WhatIsFoundIsLookedAtTwentyTimesASecond) {
  int looks = 0;
  for (int i = 0; i < 100; ++i) looks += sleeps_after(milliseconds(10), true) ? 1 : 0;  // 1 s
  EXPECT_GE(looks, 18);
  EXPECT_LE(looks, 21);
}

TEST(ContendedLocks, AreThoseOfOthersOnFilesThatAreOpen) {
  const std::vector<sys::LockLine> locks = {
      {.type = LockType::posix, .write = true, .pid = 7, .dev = 1, .ino = 10, .first = 5, .last = 5},
      {.type = LockType::posix, .write = true, .pid = 8, .dev = 1, .ino = 10, .first = 9, .last = 9},  // its own
      {.type = LockType::posix,
       .write = true,
       .waiting = true,
       .pid = 9,
       .dev = 1,
       .ino = 10,
       .first = 5,
       .last = 5},  // waits
      {.type = LockType::flock, .write = true, .pid = 7, .dev = 1, .ino = 11},
      {.type = LockType::flock, .write = true, .pid = 7, .dev = 2, .ino = 10},  // another file
      {.type = LockType::lease, .write = true, .pid = 7, .dev = 1, .ino = 10},
  };
  const std::vector<FileId> files = {{1, 10}, {1, 11}};
  EXPECT_THAT(contended_locks(locks, files, 8), ElementsAre(Resource{ResourceKind::record_lock, {1, 10, 5, 5}},
                                                            Resource{ResourceKind::flock, {1, 11, 1}}));
  EXPECT_THAT(contended_locks(locks, {}, 8), IsEmpty());
}

TEST(ContendedLocks, SharedOnesOnlyWhereNoneIsExclusive) {
  std::vector<sys::LockLine> locks = {
      {.type = LockType::posix, .write = false, .pid = 7, .dev = 1, .ino = 10, .first = 1, .last = 3},
      {.type = LockType::posix, .write = true, .pid = 7, .dev = 1, .ino = 10, .first = 5, .last = 5}};
  const std::vector<FileId> files = {{1, 10}};
  EXPECT_THAT(contended_locks(locks, files, 8), ElementsAre(Resource{ResourceKind::record_lock, {1, 10, 5, 5}}));
  locks.pop_back();
  EXPECT_THAT(contended_locks(locks, files, 8), ElementsAre(Resource{ResourceKind::record_lock, {1, 10, 1, 3}}));
}

}  // namespace
}  // namespace swapd::observe
