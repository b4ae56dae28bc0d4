// Waits that nobody need be told of, and what ends the silence.
#include <sys/mman.h>

#include <algorithm>

#include "bpf_fixture.h"

namespace swapd::sys {
namespace {

using test::eventually;
using test::Pipe;
using test::read_byte;
using test::Role;
using test::write_byte;

class BpfSilence : public test::BpfTest {
 protected:
  static void spin_until(volatile const int* flag) {
    while (*flag == 0) asm volatile("");
  }
  static volatile int* shared_flag() {
    void* at = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return static_cast<volatile int*>(at);
  }
  // The one blocks in read(2) while the other, whom it expects, has a CPU.
  void begin(Role& waiter, Role& provider, int fd) {
    watch(waiter);
    ASSERT_TRUE(eventually([&] { return test::state_of(provider.pid()) == 'S'; }));
    ASSERT_TRUE(tracer_->manage(provider.pid()));
    provider.go();
    ASSERT_TRUE(eventually([&] { return tracer_->slot(provider.pid())->phase == Phase::running; }));
    ASSERT_TRUE(tracer_->expect(waiter.pid(), provider.pid(), SYS_read, static_cast<std::uint64_t>(fd)));
  }
  bool rests_in(pid_t tid, int fd) const {
    return eventually([&] {
      const auto slot = tracer_->slot(tid);
      return slot->phase == Phase::blocked && slot->args[0] == static_cast<std::uint64_t>(fd);
    });
  }
  bool silent(pid_t tid) const {
    const auto slot = tracer_->slot(tid);
    return slot && slot->phase == Phase::blocked && slot->silent;
  }
};

TEST_F(BpfSilence, AProviderWithACpuAndItsAnswerAreNotTold) {
  const Pipe pipe;
  volatile int* asked = shared_flag();
  Role provider([&](Role&) {
    for (int answered = 0;; ++answered) {
      while (*asked == answered) asm volatile("");
      write_byte(pipe.out.get());
    }
  });
  Role waiter([&](Role& role) {
    for (;;) {
      read_byte(pipe.in.get());
      role.answer();
      role.word();
    }
  });
  begin(waiter, provider, pipe.in.get());
  waiter.go();
  const auto of_this_wait = [&](const BpfRecord& r) {
    return r.tid == waiter.pid() && r.what == What::blocked && r.args[0] == static_cast<std::uint64_t>(pipe.in.get());
  };
  // Where somebody else had the provider's CPU just then, it is told; in most rounds not.
  for (bool told = true; told;) {
    ASSERT_TRUE(rests_in(waiter.pid(), pipe.in.get()));
    const bool was_silent = silent(waiter.pid());
    *asked = *asked + 1;
    waiter.heard();
    told = std::ranges::any_of(all(), of_this_wait);
    EXPECT_NE(told, was_silent);
    waiter.go();
  }
}

TEST_F(BpfSilence, AnotherCallIsTold) {
  const Pipe pipe, other;
  volatile int* flag = shared_flag();
  Role provider([&](Role&) { spin_until(flag); });
  Role waiter([&](Role&) { read_byte(other.in.get()); });
  begin(waiter, provider, pipe.in.get());
  waiter.go();
  EXPECT_TRUE(find_block(waiter.pid(), SYS_read));
  EXPECT_EQ(record_.args[0], static_cast<std::uint64_t>(other.in.get()));
}

TEST_F(BpfSilence, AProviderThatLosesItsCpuIsTold) {
  const Pipe pipe;
  const auto spin = [](Role&) {
    test::pin_to_first_cpu();
    for (;;) asm volatile("");
  };
  Role provider(spin), rival(spin);
  Role waiter([&](Role&) { read_byte(pipe.in.get()); });
  begin(waiter, provider, pipe.in.get());
  waiter.go();
  rival.go();
  // Silent now or told already; in silence the rival's first turn is told.
  const pid_t tid = waiter.pid();
  ASSERT_TRUE(find([&](const BpfRecord& r) {
    return (r.what == What::left && r.tid == provider.pid() && r.waiter == tid) ||
           (r.what == What::blocked && r.tid == tid && r.call == SYS_read &&
            r.args[0] == static_cast<std::uint64_t>(pipe.in.get()));
  }));
  tracer_->break_silence(tid);
  const auto slot = tracer_->slot(tid);
  EXPECT_EQ(slot->phase, Phase::blocked);
  EXPECT_FALSE(slot->silent);
  write_byte(pipe.out.get());
  ASSERT_TRUE(find(What::woken, tid));
  EXPECT_EQ(record_.waker.tid, ::gettid());
}

TEST_F(BpfSilence, AnotherWakerIsTold) {
  const Pipe pipe;
  volatile int* flag = shared_flag();
  Role provider([&](Role&) { spin_until(flag); });
  Role waiter([&](Role&) { read_byte(pipe.in.get()); });
  begin(waiter, provider, pipe.in.get());
  waiter.go();
  ASSERT_TRUE(rests_in(waiter.pid(), pipe.in.get()));
  const bool was_silent = silent(waiter.pid());
  write_byte(pipe.out.get());
  ASSERT_TRUE(find([&](const BpfRecord& r) {
    return r.what == What::woken && r.tid == waiter.pid() && r.waker.tid == ::gettid() && r.waker.call == SYS_write &&
           r.waker.args[0] == static_cast<std::uint64_t>(pipe.out.get());
  }));
  EXPECT_EQ(record_.silent, was_silent);
}

TEST_F(BpfSilence, AProviderThatEndsIsTold) {
  const Pipe pipe;
  volatile int* flag = shared_flag();
  Role provider([&](Role&) { spin_until(flag); });
  Role waiter([&](Role&) { read_byte(pipe.in.get()); });
  begin(waiter, provider, pipe.in.get());
  waiter.go();
  ASSERT_TRUE(rests_in(waiter.pid(), pipe.in.get()));
  const bool was_silent = silent(waiter.pid());
  *flag = 1;
  const pid_t tid = waiter.pid();
  ASSERT_TRUE(find([&](const BpfRecord& r) { return r.what == (was_silent ? What::left : What::exit); }));
  if (was_silent) {
    EXPECT_EQ(record_.waiter, tid);
  }
}

}  // namespace
}  // namespace swapd::sys
