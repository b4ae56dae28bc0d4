// sched_setattr(2) as sys::LinuxScheduler uses it, on real threads.
#include "sys/sched/scheduler.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include "process.h"

namespace swapd::actuate {
namespace {

class SchedulerTest : public LinuxTest {
 protected:
  sys::LinuxScheduler scheduler_;
};

TEST_F(SchedulerTest, WhatIsSetIsRead) {
  const Process child({});
  SchedAttr batch = nice_of(7);
  batch.policy = SchedPolicy::batch;
  SchedAttr idle;
  idle.policy = SchedPolicy::idle;
  SchedAttr deadline;
  deadline.policy = SchedPolicy::deadline;
  deadline.runtime_ns = 1'000'000;
  deadline.deadline_ns = 10'000'000;
  deadline.period_ns = 20'000'000;
  // Deadline last: of a sleeping thread that leaves that class the kernel (6.18) keeps the bandwidth for ever, and
  // after some forty runs has none left.
  for (const SchedAttr& attr :
       {nice_of(-20), nice_of(19), batch, idle, realtime(SchedPolicy::fifo, 1), realtime(SchedPolicy::rr, 99),
        lent(nice_of(-4)), lent(realtime(SchedPolicy::fifo, 49)), nice_of(0), deadline}) {
    const auto set = scheduler_.set(child.pid(), attr);
    ASSERT_TRUE(set.ok()) << set.error().text();
    const auto seen = scheduler_.get(child.pid());
    ASSERT_TRUE(seen.ok());
    EXPECT_EQ(*seen, attr) << name(attr.policy);
  }
}

TEST_F(SchedulerTest, ARealTimeThreadKeepsItsNiceOutOfSight) {
  const Process child({.attr = nice_of(6)});
  ASSERT_TRUE(scheduler_.set(child.pid(), realtime(SchedPolicy::fifo, 3)).ok());
  EXPECT_EQ(scheduler_.get(child.pid())->nice, 0);
  EXPECT_EQ(scheduler_.nice(child.pid()).value_or(99), 6);
  ASSERT_EQ(::setpriority(PRIO_PROCESS, static_cast<id_t>(child.pid()), -1), 0);
  const auto minus_one = scheduler_.nice(child.pid());
  ASSERT_TRUE(minus_one.ok());
  EXPECT_EQ(*minus_one, -1);
}

TEST_F(SchedulerTest, ErrorsSayWhichFieldOrThatTheThreadIsGone) {
  Process child({});
  const auto invalid = scheduler_.set(child.pid(), realtime(SchedPolicy::fifo, 0));
  ASSERT_FALSE(invalid.ok());
  EXPECT_EQ(invalid.error().code(), EINVAL);
  EXPECT_THAT(invalid.error().text(), testing::HasSubstr("rt_priority 0"));
  const pid_t pid = child.pid();
  child.kill();
  EXPECT_TRUE(scheduler_.get(pid).error().gone());
  EXPECT_TRUE(scheduler_.set(pid, nice_of(0)).error().gone());
  EXPECT_TRUE(scheduler_.nice(pid).error().gone());
  EXPECT_TRUE(scheduler_.affinity(pid).error().gone());
}

TEST_F(SchedulerTest, WithoutThePrivilegeTheCapabilityIsNamed) {
  const Process child({}, [](int report) {
    const sys::LinuxScheduler scheduler;
    if (::setuid(65534) != 0) return;
    const auto refused = scheduler.set(0, nice_of(-5));
    const std::string text = refused.ok() ? "granted" : refused.error().text();
    (void)!::write(report, text.data(), text.size());
  });
  EXPECT_THAT(child.report(), testing::HasSubstr("CAP_SYS_NICE"));
}

TEST_F(SchedulerTest, Affinity) {
  const Process child({});
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  ASSERT_TRUE(scheduler_.set_affinity(child.pid(), one).ok());
  const auto seen = scheduler_.affinity(child.pid());
  ASSERT_TRUE(seen.ok());
  EXPECT_TRUE(CPU_EQUAL(&one, &*seen));
}

}  // namespace
}  // namespace swapd::actuate
