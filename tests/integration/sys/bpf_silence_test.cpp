// Waits that nobody need be told of, and what ends the silence.
#include <sys/mman.h>

#include <algorithm>
#include <thread>

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
  // In a child's child: system calls only, and it ends with its parent.
  [[noreturn]] static void spin_and_end(volatile const int* flag, pid_t parent) {
    ::syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
    if (::syscall(SYS_getppid) == parent) spin_until(flag);
    ::_exit(0);
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
    ASSERT_TRUE(eventually([&] {
      const auto slot = tracer_->slot(provider.pid());
      return slot && slot->phase == Phase::running;
    }));
    ASSERT_TRUE(tracer_->expect(waiter.pid(), provider.pid(), SYS_read, static_cast<std::uint64_t>(fd)));
  }
  bool rests_in(pid_t tid, int fd) const {
    return eventually([&] {
      const auto slot = tracer_->slot(tid);
      return slot && slot->phase == Phase::blocked && slot->args[0] == static_cast<std::uint64_t>(fd);
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
  tracer_->report_wake(tid);
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

// Nobody has told it whom it waits for.
TEST_F(BpfSilence, AChildThatRunsIsAwaitedWithoutARecord) {
  volatile int* flag = shared_flag();
  volatile int* runs = shared_flag();
  Role parent([&](Role& role) {
    const pid_t self = ::getpid();
    for (;;) {
      const pid_t child = test::bare_fork();
      if (child == 0) {
        *runs = 1;
        spin_and_end(flag, self);
      }
      spin_until(runs);
      ::waitpid(child, nullptr, 0);
      role.answer();
      role.word();
    }
  });
  watch(parent);
  parent.go();
  const pid_t tid = parent.pid();
  for (bool told = true; told;) {
    ASSERT_TRUE(eventually([&] {
      const auto slot = tracer_->slot(tid);
      return slot && slot->phase == Phase::blocked && slot->call == SYS_wait4;
    }));
    const bool was_silent = silent(tid);
    *flag = 1;
    parent.heard();
    *flag = 0;
    *runs = 0;
    const auto records = all();
    const auto told_of = [&](What what, pid_t of) {
      return std::ranges::any_of(records, [&](const BpfRecord& r) {
        return r.what == what && r.tid == of && (what != What::blocked || r.call == SYS_wait4);
      });
    };
    const auto fork = std::ranges::find(records, What::fork, &BpfRecord::what);
    ASSERT_NE(fork, records.end());
    EXPECT_TRUE(told_of(What::exit, fork->tid));
    told = told_of(What::blocked, tid);
    EXPECT_NE(told, was_silent);
    if (told) parent.go();
  }
}

// A nice value divides a CPU: what a child that has one among others is lent counts from its first moment on.
TEST_F(BpfSilence, AChildThatSharesItsCpuIsToldAtOnce) {
  volatile int* flag = shared_flag();
  volatile int* over = shared_flag();
  Role hog([&](Role&) {
    test::pin_to_first_cpu();
    spin_until(over);
  });
  Role parent([&](Role& role) {
    test::pin_to_first_cpu();
    const pid_t self = ::getpid();
    for (int i = 0; i < 10; ++i) {
      const pid_t child = test::bare_fork();
      if (child == 0) spin_and_end(flag, self);
      ::waitpid(child, nullptr, 0);
      role.answer();
      role.word();
    }
  });
  watch(parent);
  hog.go();
  ASSERT_TRUE(eventually([&] { return test::state_of(hog.pid()) == 'R'; }));
  for (int i = 0; i < 10; ++i) {
    parent.go();
    ASSERT_TRUE(find_block(parent.pid(), SYS_wait4));
    EXPECT_FALSE(silent(parent.pid()));
    *flag = 1;
    parent.heard();
    *flag = 0;
  }
  *over = 1;
  parent.go();
  EXPECT_EQ(parent.end(), 0);
  EXPECT_EQ(hog.end(), 0);
}

TEST_F(BpfSilence, AnAwaitedChildThatLosesItsCpuIsTold) {
  volatile int* flag = shared_flag();
  Role parent([&](Role&) {
    const pid_t self = ::getpid();
    const pid_t child = test::bare_fork();
    if (child == 0) spin_and_end(flag, self);
    ::waitpid(child, nullptr, 0);
  });
  watch(parent);
  parent.go();
  ASSERT_TRUE(find([&](const BpfRecord& r) { return r.what == What::fork && r.parent == parent.pid(); }));
  const pid_t child = record_.tid;
  const auto waits = [&] {
    const auto slot = tracer_->slot(parent.pid());
    return slot && slot->phase == Phase::blocked && slot->call == SYS_wait4;
  };
  ASSERT_TRUE(eventually(waits));
  const bool was_silent = silent(parent.pid());
  ::kill(child, SIGSTOP);
  // To stop it tells the parent, which may look and wait again.
  if (was_silent) {
    EXPECT_TRUE(find([&](const BpfRecord& r) {
      return (r.what == What::left && r.tid == child) ||
             (r.what == What::blocked && r.tid == parent.pid() && r.call == SYS_wait4);
    }));
  }
  ASSERT_TRUE(eventually([&] { return test::state_of(child) == 'T'; }));
  tracer_->report_wake(parent.pid());
  EXPECT_TRUE(eventually(waits));
  ::kill(child, SIGKILL);
  ASSERT_TRUE(find(What::woken, parent.pid()));
  EXPECT_EQ(parent.end(), 0);
}

TEST_F(BpfSilence, AWaitForAnotherChildIsTold) {
  volatile int* flag = shared_flag();
  Role parent([&](Role&) {
    const pid_t self = ::getpid();
    const auto make = [&] {
      const pid_t child = test::bare_fork();
      if (child != 0) return child;
      spin_and_end(flag, self);
    };
    const pid_t first = make();
    make();
    ::waitpid(first, nullptr, 0);
  });
  watch(parent);
  parent.go();
  EXPECT_TRUE(find_block(parent.pid(), SYS_wait4));
  *flag = 1;
  EXPECT_TRUE(find(What::woken, parent.pid()));
  EXPECT_EQ(parent.end(), 0);
}

// Nobody wants to know what it waits for.
TEST_F(BpfSilence, OfAParentThatIsNotWatchedNothingIsTold) {
  Role parent(test::await_child);
  watch(parent);
  ASSERT_TRUE(tracer_->watch(parent.pid(), false, false));
  parent.go();
  ASSERT_TRUE(find([&](const BpfRecord& r) { return r.what == What::fork && r.parent == parent.pid(); }));
  const pid_t child = record_.tid;
  ASSERT_TRUE(eventually([&] { return test::state_of(child) == 'S' && test::state_of(parent.pid()) == 'S'; }));
  parent.go();
  EXPECT_EQ(parent.end(), 0);
  EXPECT_TRUE(std::ranges::none_of(all(), [&](const BpfRecord& r) { return r.what == What::left; }));
}

// The process lives on, and is still waited for.
TEST_F(BpfSilence, AnAwaitedChildWhoseFirstThreadEndsIsTold) {
  volatile int* flag = shared_flag();
  volatile int* runs = shared_flag();
  Role parent([&](Role&) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      std::thread other([&] {
        spin_until(flag);
        ::_exit(0);
      });
      other.detach();
      *runs = 1;
      while (*runs == 1) asm volatile("");
      ::syscall(SYS_exit, 0);
    }
    spin_until(runs);
    ::waitpid(child, nullptr, 0);
  });
  watch(parent);
  parent.go();
  ASSERT_TRUE(eventually([&] {
    const auto slot = tracer_->slot(parent.pid());
    return slot && slot->phase == Phase::blocked && slot->call == SYS_wait4;
  }));
  const bool was_silent = silent(parent.pid());
  *runs = 2;
  if (was_silent) {
    EXPECT_TRUE(find([&](const BpfRecord& r) { return r.what == What::left && r.waiter == parent.pid(); }));
  }
  *flag = 1;
  EXPECT_EQ(parent.end(), 0);
}

}  // namespace
}  // namespace swapd::sys
