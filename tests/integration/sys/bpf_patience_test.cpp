// Threads that wait often: nothing is told of their waits but an inversion.
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>

#include "bpf_fixture.h"
#include "sys/procfs/procfs.h"

namespace swapd::sys {
namespace {

using test::eventually;
using test::Pipe;
using test::read_byte;
using test::Role;
using test::write_byte;

class BpfPatience : public test::BpfTest {
 protected:
  static constexpr std::int32_t no_call = -2;
  static void spin(int nice) {
    test::pin_to_first_cpu();
    ::setpriority(PRIO_PROCESS, 0, nice);
    for (;;) asm volatile("");
  }
  // Its slot says that it is in the read(2) from this descriptor, and no record told of it.
  bool waits_silently(const Role& waiter, const Pipe& pipe) const {
    return eventually([&] {
      const auto slot = tracer_->slot(waiter.pid());
      return slot && slot->phase == Phase::blocked && slot->args[0] == static_cast<std::uint64_t>(pipe.in.get()) &&
             slot->silent;
    });
  }
  bool runs(const Role& role) const {
    return eventually([&] {
      const auto slot = tracer_->slot(role.pid());
      return slot && slot->phase == Phase::running;
    });
  }
  std::vector<BpfRecord> told_of(const Role& waiter) const {
    auto found = all();
    std::erase_if(found, [&](const BpfRecord& r) { return r.tid != waiter.pid() && r.waiter != waiter.pid(); });
    return found;
  }
  void be_patient(const Role& waiter, BpfTracer::Patience how = BpfTracer::Patience::watchful) const {
    ASSERT_TRUE(tracer_->set_often(waiter.pid(), std::array{BpfTracer::WaitKind{.call = SYS_read}}));
    ASSERT_TRUE(tracer_->be_patient(waiter.pid(), how));
  }
  // Both are watched; the provider is on its CPU, and ends the waiter's waits, whatever call those are in.
  void expects(const Role& waiter, const Role& provider) const {
    watch(waiter);
    watch(provider);
    provider.go();
    ASSERT_TRUE(runs(provider));
    ASSERT_TRUE(tracer_->expect(waiter.pid(), provider.pid(), no_call, 0));
  }
};

TEST_F(BpfPatience, ThousandsOfWaitsGiveNoRecordWhicheverThreadEndsThem) {
  const Pipe there, back;
  Role waiter([&](Role& role) {
    for (int i = 0; i < 4000; ++i) {
      write_byte(there.out.get());
      read_byte(back.in.get());
    }
    role.answer();
    role.word();
  });
  const Role partner([&](Role&) {
    for (;;) {
      read_byte(there.in.get());
      write_byte(back.out.get());
    }
  });
  // The partner is not to answer before the waiter has blocked.
  for (const pid_t pid : {waiter.pid(), partner.pid()}) test::pin_to_first_cpu(pid);
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(partner.pid()), 19);
  watch(waiter);
  const std::uint32_t before = tracer_->glance(waiter.pid())->waits;
  be_patient(waiter);
  (void)all();
  partner.go();
  waiter.go();
  waiter.heard();
  // The one that told of the wait before, in which it was watched, may still be among them.
  EXPECT_LE(told_of(waiter).size(), 1U);
  EXPECT_GT(tracer_->glance(waiter.pid())->waits - before, 1000U);
}

TEST_F(BpfPatience, AWaitOfAnotherKindIsToldWithItsEnd) {
  const Pipe often, other;
  const Role waiter([&](Role&) {
    read_byte(often.in.get());
    read_byte(other.in.get());
  });
  watch(waiter);
  const BpfTracer::WaitKind kind{.call = SYS_read, .arg = static_cast<std::uint64_t>(often.in.get())};
  ASSERT_TRUE(tracer_->set_often(waiter.pid(), std::array{kind}));
  ASSERT_TRUE(tracer_->be_patient(waiter.pid(), BpfTracer::Patience::watchful));
  waiter.go();
  ASSERT_TRUE(waits_silently(waiter, often));
  write_byte(often.out.get());
  ASSERT_TRUE(find_block(waiter.pid(), SYS_read));
  EXPECT_EQ(record_.args[0], static_cast<std::uint64_t>(other.in.get()));
  write_byte(other.out.get());
  ASSERT_TRUE(find(What::woken, waiter.pid()));
  EXPECT_EQ(record_.waker.tid, ::gettid());
}

TEST_F(BpfPatience, MoreKindsThanThereArePlacesForAreAll) {
  const Pipe pipe;
  const Role waiter([&](Role&) { read_byte(pipe.in.get()); });
  watch(waiter);
  const std::array<BpfTracer::WaitKind, BpfTracer::max_often + 1> kinds{{{.call = 1}, {.call = 2}, {.call = 3}}};
  ASSERT_TRUE(tracer_->set_often(waiter.pid(), kinds));
  ASSERT_TRUE(tracer_->be_patient(waiter.pid(), BpfTracer::Patience::watchful));
  waiter.go();
  EXPECT_TRUE(waits_silently(waiter, pipe));
}

TEST_F(BpfPatience, TheEndOfAWaitIsToldWhereThatIsAskedFor) {
  const Pipe pipe;
  const Role waiter([&](Role&) { read_byte(pipe.in.get()); });
  watch(waiter);
  be_patient(waiter);
  waiter.go();
  ASSERT_TRUE(waits_silently(waiter, pipe));
  tracer_->report_wake(waiter.pid());
  write_byte(pipe.out.get());
  ASSERT_TRUE(find([&](const BpfRecord& r) {
    return r.what == What::woken && r.tid == waiter.pid() && r.waker.tid == ::gettid() &&
           r.waker.args[0] == static_cast<std::uint64_t>(pipe.out.get());
  }));
}

TEST_F(BpfPatience, OneThatIsPatientNoMoreIsToldOfAgain) {
  const Pipe pipe;
  const Role waiter([&](Role& role) {
    read_byte(pipe.in.get());
    role.word();
  });
  watch(waiter);
  be_patient(waiter);
  waiter.go();
  ASSERT_TRUE(waits_silently(waiter, pipe));
  be_patient(waiter, BpfTracer::Patience::none);
  write_byte(pipe.out.get());
  EXPECT_TRUE(find_block(waiter.pid(), SYS_read));
}

// Whatever call the waiter is in: the thread that it expects is on its CPU, and loses it to one that matters less.
TEST_F(BpfPatience, AnExpectedThreadThatLosesItsCpuToALesserOneIsTold) {
  const Pipe pipe;
  const Role provider([](Role&) { spin(0); }), rival([](Role&) { spin(0); });
  const Role waiter([&](Role&) {
    ::setpriority(PRIO_PROCESS, 0, -10);
    for (;;) read_byte(pipe.in.get());
  });
  expects(waiter, provider);
  be_patient(waiter);
  waiter.go();
  ASSERT_TRUE(waits_silently(waiter, pipe));
  rival.go();
  // A wait that begins while the rival has that CPU is one of which nothing is told: another one then.
  EXPECT_TRUE(eventually([&] {
    write_byte(pipe.out.get());
    return std::ranges::any_of(all(), [&](const BpfRecord& r) {
      return r.what == What::left && r.tid == provider.pid() && r.waiter == waiter.pid();
    });
  }));
}

// The requester preempts what runs on its CPU, and leaves it to the rival: no thread loses a CPU that it waits for.
TEST_F(BpfPatience, AWaitThatBeginsAfterTheExpectedThreadHasLostItsCpuToALesserOneIsTold) {
  const Pipe pipe;
  const Role provider([](Role&) { spin(0); }), rival([](Role&) { spin(0); });
  const Role waiter([&](Role&) {
    test::pin_to_first_cpu();
    ::setpriority(PRIO_PROCESS, 0, -10);
    for (;;) read_byte(pipe.in.get());
  });
  expects(waiter, provider);
  be_patient(waiter);
  rival.go();
  waiter.go();
  EXPECT_TRUE(eventually([&] {
    write_byte(pipe.out.get());
    return std::ranges::any_of(all(), [&](const BpfRecord& r) {
      return r.what == What::blocked && r.tid == waiter.pid() && r.call == SYS_read && r.inverted;
    });
  }));
}

TEST_F(BpfPatience, AWaitThatIsToldForAnotherReasonIsNoInversion) {
  const Pipe pipe;
  const Role waiter([&](Role&) {
    for (;;) read_byte(pipe.in.get());
  });
  watch(waiter);
  waiter.go();
  std::vector<BpfRecord> told;
  ASSERT_TRUE(eventually([&] {
    write_byte(pipe.out.get());
    std::ranges::copy_if(all(), std::back_inserter(told),
                         [&](const BpfRecord& r) { return r.what == What::blocked && r.tid == waiter.pid(); });
    return told.size() > 10;
  }));
  EXPECT_TRUE(std::ranges::none_of(told, &BpfRecord::inverted));
}

TEST_F(BpfPatience, ASleepIsNoWaitForTheExpectedThread) {
  const Role provider([](Role&) { spin(0); }), rival([](Role&) { spin(0); });
  Role waiter([&](Role& role) {
    test::pin_to_first_cpu();
    ::setpriority(PRIO_PROCESS, 0, -10);
    for (int i = 0; i < 300; ++i) ::usleep(500);
    role.answer();
    role.word();
  });
  expects(waiter, provider);
  ASSERT_TRUE(tracer_->set_often(waiter.pid(), std::array{BpfTracer::WaitKind{.call = SYS_clock_nanosleep}}));
  ASSERT_TRUE(tracer_->be_patient(waiter.pid(), BpfTracer::Patience::watchful));
  rival.go();
  (void)all();
  waiter.go();
  waiter.heard();
  for (const BpfRecord& r : told_of(waiter))
    EXPECT_FALSE(r.what == What::left || (r.what == What::blocked && r.call == SYS_clock_nanosleep));
}

class NotAnInversion : public BpfPatience {
 protected:
  // What is told of the waiter while its provider shares a CPU with a thread of this nice value.
  void share_cpu(int rival_nice, BpfTracer::Patience how) {
    const Pipe pipe;
    const Role provider([](Role&) { spin(0); });
    const Role rival([=](Role&) { spin(rival_nice); });
    const Role waiter([&](Role&) { read_byte(pipe.in.get()); });
    expects(waiter, provider);
    be_patient(waiter, how);
    waiter.go();
    ASSERT_TRUE(waits_silently(waiter, pipe));
    rival.go();
    const Procfs procfs;
    const auto turns = [&](pid_t tid) { return procfs.cpu_time(tid).value_or(Duration::zero()); };
    const Duration before = turns(rival.pid());
    ASSERT_TRUE(eventually([&] { return turns(rival.pid()) - before > std::chrono::milliseconds(50); }));
    const auto told = told_of(waiter);
    EXPECT_TRUE(std::ranges::none_of(told, [](const BpfRecord& r) { return r.what == What::left; }));
  }
};

TEST_F(NotAnInversion, WhereTheOtherMattersMoreThanTheWaiter) { share_cpu(-10, BpfTracer::Patience::watchful); }

TEST_F(NotAnInversion, WhereTheOtherMattersAsMuch) { share_cpu(0, BpfTracer::Patience::watchful); }

TEST_F(NotAnInversion, OrTheWaiterRestsFromThem) { share_cpu(19, BpfTracer::Patience::resting); }

TEST_F(BpfPatience, AnExpectedThreadThatBlocksIsNotTold) {
  const Pipe pipe, other;
  volatile auto* flag =
      static_cast<volatile int*>(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const Role provider([&](Role&) {
    while (*flag == 0) asm volatile("");
    read_byte(other.in.get());
    write_byte(pipe.out.get());
  });
  Role waiter([&](Role&) { read_byte(pipe.in.get()); });
  expects(waiter, provider);
  be_patient(waiter);
  waiter.go();
  ASSERT_TRUE(waits_silently(waiter, pipe));
  *flag = 1;
  ASSERT_TRUE(eventually([&] { return test::state_of(provider.pid()) == 'S'; }));
  write_byte(other.out.get());
  EXPECT_EQ(waiter.end(), 0);
  for (const BpfRecord& r : told_of(waiter)) EXPECT_NE(r.what, What::left);
}

// Else a lesser thread on the CPU on which the reader looks would never be seen, on a machine with one CPU none at all.
TEST_F(BpfPatience, AThreadThatTheReaderItselfPreemptsCountsAsRunning) {
  const Role lesser([](Role&) { spin(19); });
  cpu_set_t all;
  ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  test::pin_to_first_cpu();
  lesser.go();
  constexpr int prio_of_nice_19 = 139;
  EXPECT_TRUE(eventually([&] { return tracer_->running().at(0).prio == prio_of_nice_19; }));
  ::sched_setaffinity(0, sizeof all, &all);
}

TEST_F(BpfPatience, AGlanceSeesAWatchedThreadThatLacksACpu) {
  const auto on_first_cpu = [](Role&) { spin(0); };
  const Role one(on_first_cpu), other(on_first_cpu);
  for (const Role* role : {&one, &other}) watch(*role);
  one.go();
  other.go();
  ASSERT_TRUE(runs(one) && runs(other));
  EXPECT_TRUE(
      eventually([&] { return tracer_->glance(one.pid())->starved && !tracer_->glance(other.pid())->starved; }));
  EXPECT_TRUE(
      eventually([&] { return !tracer_->glance(one.pid())->starved && tracer_->glance(other.pid())->starved; }));
  ASSERT_TRUE(tracer_->watch(one.pid(), false, false));
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(tracer_->glance(one.pid())->starved) << "its phase is not kept";
}

}  // namespace
}  // namespace swapd::sys
