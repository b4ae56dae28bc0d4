// Swapd lives, and its guard has ended, or does not answer.
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>
#include <utility>
#include <vector>

#include "guard_fixture.h"

namespace swapd::daemon {
namespace {

using test::eventually;
using test::state_of;
using test::Supervised;

TEST_F(GuardTest, AnotherTakesItsPlace) {
  ASSERT_NO_FATAL_FAILURE(begin());
  go();
  for (int round = 0; round < 5; ++round) {
    const int before = progress_.guard.load();
    ::kill(before, SIGKILL);
    ASSERT_TRUE(calls_go_on());
    ASSERT_TRUE(eventually([&] { return progress_.guard.load() != before; })) << round;
  }
  kill_and_reap(swapd_);
  EXPECT_TRUE(calls_go_on());
  end();
  EXPECT_TRUE(guard_ended());
}

TEST_F(GuardTest, AnotherHoldsEveryListener) {
  ASSERT_NO_FATAL_FAILURE(begin(default_stale, 2));
  const int before = progress_.guard.load();
  ::kill(before, SIGKILL);
  ASSERT_TRUE(eventually([&] { return progress_.guard.load() != before; }));
  kill_and_reap(swapd_);
  go();
  ASSERT_TRUE(calls_go_on());
  end();
}

// A guard of the test's own, and a program that does not begin before the test's end.
class OwnGuard : public testing::Test {
 protected:
  void SetUp() override {
    auto started = Guard::start(guard_options());
    ASSERT_TRUE(program_.ready() && started);
    guard_.emplace(std::move(started).value());
    first_ = guard_->pid();
  }
  void TearDown() override {
    program_.go();
    EXPECT_EQ(program_.wait(), 0);
  }

  Supervised program_{getppid_only, [] { return 0; }};
  std::optional<Guard> guard_;
  pid_t first_ = -1;
};

// A launch need not wait until somebody has noticed.
TEST_F(OwnGuard, HoldStartsAnotherWhereTheGuardIsDead) {
  ASSERT_TRUE(guard_->hold(program_.listener()));
  ::kill(first_, SIGKILL);
  EXPECT_TRUE(guard_->hold(program_.listener()));
  EXPECT_NE(guard_->pid(), first_);
  EXPECT_EQ(state_of(first_), '\0') << "reaped";
}

// It holds what it held, and nobody else does: it is not ended for being slow.
TEST_F(OwnGuard, OneThatIsStoppedIsLeftAlone) {
  ::kill(first_, SIGSTOP);
  ASSERT_TRUE(eventually([&] { return state_of(first_) == 'T'; }));
  const auto late = guard_->hold(program_.listener());
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), ETIMEDOUT);
  EXPECT_TRUE(guard_->look_after());
  EXPECT_EQ(guard_->pid(), first_);
  ::kill(first_, SIGCONT);
  EXPECT_TRUE(guard_->hold(program_.listener()));
}

// No place for another process's ends: it is tried again, and nobody is killed for it.
TEST_F(OwnGuard, WhereNoneCanBeStartedItIsTriedAgain) {
  ASSERT_TRUE(guard_->hold(program_.listener()));
  ::kill(first_, SIGKILL);
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const int next = Fd(::dup(0)).get();
  const rlimit full{static_cast<rlim_t>(next), limit.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &full);
  EXPECT_TRUE(eventually([&] { return !guard_->look_after(); }));
  EXPECT_FALSE(guard_->look_after());
  EXPECT_EQ(guard_->pid(), first_);
  ::setrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_TRUE(guard_->look_after());
  EXPECT_NE(guard_->pid(), first_);
  EXPECT_EQ(listeners(*guard_), 1);
}

// In a child, whose limit cannot be raised again.
TEST_F(OwnGuard, WhatTheNextOneCannotHoldItHoldsLater) {
  Supervised other(getppid_only, [] { return 0; });
  ASSERT_TRUE(other.ready());
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    auto guard = Guard::start(guard_options());
    // Ours have high numbers, so that a low limit, which the next guard inherits, is no hindrance to us.
    std::vector<Fd> low;
    for (int i = 0; i < 64; ++i) low.emplace_back(::dup(0));
    for (int i = 0; i < 20; ++i)
      for (const Supervised* program : {&program_, &other})
        if (!guard->hold(program->listener())) ::_exit(1);
    low.clear();
    const rlimit few{40, 40};
    ::setrlimit(RLIMIT_NOFILE, &few);
    ::kill(guard->pid(), SIGKILL);
    int code = 0;
    if (!eventually([&] {
          const Status looked = guard->look_after();
          if (!looked) code = looked.error().code();
          return !looked;
        }))
      ::_exit(2);
    if (code != EMFILE || listeners(*guard) == 40) ::_exit(3);
    other.go();  // it ends, and there is room
    ::_exit(eventually([&] { return guard->look_after() && listeners(*guard) == 20; }) ? 0 : 4);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(other.wait(), 0);
}

}  // namespace
}  // namespace swapd::daemon
