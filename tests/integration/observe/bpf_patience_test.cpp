// Threads that wait often are told of where their waits last. The real kernel, observer and model.
#include <sys/mman.h>
#include <sys/resource.h>

#include <atomic>

#include "credit_fixture.h"

namespace swapd::observe {
namespace {

using std::chrono::milliseconds;
using test::Actor;
using test::Credit;
using test::Pipe;

class Patience : public Credit {
 protected:
  struct Shared {
    std::atomic<int> rounds, answer;
  };
  static Shared* map_shared() {
    void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    auto* shared = new (memory) Shared{};
    shared->answer = 1;
    return shared;
  }
  ~Patience() override { ::munmap(shared_, sizeof(Shared)); }
  // Until so many more rounds have been played; what has been told of the waiter meanwhile.
  int waits_told(ThreadId waiter, int rounds) {
    const int before = shared_->rounds;
    int told = 0;
    const Time deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (shared_->rounds - before < rounds && std::chrono::steady_clock::now() < deadline) {
      std::vector<Event> events;
      observer_->drain(std::chrono::steady_clock::now(), events);
      for (const Event& event : events) {
        const auto* blocked = std::get_if<Blocked>(&event);
        if (blocked != nullptr && blocked->thread == waiter) ++told;
        model_.apply(event);
      }
      loop_.wait(milliseconds(1));
    }
    EXPECT_GE(shared_->rounds - before, rounds);
    return told;
  }
  Shared* shared_ = map_shared();  // before the children
  Pipe there_, back_;
  Actor waiter_{[this] {
    for (;;) {
      there_.put();
      back_.take();
      ++shared_->rounds;
    }
  }};
  Actor partner_{[this] {
    for (;;) {
      there_.take();
      while (shared_->answer == 0) ::usleep(1000);
      back_.put();
    }
  }};
};

TEST_F(Patience, OneThatWaitsOftenIsToldOfHardlyEver) {
  const ThreadId w = join(waiter_);
  (void)join(partner_);
  observer_->watch({w, w.tid}, true);
  observer_->be_patient(w, milliseconds(5));
  partner_.go();
  waiter_.go();
  (void)waits_told(w, 2000);
  EXPECT_LT(waits_told(w, 20'000), 200);
}

TEST_F(Patience, WithoutPatienceEachWaitIsTold) {
  const ThreadId w = join(waiter_);
  (void)join(partner_);
  observer_->watch({w, w.tid}, true);
  partner_.go();
  waiter_.go();
  (void)waits_told(w, 10);
  EXPECT_GT(waits_told(w, 2000), 200);  // the partner is often quick enough
}

TEST_F(Patience, ItsWaitThatLastsIsToldWithItsEndAndItsWaker) {
  const ThreadId w = join(waiter_);
  const ThreadId p = join(partner_);
  know(back_.writers(), {p});
  observer_->watch({w, w.tid}, true);
  observer_->be_patient(w, milliseconds(5));
  partner_.go();
  waiter_.go();
  (void)waits_told(w, 5000);
  shared_->answer = 0;
  ASSERT_TRUE(waits_for(w, back_.writers()));
  const int before = wakes_;
  shared_->answer = 1;
  ASSERT_TRUE(until(w, [&] { return wakes_ > before; }));
  EXPECT_EQ(woken_.by, p);
}

TEST_F(Patience, ItIsSaidOnceThatItHasWaitedUntoldWhileALesserThreadRan) {
  const ThreadId w = join(waiter_);
  const ThreadId p = join(partner_);
  for (const ThreadId id : {w, p}) observer_->watch({id, id.tid}, id == w);
  observer_->be_patient(w, milliseconds(5));
  partner_.go();
  waiter_.go();
  (void)waits_told(w, 5000);
  const Actor hog([] {
    (void)::nice(19);
    for (;;) asm volatile("");
  });
  hog.go();
  EXPECT_TRUE(until(w, [&] { return observer_->waits_unreported(w); }));
  shared_->answer = 0;
  ASSERT_TRUE(waits_for(w, back_.writers()));  // told now
  (void)observer_->waits_unreported(w);
  EXPECT_FALSE(observer_->waits_unreported(w));
}

TEST_F(Patience, WhereNothingLessImportantRunsThereIsNothingToKeepABoostFor) {
  const ThreadId w = join(waiter_);
  const ThreadId p = join(partner_);
  ::setpriority(PRIO_PROCESS, waiter_.pid(), 19);
  for (const ThreadId id : {w, p}) observer_->watch({id, id.tid}, id == w);
  observer_->be_patient(w, milliseconds(5));
  partner_.go();
  waiter_.go();
  (void)waits_told(w, 5000);
  EXPECT_FALSE(observer_->waits_unreported(w));
}

TEST_F(Patience, OneThatWaitsRarelyAgainIsToldOfEachWait) {
  const ThreadId w = join(waiter_);
  const ThreadId p = join(partner_);
  know(back_.writers(), {p});
  observer_->watch({w, w.tid}, true);
  observer_->be_patient(w, milliseconds(1));
  partner_.go();
  waiter_.go();
  (void)waits_told(w, 5000);
  // Answers take some milliseconds each from now on.
  for (int i = 0; i < 40; ++i) {
    shared_->answer = 0;
    (void)until(w, [&, due = std::chrono::steady_clock::now() + milliseconds(20)] {
      return std::chrono::steady_clock::now() >= due;
    });
    const int round = shared_->rounds;
    shared_->answer = 1;
    ASSERT_TRUE(until(w, [&] { return shared_->rounds != round; }));
  }
  shared_->answer = 0;
  ASSERT_TRUE(waits_for(w, back_.writers()));
}

}  // namespace
}  // namespace swapd::observe
