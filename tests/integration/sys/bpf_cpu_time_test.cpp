// The CPU time that the kernel's tracer counts.
#include "bpf_fixture.h"
#include "sys/bpf/bpf_tracer.h"

namespace swapd::sys {
namespace {

using test::eventually;
using test::Pipe;
using test::Role;

using BpfCpuTime = test::BpfTest;

// As its own clock says.
TEST_F(BpfCpuTime, OfABurstThatIsOver) {
  const Pipe told;
  Role role([&](Role& me) {
    for (const int ms : {20, 5}) {
      const auto used = [] {
        timespec t{};
        ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
      };
      const auto enough = used() + std::chrono::milliseconds(ms);
      while (used() < enough) {
      }
      const std::int64_t total = used().count();
      (void)!::write(told.out.get(), &total, sizeof total);
      me.word();
    }
  });
  EXPECT_FALSE(tracer_->cpu_time(role.pid(), std::chrono::steady_clock::now())) << "it is not managed";
  watch(role);
  ASSERT_TRUE(tracer_->time_exactly(role.pid(), true));
  role.go();
  Duration last{};
  for (int burst = 0; burst < 2; ++burst) {
    std::int64_t total = 0;
    ASSERT_EQ(::read(told.in.get(), &total, sizeof total), static_cast<ssize_t>(sizeof total));
    ASSERT_TRUE(eventually([&] { return tracer_->slot(role.pid())->phase == Phase::blocked; }));
    const auto counted = tracer_->cpu_time(role.pid(), std::chrono::steady_clock::now());
    ASSERT_TRUE(counted);
    EXPECT_NEAR(static_cast<double>(counted->count()), static_cast<double>(total), 1e6);
    EXPECT_GT(*counted, last);
    EXPECT_EQ(*tracer_->cpu_time(role.pid(), std::chrono::steady_clock::now()), *counted) << "it sleeps";
    last = *counted;
    role.go();
  }
}

TEST_F(BpfCpuTime, OfOneThatHasNeverLeftItsCpu) {
  Role role([&](Role& me) {
    me.answer();
    const volatile bool forever = true;  // a compiler may leave out a loop that does nothing
    while (forever) {
    }
  });
  watch(role);
  role.go();
  role.heard();
  const auto at = [&] { return tracer_->cpu_time(role.pid(), std::chrono::steady_clock::now()); };
  Duration before{};
  ASSERT_TRUE(eventually([&] {
    const auto now = at();
    const bool counts = now && before > Duration::zero() && *now > before;
    if (now) before = *now;
    return counts;  // once a tick
  }));
}

TEST_F(BpfCpuTime, OfATimedThreadGrowsBetweenTheTicks) {
  Role role([&](Role& me) {
    me.answer();
    me.word();
    for (;;) asm volatile("");
  });
  watch(role);
  role.go();
  role.heard();
  ASSERT_TRUE(eventually([&] { return tracer_->slot(role.pid())->phase == Phase::blocked; }));
  ASSERT_TRUE(tracer_->time_exactly(role.pid(), true));
  role.go();
  // Others may have its CPU for a while, this thread too. A tick comes each millisecond at the most.
  constexpr int looks = 20;
  EXPECT_TRUE(eventually([&] {
    int grown = 0;
    Time now = std::chrono::steady_clock::now();
    Duration before = tracer_->cpu_time(role.pid(), now).value();
    for (int look = 0; look < looks; ++look) {
      const Time next = now + std::chrono::microseconds(50);
      while (std::chrono::steady_clock::now() < next) asm volatile("");
      now = next;
      const Duration used = tracer_->cpu_time(role.pid(), now).value();
      if (used > before) ++grown;
      before = used;
    }
    return grown > looks / 2;
  }));
}

}  // namespace
}  // namespace swapd::sys
