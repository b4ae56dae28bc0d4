// A process that holds boosts is killed; the next one gives everything back from the journal.
#include <sys/resource.h>

#include "process.h"
#include "sys/sched/groups.h"
#include "sys/sched/scheduler.h"

namespace swapd::actuate {
namespace {

class CrashTest : public LinuxTest {
 protected:
  SchedAttr attr(const Process& process) { return scheduler_.get(process.pid()).value_or(nice_of(-99)); }

  sys::LinuxScheduler scheduler_;
  sys::LinuxGroups groups_;
};

TEST_F(CrashTest, AfterAKillEverythingIsGivenBack) {
  const Process first({.attr = nice_of(3)});
  const Process second({.own_session = true, .attr = realtime(SchedPolicy::rr, 2)});
  const Process third({.own_session = true, .attr = nice_of(10)});
  const Process reniced({.attr = nice_of(4)});
  Process daemon({}, [&](int report) {
    Actuator actuator(scheduler_, groups_, options());
    actuator.apply(std::vector{boost(first, nice_of(-3)), boost(second, nice_of(0)), boost(third, nice_of(0)),
                               boost(reniced, realtime(SchedPolicy::fifo, 8))},
                   clock_.now());
    actuator.apply(
        std::vector{boost(first, realtime(SchedPolicy::fifo, 9)), boost(second, realtime(SchedPolicy::fifo, 9)),
                    boost(third, nice_of(-6)), boost(reniced, realtime(SchedPolicy::fifo, 8))},
        clock_.now());
    (void)!::write(report, "r", 1);
    while (true) ::pause();
  });
  ASSERT_EQ(daemon.report(), "r");
  {
    Actuator rival(scheduler_, groups_, options());
    const auto refused = rival.recover();
    ASSERT_FALSE(refused.ok()) << "the journal is another's while that lives";
    EXPECT_EQ(refused.error().code(), EBUSY);
  }
  daemon.kill();
  EXPECT_EQ(attr(first), lent(realtime(SchedPolicy::fifo, 9)));
  EXPECT_EQ(attr(third).nice, -6);
  ASSERT_EQ(::setpriority(PRIO_PROCESS, static_cast<id_t>(reniced.pid()), 17), 0);

  Actuator next(scheduler_, groups_, options());
  const auto restored = next.recover();
  ASSERT_TRUE(restored.ok()) << restored.error().text();
  EXPECT_EQ(*restored, groups_.autogroups() ? 5 : 4);
  EXPECT_EQ(attr(first), nice_of(3));
  EXPECT_EQ(attr(second), realtime(SchedPolicy::rr, 2));
  EXPECT_EQ(attr(third), nice_of(10));
  EXPECT_EQ(attr(reniced), nice_of(17));
  if (groups_.autogroups()) {
    EXPECT_EQ(groups_.autogroup(third.pid()).value_or(sys::Autogroup{-1, 99, 0}).nice, 0);
  }
  EXPECT_EQ(next.recovery_notes(), std::vector<std::string>{});
}

TEST_F(CrashTest, KilledAtAnyMomentNothingStaysBoosted) {
  const Process first({.attr = nice_of(3)});
  const Process second({.own_session = true, .attr = nice_of(4)});
  constexpr int idle = 3 << 13;  // ioprio_set(2)
  ASSERT_TRUE(scheduler_.set_io_priority(second.pid(), idle).ok());
  for (int i = 0; i < 30; ++i) {
    Process daemon({}, [&](int report) {
      Actuator actuator(scheduler_, groups_, options());
      if (!actuator.recover().ok()) return;
      (void)!::write(report, "r", 1);
      for (int turn = 0;; ++turn) {
        const SchedAttr loan = turn % 3 == 0 ? realtime(SchedPolicy::fifo, 1 + turn % 50) : nice_of(-1 - turn % 19);
        if (turn % 5 == 0) actuator.apply({}, clock_.now());
        actuator.apply(std::vector{boost(first, loan), boost(second, loan)}, clock_.now());
      }
    });
    ASSERT_EQ(daemon.report(), "r");
    // It runs for a time that differs from turn to turn, 0…9 ms of its own CPU.
    const Time deadline = clock_.now() + std::chrono::seconds(5);
    const Duration until = daemon.cpu() + std::chrono::microseconds(317) * i;
    while (daemon.cpu() < until && clock_.now() < deadline) ::sched_yield();
    daemon.kill();
    Actuator next(scheduler_, groups_, options());
    ASSERT_TRUE(next.recover().ok());
    ASSERT_EQ(attr(first), nice_of(3)) << "round " << i;
    ASSERT_EQ(attr(second), nice_of(4)) << "round " << i;
    ASSERT_EQ(scheduler_.io_priority(second.pid()).value_or(-1), idle) << "round " << i;
    const auto group = groups_.autogroup(second.pid());
    if (group.ok()) {
      ASSERT_EQ(group->nice, 0) << "round " << i;
    }
    ASSERT_EQ(next.recovery_notes(), std::vector<std::string>{}) << "round " << i;
  }
}

}  // namespace
}  // namespace swapd::actuate
