// Event loops: the worker is asked now and then, not for each wait, and what changes in a set is still seen.
#include <sys/epoll.h>
#include <unistd.h>

#include "credit_fixture.h"

namespace swapd::observe {
namespace {

class EventLoops : public test::Credit {
 protected:
  static int set_of(const test::Pipe& member) {
    const int set = ::epoll_create1(0);
    add(set, member);
    return set;
  }
  static void add(int set, const test::Pipe& member) {
    epoll_event event{};
    event.events = EPOLLIN;
    ::epoll_ctl(set, EPOLL_CTL_ADD, member.in.get(), &event);
  }
  static void wait_in(int set) {
    epoll_event event{};
    while (::epoll_wait(set, &event, 1, -1) < 0) {
    }
  }
};

TEST_F(EventLoops, AskTheWorkerNowAndThen) {
  constexpr int rounds = 2000;
  const test::Pipe request, answer;
  const test::Actor waiter([&] {
    const int set = set_of(answer);
    for (int i = 0; i < rounds; ++i) {
      request.put();
      wait_in(set);
      answer.take();
    }
  });
  const test::Actor provider([&] {
    for (;;) {
      request.take();
      answer.put();
    }
  });
  const ThreadId waits = join(waiter), provides = join(provider);
  observer_->watch({waits, waiter.pid()}, false);
  provider.go();
  waiter.go();
  ASSERT_TRUE(waits_for(waits, answer.writers()));
  const int before = wakes_;
  questions_ = 0;
  // Not all rounds: a wake may come before the block.
  ASSERT_TRUE(until(waits, [&] { return wakes_ > before + rounds / 4; }));
  EXPECT_LT(questions_, (wakes_ - before) / 2);
  EXPECT_EQ(woken_.by, provides);
  EXPECT_EQ(woken_.through, answer.writers()) << "a wait that the worker was not asked about has its provider, too";
}

TEST_F(EventLoops, AMemberThatIsAddedIsSeenWhileTheNextWaitLasts) {
  constexpr int rounds = 50;
  const test::Pipe first, second;
  const test::Actor waiter([&] {
    const int set = set_of(first);
    for (int i = 0; i < rounds; ++i) {
      wait_in(set);
      first.take();
    }
    add(set, second);
    wait_in(set);
  });
  const ThreadId waits = join(waiter);
  observer_->watch({waits, waiter.pid()}, false);
  waiter.go();
  for (int i = 0; i < rounds; ++i) {
    ASSERT_TRUE(waits_for(waits, first.writers()));
    first.put();
    ASSERT_TRUE(wakes(waits));
  }
  EXPECT_TRUE(waits_for(waits, second.writers()));
}

TEST_F(EventLoops, AMemberThatReplacesAnotherUnderItsNumberIsSeen) {
  constexpr int rounds = 50;
  const test::Pipe first, second;
  const test::Actor waiter([&] {
    const int set = set_of(first);
    for (int i = 0; i < rounds; ++i) {
      wait_in(set);
      first.take();
    }
    ::dup2(second.in.get(), first.in.get());  // closes it, which takes it out
    add(set, first);
    wait_in(set);
  });
  const ThreadId waits = join(waiter);
  observer_->watch({waits, waiter.pid()}, false);
  waiter.go();
  for (int i = 0; i < rounds; ++i) {
    ASSERT_TRUE(waits_for(waits, first.writers()));
    first.put();
    ASSERT_TRUE(wakes(waits));
  }
  EXPECT_TRUE(waits_for(waits, second.writers()));
}

}  // namespace
}  // namespace swapd::observe
