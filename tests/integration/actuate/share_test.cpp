// A donation is for CPU time. Two spinners on one CPU, in one session, in two, and in two cgroups.
#include <unistd.h>

#include "process.h"
#include "sys/sched/groups.h"
#include "sys/sched/scheduler.h"

namespace swapd::actuate {
namespace {

class ShareTest : public LinuxTest {
 protected:
  sys::LinuxScheduler scheduler_;
  sys::LinuxGroups groups_;
};

// Nice -15 against 0 is 28 : 1 where it counts, and nothing where it does not. The bounds leave room for a busy
// machine.
constexpr double clearly_more = 5;
constexpr double about_the_same = 2.5;

TEST_F(ShareTest, InOneSessionNiceCounts) {
  const Process provider({.spin = true});
  const Process hog({.spin = true});
  Actuator actuator(scheduler_, groups_, options());
  actuator.set_competitors({{groups_.autogroup(hog.pid()).value_or(sys::Autogroup{}).id}, {}, {}});
  actuator.apply(std::vector{boost(provider, nice_of(-15))}, clock_.now());
  EXPECT_EQ(actuator.active(provider.id())->reason, Ineffective::none);
  EXPECT_GT(ratio(provider, hog), clearly_more);
}

TEST_F(ShareTest, AcrossSessionsTheAutogroupIsLentToo) {
  if (!groups_.autogroups()) GTEST_SKIP() << "needs kernel.sched_autogroup_enabled = 1";
  const Process provider({.spin = true, .own_session = true});
  const Process hog({.spin = true, .own_session = true});
  const auto nice_now = [&] { return groups_.autogroup(provider.pid()).value_or(sys::Autogroup{-1, 99, 0}).nice; };
  Actuator::Options forbidding = options();
  forbidding.rules.group_action = false;
  {
    Actuator actuator(scheduler_, groups_, forbidding);
    actuator.apply(std::vector{boost(provider, nice_of(-15))}, clock_.now());
    EXPECT_EQ(actuator.active(provider.id())->reason, Ineffective::autogroup);
    EXPECT_LT(ratio(provider, hog), about_the_same) << "the report must be true: nice alone does nothing here";
  }
  Actuator actuator(scheduler_, groups_, options());
  actuator.apply(std::vector{boost(provider, nice_of(-15))}, clock_.now());
  EXPECT_EQ(actuator.active(provider.id())->reason, Ineffective::none);
  EXPECT_EQ(nice_now(), -15);
  EXPECT_GT(ratio(provider, hog), clearly_more);
  actuator.apply({}, clock_.now());
  EXPECT_EQ(nice_now(), 0);
  EXPECT_EQ(scheduler_.get(provider.pid()).value_or(nice_of(99)), nice_of(0));
}

TEST_F(ShareTest, AcrossCpuGroupsTheWeightIsLentToo) {
  const CpuGroupV1 ours("provider");
  const CpuGroupV1 theirs("hog");
  if (!ours.valid() || !theirs.valid()) GTEST_SKIP() << "needs a v1 cpu controller";
  Process provider({.spin = true});
  Process hog({.spin = true});
  ASSERT_TRUE(ours.write("tasks", std::to_string(provider.pid())));
  ASSERT_TRUE(theirs.write("tasks", std::to_string(hog.pid())));
  Actuator actuator(scheduler_, groups_, options());
  actuator.set_competitors({{}, {theirs.path()}, {}});
  actuator.set_rules({.group_action = false});
  actuator.apply(std::vector{boost(provider, nice_of(-15))}, clock_.now());
  EXPECT_EQ(actuator.active(provider.id())->reason, Ineffective::cgroup_weight);
  EXPECT_LT(ratio(provider, hog), about_the_same);
  actuator.set_rules({});
  actuator.apply(std::vector{boost(provider, nice_of(-15))}, clock_.now());
  EXPECT_EQ(actuator.active(provider.id())->reason, Ineffective::none);
  EXPECT_EQ(ours.read("cpu.shares"), "29154");
  EXPECT_GT(ratio(provider, hog), clearly_more);
  actuator.apply({}, clock_.now());
  EXPECT_EQ(ours.read("cpu.shares"), "1024");
  provider.kill();
  hog.kill();
}

TEST_F(ShareTest, AQuotaIsTheReason) {
  const CpuGroupV1 group("quota");
  if (!group.valid()) GTEST_SKIP() << "needs a v1 cpu controller";
  if (!group.write("cpu.cfs_quota_us", "20000")) GTEST_SKIP() << "needs CFS_BANDWIDTH";
  Process provider({});
  ASSERT_TRUE(group.write("tasks", std::to_string(provider.pid())));
  Actuator actuator(scheduler_, groups_, options());
  actuator.apply(std::vector{boost(provider, nice_of(-15))}, clock_.now());
  EXPECT_EQ(actuator.active(provider.id())->reason, Ineffective::cgroup_quota);
  actuator.apply({}, clock_.now());
  provider.kill();
}

TEST_F(ShareTest, ARealTimeLoanCrossesSessions) {
  const Process provider({.spin = true, .own_session = true, .attr = nice_of(19)});
  const Process hog({.spin = true, .own_session = true});
  Actuator actuator(scheduler_, groups_, options());
  actuator.apply(std::vector{boost(provider, realtime(SchedPolicy::fifo, 1))}, clock_.now());
  // The kernel's fair server gives the hog 50 ms of each second, at once: a whole one is looked at.
  EXPECT_GT(ratio(provider, hog, std::chrono::seconds(1)), clearly_more);
}

// Among busy loops on one CPU a newborn would wait for their slices, whatever its nice value. The test is that CPU's
// most important thread, so only a rest of the actuator lets the newborn run.
TEST_F(ShareTest, ANewbornStartsAtOnce) {
  const Process hogs[] = {Process({.spin = true}), Process({.spin = true}), Process({.spin = true})};
  const auto cpus = scheduler_.affinity(0);
  ASSERT_TRUE(cpus.ok());
  cpu_set_t first{};
  CPU_SET(0, &first);
  Actuator actuator(scheduler_, groups_, options());
  ASSERT_TRUE(scheduler_.set_affinity(0, first).ok());
  ASSERT_TRUE(scheduler_.set(0, lent(realtime(SchedPolicy::fifo, 50))).ok());
  constexpr int births = 10;
  int started = 0;
  for (int i = 0; i < births; ++i) {
    Process newborn({}, [](int report) {
      if (::write(report, "r", 1) == 1) ::pause();
    });
    actuator.apply(std::vector{boost(newborn, nice_of(-10))}, clock_.now());
    EXPECT_EQ(scheduler_.get(newborn.pid()).value_or(nice_of(99)).nice, -10);
    if (newborn.cpu() > Duration::zero()) ++started;
    actuator.apply({}, clock_.now());
  }
  ASSERT_TRUE(scheduler_.set(0, nice_of(0)).ok());
  ASSERT_TRUE(scheduler_.set_affinity(0, *cpus).ok());
  EXPECT_GE(started, births / 2);
}

}  // namespace
}  // namespace swapd::actuate
