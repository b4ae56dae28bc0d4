// The kernel's tracer follows switches and wakes, or does not.
#include <algorithm>

#include "bpf_fixture.h"
#include "sys/bpf/bpf_tracer.h"

namespace swapd::sys {
namespace {

using test::eventually;
using test::Role;
using test::state_of;

using BpfFollow = test::BpfTest;

// Where switches and wakes are not followed nothing is known of a thread; who belongs to the set is, …
TEST_F(BpfFollow, WithoutFollowingOnlyTheSetIsKept) {
  open({.follow = false});
  ASSERT_TRUE(tracer_);
  EXPECT_FALSE(tracer_->follows());
  Role parent([](Role& role) {
    role.answer();
    test::await_child(role);
  });
  ASSERT_TRUE(eventually([&] { return state_of(parent.pid()) == 'S'; }));
  ASSERT_TRUE(tracer_->manage(parent.pid()));
  parent.go();
  parent.heard();
  ASSERT_TRUE(find([&](const auto& r) { return r.what == What::fork && r.parent == parent.pid(); }));
  const pid_t child = record_.tid;
  EXPECT_TRUE(tracer_->manages(child));
  ASSERT_TRUE(eventually([&] { return state_of(child) == 'S' && state_of(parent.pid()) == 'S'; }));
  EXPECT_EQ(tracer_->slot(child)->phase, Phase::unknown);
  EXPECT_EQ(tracer_->slot(parent.pid())->phase, Phase::unknown);
  // … and from then on everything: also the end of a wait whose beginning was not followed.
  ASSERT_TRUE(tracer_->follow(true));
  EXPECT_TRUE(tracer_->follows());
  ASSERT_TRUE(tracer_->watch(parent.pid(), true, true));
  parent.go();
  ASSERT_TRUE(find(What::woken, parent.pid()));
  EXPECT_EQ(record_.waker.tid, child);
  EXPECT_EQ(record_.blocked_at, Time{});
  EXPECT_EQ(parent.end(), 0);
}

TEST_F(BpfFollow, WhatWasSeenBeforeAPauseIsForgotten) {
  Role waiter([](Role& role) {
    role.answer();
    role.word();
    role.answer();
    role.word();
  });
  open({});  // after the fork: kernels before 6.9 attach no program again whose attachment a child holds, too
  ASSERT_TRUE(tracer_);
  ASSERT_TRUE(eventually([&] { return state_of(waiter.pid()) == 'S'; }));
  ASSERT_TRUE(tracer_->manage(waiter.pid()));
  waiter.go();
  waiter.heard();
  ASSERT_TRUE(rests_in(waiter.pid(), SYS_read));
  EXPECT_GT(tracer_->slot(waiter.pid())->cpu, Duration::zero());
  ASSERT_TRUE(tracer_->follow(false));
  waiter.go();
  waiter.heard();
  ASSERT_TRUE(tracer_->follow(false)) << "it is so already";
  ASSERT_TRUE(eventually([&] { return tracer_->follow(true).ok(); }));
  const auto slot = tracer_->slot(waiter.pid());
  ASSERT_TRUE(slot);
  EXPECT_EQ(slot->phase, Phase::unknown);
  EXPECT_EQ(slot->call, -1);
  EXPECT_EQ(slot->blocked_at, Time{});
  EXPECT_EQ(slot->cpu, Duration::zero());
  EXPECT_GT(*tracer_->cpu_time(waiter.pid(), std::chrono::steady_clock::now()), Duration::zero()) << "procfs knows";
}

}  // namespace
}  // namespace swapd::sys
