// Switches and wakes are followed only while somebody is watched.
#include <sys/resource.h>
#include <sys/syscall.h>

#include "credit_fixture.h"
#include "observe/bpf/bpf_observer.h"

namespace swapd::observe {
namespace {

using test::Actor;
using test::base_confidence;
using test::Pipe;

// Nobody was watched, so nothing was followed; both have begun to wait meanwhile.
class FollowedLate : public test::Credit {
 protected:
  void SetUp() override { begin({.follow = false}); }
  bool reads(ThreadId id, const Pipe& pipe) {
    return until(id, [&] {
      const auto call = procfs_.syscall(id.tid);
      return call && !call->running && call->nr == SYS_read && call->args[0] == static_cast<unsigned>(pipe.in.get());
    });
  }
};

TEST_F(FollowedLate, AWaitThatHasBegunBeforeIsToldAndItsEndCredited) {
  const Pipe pipe;
  const Actor waiter([&] { pipe.take(); }), writer([&] { pipe.put(); }), other([] {});
  const ThreadId w = join(waiter), p = join(writer), o = join(other);
  know(pipe.writers(), {p, o});
  waiter.go();
  ASSERT_TRUE(reads(w, pipe));
  observer_->watch({w, w.tid}, true);
  ASSERT_TRUE(waits_for(w, pipe.writers()));
  writer.go();
  ASSERT_TRUE(wakes(w));
  EXPECT_EQ(woken_.by, p);
  EXPECT_EQ(confidences(pipe.writers()),
            (std::map<pid_t, int>{{p.tid, base_confidence + 1}, {o.tid, base_confidence}}));
}

// /proc says that it is in its call still.
TEST_F(FollowedLate, OneThatIsStoppedWaitsForNobody) {
  const Pipe pipe;
  const Actor waiter([&] { pipe.take(); });
  const ThreadId w = join(waiter);
  waiter.go();
  ASSERT_TRUE(reads(w, pipe));
  ::kill(w.tid, SIGSTOP);
  ASSERT_TRUE(until(w, [&] { return procfs_.stat(w.tid)->state == 'T'; }));
  observer_->watch({w, w.tid}, true);
  ASSERT_TRUE(until(w, [&] { return model_.thread(w)->state == model::RunState::blocked; }));
  EXPECT_TRUE(model_.thread(w)->awaited.empty());
  ::kill(w.tid, SIGCONT);
  EXPECT_TRUE(waits_for(w, pipe.writers()));
}

// The kernel refuses, for want of descriptors: that is told once, no wait is of which the end would not be, and it is
// asked again.
TEST_F(FollowedLate, WhatIsRefusedIsToldAndAskedForAgain) {
  const Pipe pipe;
  const Actor waiter([&] { pipe.take(); }), writer([&] { pipe.put(); });
  const ThreadId w = join(waiter), p = join(writer);
  waiter.go();
  ASSERT_TRUE(reads(w, pipe));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  observer_->watch({w, w.tid}, true);
  observer_->watch({p, p.tid}, true);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(following_, std::vector{false});
  std::vector<Event> events;
  observer_->drain(std::chrono::steady_clock::now(), events);  // looks at the threads, and then asks again
  EXPECT_EQ(following_, (std::vector{false, true}));
  for (const Event& event : events) EXPECT_FALSE(std::holds_alternative<Blocked>(event));
  ASSERT_TRUE(waits_for(w, pipe.writers()));
  writer.go();
  ASSERT_TRUE(wakes(w));
  EXPECT_EQ(woken_.by, p);
}

// Also where nobody drains after the last one was let go.
TEST_F(FollowedLate, TheObserverAsksToBeCalledOnceTheLastIsLetGo) {
  const Actor first([] {});
  const ThreadId f = join(first);
  std::vector<Event> events;
  observer_->watch({f, f.tid}, true);
  observer_->drain(std::chrono::steady_clock::now() + std::chrono::seconds(1), events);
  observer_->unwatch(f);
  EXPECT_EQ(observer_->deadline(), Time{});
}

// Five seconds after the last was watched the observer asks to be called, and follows nobody any more.
TEST_F(FollowedLate, UntilNobodyIsWatchedForAWhile) {
  const Actor first([] {});
  const ThreadId f = join(first);
  std::vector<Event> events;
  observer_->drain(std::chrono::steady_clock::now(), events);
  EXPECT_EQ(observer_->deadline(), std::nullopt) << "nothing is followed";
  observer_->watch({f, f.tid}, true);
  observer_->drain(std::chrono::steady_clock::now(), events);
  observer_->unwatch(f);
  const Time now = std::chrono::steady_clock::now() + std::chrono::seconds(1);  // both looks are over
  observer_->drain(now, events);
  ASSERT_TRUE(observer_->deadline());
  EXPECT_GT(*observer_->deadline(), now + std::chrono::seconds(1));
  observer_->drain(*observer_->deadline(), events);
  EXPECT_EQ(observer_->deadline(), std::nullopt);
}

}  // namespace
}  // namespace swapd::observe
