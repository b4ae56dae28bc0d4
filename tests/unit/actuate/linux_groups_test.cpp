// LinuxGroups over a /proc and cgroup mounts made of plain files: cgroup v2 has no cpu controller on many test
// machines.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "sys/sched/groups.h"
#include "sys/sched/io_groups.h"

namespace swapd::sys {
namespace {

class LinuxGroupsTest : public testing::Test {
 protected:
  LinuxGroupsTest() {
    std::string pattern = testing::TempDir() + "swapd-groups-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    file("proc/sys/kernel/sched_autogroup_enabled", "1\n");
  }
  ~LinuxGroupsTest() override { std::filesystem::remove_all(root_); }

  void file(const std::string& path, const std::string& text) const {
    const std::filesystem::path whole = root_ + "/" + path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << text;
  }
  std::string read(const std::string& path) const {
    std::ifstream in(root_ + "/" + path);
    std::string text;
    std::getline(in, text);
    return text;
  }
  void v2(const std::string& part = "/") const {
    file("proc/self/mountinfo", "22 1 0:5 / /proc rw - proc proc rw\n41 31 0:38 " + part + " " + root_ +
                                    "/cg rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
  }
  void v1() const {
    file("proc/self/mountinfo", "33 31 0:30 / " + root_ + "/acct rw - cgroup cgroup rw,cpuacct\n32 31 0:29 / " + root_ +
                                    "/cg rw - cgroup cgroup rw,cpu,cpuacct\n41 31 0:38 / /u rw - cgroup2 cgroup2 rw\n");
  }
  LinuxGroups groups() const { return LinuxGroups(root_ + "/proc"); }

  std::string root_;
};

TEST_F(LinuxGroupsTest, V2TakesTheNearestGroupWithTheController) {
  v2();
  file("cg/user.slice/cpu.weight", "100\n");
  file("cg/user.slice/app/scope/cgroup.procs", "");
  file("proc/10/cgroup", "0::/user.slice/app/scope\n");
  file("proc/11/cgroup", "0::/system.slice/x\n");
  EXPECT_EQ(groups().group_of(10).value_or(""), "/user.slice");
  EXPECT_EQ(groups().group_of(11).value_or(""), "/");
  EXPECT_TRUE(groups().group_of(12).error().gone());
}

TEST_F(LinuxGroupsTest, V2WeightsAndQuotas) {
  v2();
  file("cg/a/cpu.weight", "300\n");
  file("cg/a/cpu.max", "50000 100000\n");
  file("cg/b/cpu.weight", "100\n");
  file("cg/b/cpu.max", "max 100000\n");
  const auto a = groups().look("/a");
  ASSERT_TRUE(a.ok());
  EXPECT_EQ(a->weight, 300U);
  EXPECT_EQ(a->nice_0_weight, 100U);
  EXPECT_EQ(a->max_weight, 10000U);
  EXPECT_DOUBLE_EQ(a->quota, 0.5);
  EXPECT_EQ(a->rt_runtime_us, -1);
  EXPECT_DOUBLE_EQ(groups().look("/b")->quota, 0);
  ASSERT_TRUE(groups().set_weight("/a", 900).ok());
  EXPECT_EQ(read("cg/a/cpu.weight").substr(0, 3), "900");
  EXPECT_TRUE(groups().look("/gone").error().gone());
  EXPECT_TRUE(groups().set_weight("/gone", 1).error().gone());
}

TEST_F(LinuxGroupsTest, TheKernelCountsThePeriodsThatAQuotaHeldThreadsBackIn) {
  v2();
  file("cg/a/cpu.stat", "usage_usec 5\nnr_periods 70\nnr_throttled 12\nthrottled_usec 900\n");
  file("cg/b/cpu.stat", "usage_usec 5\nuser_usec 5\n");  // without the controller
  EXPECT_EQ(groups().throttled_periods("/a").value_or(0), 12U);
  EXPECT_EQ(groups().throttled_periods("/b").error().code(), ENOENT);
  EXPECT_TRUE(groups().throttled_periods("/gone").error().gone());
}

TEST_F(LinuxGroupsTest, OnlyAPartOfTheHierarchyMayBeMounted) {
  v2("/machine");
  file("cg/x/cpu.weight", "100\n");
  file("proc/10/cgroup", "0::/machine/x\n");
  file("proc/11/cgroup", "0::/../elsewhere\n");
  file("proc/12/cgroup", "0::/machinery\n");
  file("proc/13/cgroup", "0::/machine\n");
  EXPECT_EQ(groups().group_of(10).value_or(""), "/x");
  EXPECT_EQ(groups().group_of(11).error().code(), EXDEV);
  EXPECT_EQ(groups().group_of(12).error().code(), EXDEV);
  EXPECT_EQ(groups().group_of(13).value_or(""), "/");
}

TEST_F(LinuxGroupsTest, V1GoesBeforeV2) {
  v1();
  file("proc/10/cgroup", "5:memory:/m\n2:cpu,cpuacct:/batch: one\n0::/u\n");
  file("cg/batch: one/cpu.shares", "512\n");
  file("cg/batch: one/cpu.cfs_quota_us", "-1\n");
  file("cg/batch: one/cpu.cfs_period_us", "100000\n");
  file("cg/batch: one/cpu.rt_runtime_us", "0\n");
  ASSERT_EQ(groups().group_of(10).value_or(""), "/batch: one");
  auto seen = groups().look("/batch: one");
  ASSERT_TRUE(seen.ok());
  EXPECT_EQ(seen->weight, 512U);
  EXPECT_EQ(seen->nice_0_weight, 1024U);
  EXPECT_DOUBLE_EQ(seen->quota, 0);
  EXPECT_EQ(seen->rt_runtime_us, 0);
  file("cg/batch: one/cpu.cfs_quota_us", "25000\n");
  EXPECT_DOUBLE_EQ(groups().look("/batch: one")->quota, 0.25);
  ASSERT_TRUE(groups().set_weight("/batch: one", 2048).ok());
  EXPECT_EQ(read("cg/batch: one/cpu.shares"), "2048");
}

TEST_F(LinuxGroupsTest, NoHierarchyMeansTheRoot) {
  file("proc/self/mountinfo", "");
  file("proc/10/cgroup", "0::/x\n");
  EXPECT_EQ(groups().group_of(10).value_or(""), "/");
}

TEST_F(LinuxGroupsTest, Autogroups) {
  v2();
  file("proc/10/autogroup", "/autogroup-52 nice -3\n");
  file("proc/11/autogroup", "");
  EXPECT_TRUE(groups().autogroups());
  auto group = groups().autogroup(10);
  ASSERT_TRUE(group.ok());
  EXPECT_EQ(group->id, 52);
  EXPECT_EQ(group->nice, -3);
  EXPECT_TRUE(groups().autogroup(11).error().gone());
  EXPECT_TRUE(groups().autogroup(12).error().gone());
  EXPECT_EQ(groups().autogroup_member(52), 10);
  EXPECT_EQ(groups().autogroup_member(53), std::nullopt);
  ASSERT_TRUE(groups().set_autogroup_nice(10, -7).ok());
  EXPECT_EQ(read("proc/10/autogroup").substr(0, 2), "-7");
  file("proc/sys/kernel/sched_autogroup_enabled", "0\n");
  EXPECT_FALSE(groups().autogroups());
}

TEST_F(LinuxGroupsTest, OfDisksCountWithBfq) {
  file("proc/self/mountinfo", "32 31 0:29 / " + root_ + "/blk rw - cgroup cgroup rw,blkio\n");
  file("proc/10/cgroup", "5:cpu:/other\n4:blkio:/a/b\n");
  file("blk/a/b/blkio.bfq.weight", "100\n");
  file("blk/a/b/blkio.bfq.weight_device", "default 100\n");
  file("sys/block/vda/queue/scheduler", "none [mq-deadline] kyber bfq\n");
  LinuxIoGroups io(LinuxIoGroups::By::bfq, root_ + "/proc", root_ + "/sys");
  EXPECT_FALSE(io.count());
  EXPECT_EQ(io.group_of(10).error().code(), ENOTSUP);
  file("sys/block/vda/queue/scheduler", "none mq-deadline kyber [bfq]\n");
  io.refresh();
  EXPECT_TRUE(io.count());
  EXPECT_EQ(io.group_of(10).value_or(""), "/a/b");
  const auto seen = io.look("/a/b");
  ASSERT_TRUE(seen.ok());
  EXPECT_EQ(seen->weight, 100U);
  EXPECT_EQ(seen->max_weight, 1000U);
  EXPECT_FALSE(seen->of_devices);
  EXPECT_TRUE(io.set_weight("/a/b", 500).ok());
  EXPECT_EQ(read("blk/a/b/blkio.bfq.weight"), "500");
  EXPECT_FALSE(io.autogroups());
  file("blk/a/b/blkio.bfq.weight_device", "default 100\n8:0 300\n");
  EXPECT_TRUE(io.look("/a/b")->of_devices);
  EXPECT_TRUE(io.set_weight("/a/b", 100).ok());
  EXPECT_EQ(read("blk/a/b/blkio.bfq.weight_device").substr(0, 7), "8:0 300") << "set again, because bfq forgets it";
  LinuxIoGroups iocost(LinuxIoGroups::By::iocost, root_ + "/proc", root_ + "/sys");
  EXPECT_FALSE(iocost.count()) << "v1 has no weights of its";
}

TEST_F(LinuxGroupsTest, OfDisksCountWithIocost) {
  v2();
  file("proc/10/cgroup", "0::/a\n");
  file("cg/a/io.weight", "default 200\n");
  LinuxIoGroups io(LinuxIoGroups::By::iocost, root_ + "/proc", root_ + "/sys");
  EXPECT_FALSE(io.count());
  file("cg/io.cost.qos", "8:0 enable=1 ctrl=auto\n");
  io.refresh();
  EXPECT_TRUE(io.count());
  EXPECT_EQ(io.group_of(10).value_or(""), "/a");
  const auto seen = io.look("/a");
  ASSERT_TRUE(seen.ok());
  EXPECT_EQ(seen->weight, 200U);
  EXPECT_EQ(seen->max_weight, 10000U);
  EXPECT_FALSE(seen->of_devices);
  file("cg/a/io.weight", "default 200\n8:0 300\n");
  EXPECT_TRUE(io.look("/a")->of_devices);
  EXPECT_EQ(io.look("/a")->weight, 200U);
}

TEST(FindCpuMount, UnderstandsEscapesAndIgnoresTheRest) {
  const GroupMount mount =
      find_group_mount("garbage\n- - -\n41 31 0:38 /\\040r /mnt/a\\040b\\134c rw - cgroup2 none rw\n");
  EXPECT_EQ(mount.version, GroupMount::Version::v2);
  EXPECT_EQ(mount.point, "/mnt/a b\\c");
  EXPECT_EQ(mount.root, "/ r");
  EXPECT_EQ(find_group_mount("").version, GroupMount::Version::none);
  EXPECT_EQ(find_group_mount("1 2 0:1 / /c rw - cgroup cgroup rw,cpuset,cpuacct\n").version, GroupMount::Version::none);
}

TEST(ParseAutogroup, RefusesGarbage) {
  EXPECT_FALSE(parse_autogroup(""));
  EXPECT_FALSE(parse_autogroup("/autogroup-"));
  EXPECT_FALSE(parse_autogroup("/autogroup-5"));
  EXPECT_FALSE(parse_autogroup("/autogroup-5 nice"));
  EXPECT_FALSE(parse_autogroup("/autogroup-x nice 0"));
  EXPECT_TRUE(parse_autogroup("/autogroup-5 nice 19\n"));
}

}  // namespace
}  // namespace swapd::sys
