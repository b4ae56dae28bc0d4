// Switches and wakes are followed only while somebody is watched.
#include <sys/syscall.h>

#include "credit_fixture.h"
#include "observe/bpf_observer.h"

namespace swapd::observe {
namespace {

using test::Actor;
using test::base_confidence;
using test::Pipe;

// Nobody was watched, so nothing was followed; both have begun to wait meanwhile.
class FollowedLate : public test::Credit {
 protected:
  void SetUp() override { begin({.follow = false}); }
};

TEST_F(FollowedLate, AWaitThatHasBegunBeforeIsToldAndItsEndCredited) {
  const Pipe pipe;
  const Actor waiter([&] { pipe.take(); }), writer([&] { pipe.put(); }), other([] {});
  const ThreadId w = join(waiter), p = join(writer), o = join(other);
  know(pipe.writers(), {p, o});
  waiter.go();
  ASSERT_TRUE(until(w, [&] {
    const auto call = procfs_.syscall(w.tid);
    return call && !call->running && call->nr == SYS_read && call->args[0] == static_cast<unsigned>(pipe.in.get());
  }));
  observer_->watch({w, w.tid}, true);
  ASSERT_TRUE(waits_for(w, pipe.writers()));
  writer.go();
  ASSERT_TRUE(wakes(w));
  EXPECT_EQ(woken_.by, p);
  EXPECT_EQ(confidences(pipe.writers()),
            (std::map<pid_t, int>{{p.tid, base_confidence + 1}, {o.tid, base_confidence}}));
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
