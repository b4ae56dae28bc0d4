#include "observe/wait_state.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <chrono>

#include "fakes/fake_proc.h"
#include "sys/netlink/sock_diag.h"

namespace swapd::observe {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Waits in a set without members, of a thread that exists only here.
class WaitsInSets : public testing::Test {
 protected:
  WaitsInSets() {
    clock_.advance(seconds(1000));
    state_.member = {.id = {10, 1}, .tgid = 10};
  }
  void look() { (void)resolver_.full(site_); }
  void block() { teller_.block(state_, clock_.now(), site_, events_); }
  void wake() { teller_.wake(state_, clock_.now(), events_); }
  void ask_due(WaitState* state) {
    teller_.ask_due(clock_.now(), [state](ThreadId) { return state; });
  }
  void go_to_the_look() { clock_.set(*teller_.next_look()); }

  const fakes::FakeProc proc_;
  const sys::Procfs procfs_{proc_.root()};
  sys::SockDiag diag_;
  ManualClock clock_;
  Resolver resolver_{procfs_, diag_, &clock_};
  std::vector<WaitQuestion> questions_;
  const Observer::Hooks hooks_{.identify = {},
                               .ask = [this](const WaitQuestion& q) { questions_.push_back(q); },
                               .ask_access = {},
                               .lifecycle = {},
                               .every_life = {},
                               .lost = {}};
  WaitTeller teller_{resolver_, hooks_};
  WaitState state_;
  const CallSite site_{.tid = 10, .tgid = 10, .nr = SYS_epoll_wait, .args = {5}};
  std::vector<Event> events_;
};

TEST_F(WaitsInSets, TheWorkerIsAskedAboutTheFirst) {
  block();
  ASSERT_EQ(questions_.size(), 1U);
  EXPECT_EQ(questions_[0].generation, state_.generation);
  EXPECT_FALSE(teller_.next_look());
}

TEST_F(WaitsInSets, TheWorkerIsNotAskedWhileTheSetIsBelieved) {
  look();
  look();
  block();
  EXPECT_TRUE(questions_.empty());
  ASSERT_TRUE(teller_.next_look());
  EXPECT_GT(*teller_.next_look(), clock_.now());
}

TEST_F(WaitsInSets, OneThatLastsIsAskedAboutOnceWhenTheSetIsNotBelievedAnyMore) {
  look();
  look();
  block();
  go_to_the_look();
  ask_due(&state_);
  ASSERT_EQ(questions_.size(), 1U);
  EXPECT_EQ(questions_[0].generation, state_.generation);
  EXPECT_FALSE(teller_.next_look());
  clock_.advance(seconds(1));
  ask_due(&state_);
  EXPECT_EQ(questions_.size(), 1U);
}

TEST_F(WaitsInSets, OneThatHasEndedIsNotAskedAbout) {
  look();
  look();
  block();
  wake();
  go_to_the_look();
  ask_due(&state_);
  EXPECT_TRUE(questions_.empty());
  EXPECT_FALSE(teller_.next_look());
}

TEST_F(WaitsInSets, ALaterOneIsAskedAboutInItsOwnTime) {
  look();
  look();
  block();
  wake();
  clock_.set(*teller_.next_look() - std::chrono::nanoseconds(1));
  look();
  block();
  go_to_the_look();
  ask_due(&state_);
  EXPECT_TRUE(questions_.empty());
  ASSERT_TRUE(teller_.next_look());
  EXPECT_GT(*teller_.next_look(), clock_.now());
  go_to_the_look();
  ask_due(&state_);
  EXPECT_EQ(questions_.size(), 1U);
}

TEST_F(WaitsInSets, ManyShortOnesAreNotedOnce) {
  look();
  look();
  for (int i = 0; i < 100; ++i) {
    block();
    wake();
  }
  go_to_the_look();
  ask_due(&state_);
  EXPECT_FALSE(teller_.next_look());
}

TEST_F(WaitsInSets, OneThatTheWorkerHasLookedAtIsNotAskedAboutAgain) {
  look();
  look();
  block();
  teller_.answer(state_, {{.thread = state_.member.id, .site = site_, .generation = state_.generation}, {}}, events_);
  go_to_the_look();
  ask_due(&state_);
  EXPECT_TRUE(questions_.empty());
}

TEST_F(WaitsInSets, AThreadThatIsNotWatchedAnyMoreIsNotAskedAbout) {
  look();
  look();
  block();
  go_to_the_look();
  ask_due(nullptr);
  EXPECT_TRUE(questions_.empty());
  EXPECT_FALSE(teller_.next_look());
}

TEST_F(WaitsInSets, WhatTheWorkerCouldNotAskForIsAskedForLater) {
  block();
  ASSERT_EQ(questions_.size(), 1U);
  const Time later = clock_.now() + milliseconds(150);
  teller_.answer(state_, {questions_[0], {.awaited = {}, .complete = true, .owners = {}, .believed_until = later}},
                 events_);
  EXPECT_EQ(teller_.next_look(), later);
  ask_due(&state_);
  EXPECT_EQ(questions_.size(), 1U) << "not before that";
  go_to_the_look();
  ask_due(&state_);
  EXPECT_EQ(questions_.size(), 2U);
  EXPECT_FALSE(teller_.next_look());
}

}  // namespace
}  // namespace swapd::observe
