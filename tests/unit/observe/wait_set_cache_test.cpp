#include "observe/resolve/wait_set_cache.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <chrono>

namespace swapd::observe {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

CallSite epoll_of(pid_t tid, std::uint64_t set, pid_t tgid = 10) {
  return {.tid = tid, .tgid = tgid, .nr = SYS_epoll_wait, .args = {set}};
}
const Resource a = socket_endpoint(1), b = socket_endpoint(2), c = socket_endpoint(3);

// A thread that waits in a set, and a worker that reads it when the engine asks, at once.
class WaitSets : public testing::Test {
 protected:
  // What the thread is said to wait for in the end.
  std::vector<Resource> wait(const CallSite& site) {
    const auto known = cache_.find(site, now_);
    return known && known->believed ? known->awaited : look(site);
  }
  std::vector<Resource> wait() { return wait(here_); }
  std::vector<Resource> look(const CallSite& site, bool certain = true) {
    ++reads_;
    return cache_.take(site, {.awaited = set_, .certain = certain, .cost = cost_}, now_);
  }
  // The thread waits again and again, for so long.
  void work(Duration time, const CallSite& site, Duration pause = microseconds(100)) {
    for (const Time until = now_ + time; now_ < until; now_ += pause) wait(site);
  }
  void settle() { work(milliseconds(100), here_); }
  int reads_in(Duration time) {
    const int before = reads_;
    work(time, here_);
    return reads_ - before;
  }

  WaitSetCache cache_;
  const CallSite here_ = epoll_of(10, 5);
  Time now_{seconds(1000)};
  std::vector<Resource> set_{a, b};
  Duration cost_{};
  int reads_ = 0;
};

TEST_F(WaitSets, TheSameSetAgainIsNotRead) {
  EXPECT_EQ(wait(), set_);
  EXPECT_EQ(wait(), set_);
  EXPECT_EQ(reads_, 2) << "two looks must agree";
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(wait(), set_);
  EXPECT_EQ(reads_, 2);
}

TEST_F(WaitSets, EachLookThatFindsNothingNewDoublesThePause) {
  EXPECT_EQ(reads_in(milliseconds(1)), 2);
  EXPECT_EQ(reads_in(milliseconds(2)), 1);
  EXPECT_EQ(reads_in(milliseconds(4)), 1);
  settle();
  EXPECT_EQ(reads_in(milliseconds(1000)), 50);
}

TEST_F(WaitSets, AMemberMoreIsSeenWithinTwentyMilliseconds) {
  settle();
  set_.push_back(c);
  work(milliseconds(20), here_);
  EXPECT_EQ(wait(), set_);
}

TEST_F(WaitSets, AMemberLessIsSeenWithinTwentyMilliseconds) {
  settle();
  set_.pop_back();
  work(milliseconds(20), here_);
  EXPECT_EQ(wait(), set_);
}

TEST_F(WaitSets, AWaitThatLastsIsToBeLookedAtWithinTwentyMilliseconds) {
  settle();
  const auto known = cache_.find(here_, now_);
  ASSERT_TRUE(known && known->believed);
  EXPECT_GT(known->until, now_);
  EXPECT_LE(known->until, now_ + milliseconds(20));
}

TEST_F(WaitSets, ASetThatHasChangedIsReadUntilTwoLooksAgree) {
  settle();
  set_ = {c};
  look(here_);
  EXPECT_FALSE(cache_.find(here_, now_)->believed);
  look(here_);
  EXPECT_TRUE(cache_.find(here_, now_)->believed);
}

TEST_F(WaitSets, AnArrayThatIsFilledAnewForEachPollIsReadForEachWait) {
  const CallSite poll{.tid = 10, .tgid = 10, .nr = SYS_poll, .args = {0x1000, 1}};
  for (int i = 0; i < 20; ++i) {
    set_ = {i % 2 == 0 ? a : b};
    EXPECT_EQ(wait(poll), set_);
    now_ += microseconds(100);
  }
}

TEST_F(WaitSets, TheOrderOfTheMembersIsNoChange) {
  settle();
  set_ = {b, a};
  EXPECT_EQ(look(here_), (std::vector{a, b}));
  EXPECT_TRUE(cache_.find(here_, now_)->believed);
}

TEST_F(WaitSets, TheWorkerIsAskedOnceForALook) {
  settle();
  now_ += milliseconds(20);
  const auto first = cache_.find(here_, now_);
  EXPECT_FALSE(first->believed);
  EXPECT_EQ(first->awaited, set_) << "a guess until it has looked";
  const auto second = cache_.find(here_, now_);
  EXPECT_TRUE(second->believed);
  EXPECT_LE(second->until, now_ + milliseconds(1)) << "in case the question is lost";
}

TEST_F(WaitSets, ALookWhileTheThreadRunsChangesNothing) {
  settle();
  const auto before = set_;
  set_ = {a};  // it takes a member out, and will put it back
  EXPECT_EQ(look(here_, false), before);
  EXPECT_TRUE(cache_.find(here_, now_)->believed);
  EXPECT_LE(cache_.find(here_, now_)->until, now_ + milliseconds(1)) << "but is soon repeated";
  set_ = before;
  EXPECT_EQ(look(here_, false), before);
}

TEST_F(WaitSets, ManySuchLooksInARowDo) {
  settle();
  const auto before = set_;
  set_ = {a};
  for (int i = 0; i < 3; ++i) EXPECT_EQ(look(here_, false), before);
  EXPECT_EQ(look(here_, false), set_);
}

TEST_F(WaitSets, WhatIsFoundFirstIsBetterThanNothing) {
  EXPECT_EQ(look(here_, false), set_);
  EXPECT_EQ(cache_.find(here_, now_)->awaited, set_);
}

TEST_F(WaitSets, ADoubtLeadsToALookAMillisecondAfterTheLast) {
  settle();
  look(here_);
  now_ += microseconds(900);
  cache_.doubt(here_);
  EXPECT_TRUE(cache_.find(here_, now_)->believed);
  now_ += microseconds(100);
  EXPECT_FALSE(cache_.find(here_, now_)->believed);
}

TEST_F(WaitSets, LooksAtLargeSetsTakeATwentiethOfACpu) {
  cost_ = milliseconds(2);
  settle();
  EXPECT_LE(reads_in(seconds(1)) * cost_, milliseconds(52));
}

TEST_F(WaitSets, LooksAtManySetsTogetherTakeATwentiethOfACpu) {
  cost_ = microseconds(100);
  const int sets = 100;
  const auto round = [&] {
    for (int i = 0; i < sets; ++i) wait(epoll_of(10, static_cast<std::uint64_t>(i)));
    now_ += milliseconds(1);
  };
  for (int i = 0; i < 500; ++i) round();
  reads_ = 0;
  for (int i = 0; i < 1000; ++i) round();
  EXPECT_LE(reads_ * cost_, milliseconds(60));
  EXPECT_GE(reads_, 3 * sets) << "and each is looked at";
}

TEST_F(WaitSets, LooksAtALargeSetThatChangesAllTheTimeTakeAFiftiethOfACpu) {
  cost_ = milliseconds(1);
  reads_ = 0;
  for (std::uint64_t i = 0; i < 10000; ++i) {
    set_ = {socket_endpoint(i)};
    wait();
    now_ += microseconds(100);
  }
  EXPECT_LE(reads_ * cost_, milliseconds(26));
  EXPECT_GE(reads_ * cost_, milliseconds(15));
}

TEST_F(WaitSets, ASetThatIsNotInUseMakesTheOthersWaitNoLonger) {
  cost_ = milliseconds(10);
  wait(epoll_of(10, 6));
  cost_ = {};
  now_ += seconds(2);
  settle();
  EXPECT_EQ(reads_in(milliseconds(1000)), 50);
}

TEST_F(WaitSets, AnotherThreadCallOrDescriptorIsAnotherSet) {
  settle();
  CallSite other_call = here_;
  other_call.nr = SYS_poll;
  for (const CallSite& elsewhere : {epoll_of(11, 5), epoll_of(10, 6), other_call})
    EXPECT_FALSE(cache_.find(elsewhere, now_).has_value());
}

TEST_F(WaitSets, TheTimeoutAndTheRoomForEventsTellNoSetsApart) {
  settle();
  CallSite later = here_;
  later.args = {5, 0x7000, 64, 1000};
  EXPECT_TRUE(cache_.find(later, now_)->believed);
}

TEST_F(WaitSets, TheBitSetsOfSelectTellSetsApart) {
  CallSite reading{.tid = 10, .tgid = 10, .nr = SYS_select, .args = {8, 0x1000, 0, 0, 0}};
  wait(reading);
  wait(reading);
  CallSite writing = reading;
  writing.args = {8, 0, 0x1000, 0, 0};
  EXPECT_FALSE(cache_.find(writing, now_).has_value());
}

TEST_F(WaitSets, AProcessThatEndsOrExecutesAnotherProgramIsForgotten) {
  const CallSite thread = epoll_of(11, 5, 10);
  const CallSite stranger = epoll_of(12, 5, 12);
  for (const CallSite& site : {here_, thread, stranger}) wait(site);
  cache_.forget(10);
  EXPECT_FALSE(cache_.knows(here_));
  EXPECT_FALSE(cache_.knows(thread));
  EXPECT_TRUE(cache_.knows(stranger));
}

TEST_F(WaitSets, TheSetThatHasNotBeenUsedForLongestGivesWay) {
  for (std::uint64_t i = 0; i <= 1024; ++i) {
    wait(epoll_of(10, i));
    now_ += microseconds(1);
    (void)cache_.find(epoll_of(10, 0), now_);
  }
  EXPECT_EQ(cache_.size(), 1024U);
  EXPECT_TRUE(cache_.knows(epoll_of(10, 0)));
  EXPECT_FALSE(cache_.knows(epoll_of(10, 1)));
  EXPECT_TRUE(cache_.knows(epoll_of(10, 1024)));
}

TEST_F(WaitSets, LargeSetsGiveWaySooner) {
  set_.assign(256, a);
  for (std::uint64_t i = 0; i < 300; ++i) wait(epoll_of(10, i));
  EXPECT_EQ(cache_.size(), 65536U / 256);
}

}  // namespace
}  // namespace swapd::observe
