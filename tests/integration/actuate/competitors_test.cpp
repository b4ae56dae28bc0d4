// The scan for competitors, among real processes.
#include "actuate/competitors.h"

#include <gmock/gmock.h>

#include "process.h"

namespace swapd::actuate {
namespace {

using testing::Contains;
using testing::Not;

class CompetitorsTest : public LinuxTest {
 protected:
  std::int64_t autogroup(const Process& process) {
    return groups_.autogroup(process.pid()).value_or(sys::Autogroup{}).id;
  }

  sys::Procfs procfs_;
  sys::LinuxGroups groups_;
  sys::LinuxScheduler scheduler_;
  CompetitorScan scan_{procfs_, groups_, scheduler_};
};

TEST_F(CompetitorsTest, OnlyWhatWantsACpuAndIsNotBoosted) {
  if (!groups_.autogroups()) GTEST_SKIP() << "needs kernel.sched_autogroup_enabled = 1";
  const Process sleeper({.own_session = true});
  const Process spinner({.spin = true, .own_session = true});
  const Process boosted({.spin = true, .own_session = true});
  const Competitors found = scan_.look({boosted.pid()});
  EXPECT_THAT(found.autogroups, Contains(autogroup(spinner)));
  EXPECT_THAT(found.autogroups, Not(Contains(autogroup(sleeper))));
  EXPECT_THAT(found.autogroups, Not(Contains(autogroup(boosted))));
}

TEST_F(CompetitorsTest, ThoseInACpuGroupAreNamedByIt) {
  const CpuGroupV1 group("competitor");
  if (!group.valid()) GTEST_SKIP() << "needs a v1 cpu controller";
  Process spinner({.spin = true, .own_session = true});
  ASSERT_TRUE(group.write("tasks", std::to_string(spinner.pid())));
  const Competitors found = scan_.look({});
  EXPECT_THAT(found.cpu_groups, Contains(group.path()));
  EXPECT_THAT(found.autogroups, Not(Contains(autogroup(spinner))));
  spinner.kill();
}

TEST_F(CompetitorsTest, ARealTimeThreadCountsWhenItStays) {
  const Process hog({.spin = true, .attr = realtime(SchedPolicy::fifo, 70)});
  EXPECT_TRUE(scan_.look({}).cpu_ranks.empty()) << "seen once";
  const Competitors found = scan_.look({});
  ASSERT_FALSE(found.cpu_ranks.empty());
  EXPECT_GE(found.cpu_ranks[0], 170);
  const Process provider({.spin = true, .attr = nice_of(0)});
  Actuator actuator(scheduler_, groups_, options());
  actuator.set_competitors(found);
  actuator.apply(std::vector{boost(provider, realtime(SchedPolicy::fifo, 30))}, clock_.now());
  EXPECT_EQ(actuator.active(provider.id())->reason, Ineffective::affinity);
}

}  // namespace
}  // namespace swapd::actuate
