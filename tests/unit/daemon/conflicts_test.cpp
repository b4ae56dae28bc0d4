// Other programs that set priorities on a machine, and settings that change the worth of a boost.
#include "control/conflicts.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace swapd::daemon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Rivals : public testing::Test {
 protected:
  Rivals() {
    std::string pattern = testing::TempDir() + "swapd-rivals-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
  }
  ~Rivals() override { std::filesystem::remove_all(root_); }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + name).parent_path());
    std::ofstream(root_ + name) << text << '\n';
  }
  void process(int pid, const std::string& comm) const {
    write("/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/comm", comm);
    write("/proc/" + std::to_string(pid) + "/comm", comm);
  }
  [[nodiscard]] SchedulingConflicts seen(const policy::DonationPolicy& policy = {}) const {
    return find_conflicts(sys::Procfs(root_ + "/proc"), policy, root_ + "/sys");
  }
  std::string root_;
};

TEST_F(Rivals, DaemonsAreKnownByName) {
  process(7, "ananicy-cpp");
  process(8, "ananicy-cpp-not");
  process(9, "sshd");
  EXPECT_THAT(seen().rivals, ElementsAre(HasSubstr("ananicy-cpp (pid 7) sets priorities by name")));
}

TEST_F(Rivals, ASchedulerOfSchedExtIsNamed) {
  EXPECT_THAT(seen().rivals, IsEmpty());
  write("/sys/kernel/sched_ext/state", "enabled");
  write("/sys/kernel/sched_ext/root/ops", "scx_lavd");
  EXPECT_THAT(seen().rivals, ElementsAre(HasSubstr("sched_ext scheduler is active (scx_lavd)")));
  write("/sys/kernel/sched_ext/state", "disabled");
  EXPECT_THAT(seen().rivals, IsEmpty());
}

TEST_F(Rivals, SettingsAreToldWhereTheyMatterUnderThePolicy) {
  write("/proc/sys/kernel/sched_autogroup_enabled", "1");
  write("/proc/sys/kernel/sched_rt_runtime_us", "950000");
  write("/proc/sys/kernel/sched_rt_period_us", "1000000");
  EXPECT_THAT(seen().settings, IsEmpty()) << "as most machines have it";
  EXPECT_THAT(seen({.group_action = false}).settings, ElementsAre(HasSubstr("sched_autogroup_enabled is 1")));
  write("/proc/sys/kernel/sched_rt_runtime_us", "-1");
  EXPECT_THAT(seen().settings, IsEmpty()) << "the policy's ceiling is there";
  EXPECT_THAT(seen({.ceiling_share = 1}).settings, ElementsAre(HasSubstr("sched_rt_runtime_us is -1")));
  write("/proc/sys/kernel/sched_rt_runtime_us", "100000");
  EXPECT_THAT(seen().settings, ElementsAre(HasSubstr("10 % of a CPU")));
  EXPECT_THAT(seen({.realtime = false}).settings, IsEmpty());
}

}  // namespace
}  // namespace swapd::daemon
