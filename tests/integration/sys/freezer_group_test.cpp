// A process that is stopped by the cgroup freezer, in a group of its own, and is back where it was afterwards.
#include "sys/sched/freezer_group.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "fakes/cgroup_root.h"
#include "sys/procfs/procfs.h"

namespace swapd::sys {
namespace {

namespace fs = std::filesystem;

bool eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!condition())
    if (std::chrono::steady_clock::now() >= end) return false;
  return true;
}

// A program that counts in memory that is shared with us.
class Counter {
 public:
  Counter()
      : count_(static_cast<volatile long*>(
            ::mmap(nullptr, sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))),
        pid_(::fork()) {
    if (pid_ != 0) return;
    ::alarm(60);
    for (;;) *count_ = *count_ + 1;
  }
  ~Counter() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool counts() const {
    const long before = *count_;
    return eventually([&] { return *count_ != before; });
  }
  [[nodiscard]] long count() const { return *count_; }

 private:
  volatile long* count_;
  pid_t pid_;
};

class FreezerGroups : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!root_.is_there()) GTEST_SKIP() << "no cgroups of " << GetParam();
  }
  [[nodiscard]] Result<FreezerGroup> make(pid_t pid) const {
    const auto place = FreezerGroup::place_for(pid, "/proc", root_.path());
    if (!place) return place.error();
    return FreezerGroup::make(*place, pid);
  }
  static std::string cgroups_of(pid_t pid) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/cgroup");
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static bool is_frozen(const FreezerGroup& group) {
    const bool v2 = group.control_file().ends_with("cgroup.freeze");
    std::ifstream in(group.directory() + (v2 ? "/cgroup.events" : "/freezer.state"));
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    return text.find(v2 ? "frozen 1" : "FROZEN") != std::string::npos;
  }
  test::CgroupRoot root_{GetParam()};
};

TEST_P(FreezerGroups, StopsOneAndPutsItBack) {
  const Counter program;
  ASSERT_TRUE(program.counts());
  const std::string before = cgroups_of(program.pid());
  std::string directory;
  {
    auto group = make(program.pid());
    ASSERT_TRUE(group.ok()) << group.error().text();
    directory = group->directory();
    EXPECT_NE(cgroups_of(program.pid()), before);
    EXPECT_TRUE(group->keep_only(program.pid()));
    ASSERT_TRUE(group->freeze().ok());
    ASSERT_TRUE(eventually([&] { return is_frozen(*group); }));
    const long count = program.count();
    EXPECT_EQ(program.count(), count);
    ASSERT_TRUE(group->thaw().ok());
    EXPECT_TRUE(program.counts());
    ASSERT_TRUE(group->freeze().ok());
  }
  EXPECT_TRUE(program.counts());
  EXPECT_EQ(cgroups_of(program.pid()), before);
  EXPECT_FALSE(fs::exists(directory));
}

TEST_P(FreezerGroups, WhoWasStoppedBeforeIsToldApart) {
  const Counter program;
  const Procfs procfs;
  ASSERT_TRUE(program.counts());
  auto group = make(program.pid());
  ASSERT_TRUE(group.ok()) << group.error().text();
  ASSERT_TRUE(group->freeze().ok());
  ASSERT_TRUE(eventually([&] { return is_frozen(*group); }));
  EXPECT_FALSE(procfs.stopped_by_signal(program.pid()));
  ASSERT_TRUE(group->thaw().ok());
  ::kill(program.pid(), SIGSTOP);
  ASSERT_TRUE(eventually([&] { return procfs.stat(program.pid())->state == 'T'; }));
  ASSERT_TRUE(group->freeze().ok());
  ASSERT_TRUE(eventually([&] { return is_frozen(*group); }));
  EXPECT_TRUE(procfs.stopped_by_signal(program.pid()));
}

// What the process forks comes into its group, and is none of its business.
TEST_P(FreezerGroups, KeepsOnlyTheOne) {
  const Counter one, other;
  auto group = make(one.pid());
  ASSERT_TRUE(group.ok()) << group.error().text();
  const std::string before = cgroups_of(other.pid());
  std::ofstream(group->directory() + "/cgroup.procs") << other.pid() << std::flush;
  ASSERT_NE(cgroups_of(other.pid()), before);
  EXPECT_TRUE(group->keep_only(one.pid()));
  EXPECT_EQ(cgroups_of(other.pid()), before);
  EXPECT_FALSE(group->keep_only(other.pid())) << "it is not in it";
}

// Also one that comes while it is frozen: a fork that had begun before.
TEST_P(FreezerGroups, NobodyElseStaysFrozenInIt) {
  const Counter one, other;
  auto group = make(one.pid());
  ASSERT_TRUE(group.ok()) << group.error().text();
  ASSERT_TRUE(group->freeze().ok());
  std::ofstream(group->directory() + "/cgroup.procs") << other.pid() << std::flush;
  EXPECT_TRUE(group->keep_only(one.pid()));
  EXPECT_TRUE(other.counts());
}

// A program that makes groups below its own, as containers' do: they are not ours to freeze, nor to remove.
TEST_P(FreezerGroups, GroupsBelowItAreSeen) {
  const Counter one;
  auto group = make(one.pid());
  ASSERT_TRUE(group.ok()) << group.error().text();
  EXPECT_FALSE(group->has_groups());
  const std::string below = group->directory() + "/theirs";
  ASSERT_TRUE(fs::create_directory(below));
  EXPECT_TRUE(group->has_groups());
  EXPECT_FALSE(group->dissolve());
  ASSERT_EQ(::rmdir(below.c_str()), 0);
  EXPECT_TRUE(group->dissolve());
}

// A group whose name begins as those of another namespace do is no way to the root.
TEST_P(FreezerGroups, ANameWithDotsIsAName) {
  const Counter one;
  auto outer = make(one.pid());
  ASSERT_TRUE(outer.ok()) << outer.error().text();
  const std::string odd = fs::path(outer->directory()).parent_path() / ("..swapd-test-" + std::to_string(::getpid()));
  ASSERT_TRUE(fs::create_directory(odd));
  std::ofstream(odd + "/cgroup.procs") << one.pid() << std::flush;
  const auto place = FreezerGroup::place_for(one.pid(), "/proc", root_.path());
  EXPECT_TRUE(place.ok() && place->starts_with(odd + "/")) << place.value_or("");
  std::ofstream(fs::path(odd).parent_path() / "cgroup.procs") << one.pid() << std::flush;
  EXPECT_EQ(::rmdir(odd.c_str()), 0);
}

// Its parent's group is not what it goes back to.
TEST_P(FreezerGroups, AreNotMadeBelowEachOther) {
  const Counter one, other;
  auto group = make(one.pid());
  ASSERT_TRUE(group.ok()) << group.error().text();
  std::ofstream(group->directory() + "/cgroup.procs") << other.pid() << std::flush;
  const auto second = make(other.pid());
  ASSERT_TRUE(second.ok()) << second.error().text();
  EXPECT_EQ(fs::path(second->directory()).parent_path(), fs::path(group->directory()).parent_path());
}

TEST_P(FreezerGroups, WhatAnEarlierSwapdLeftIsFound) {
  const Counter program;
  std::string directory;
  {
    auto group = make(program.pid());
    ASSERT_TRUE(group.ok()) << group.error().text();
    directory = group->directory();
    ASSERT_TRUE(group->freeze().ok());
    auto again = FreezerGroup::found(directory);
    ASSERT_TRUE(again.ok()) << again.error().text();
    EXPECT_TRUE(again->dissolve());
    EXPECT_TRUE(program.counts());
    EXPECT_TRUE(group->dissolve()) << "it has gone already";
  }
  EXPECT_EQ(FreezerGroup::found(directory).error().code(), ENOENT);
}

INSTANTIATE_TEST_SUITE_P(versions, FreezerGroups, ::testing::Values("v1", "v2"),
                         [](const auto& instance) { return std::string(instance.param); });

// The file with their names lies in a directory of root's, but it is a file.
TEST(FreezerGroup, OthersGroupsAreNotTouched) {
  for (const char* other : {"", "/", "/sys/fs/cgroup", "/sys/fs/cgroup/freezer/docker", "swapd-freeze-1",
                            "/sys/fs/cgroup/freezer/../swapd-freeze-1", "/etc/swapd-freeze-1/..", "/swapd-freeze-1"}) {
    EXPECT_FALSE(FreezerGroup::found(other).ok()) << other;
    EXPECT_FALSE(FreezerGroup::make(other, ::getpid()).ok()) << other;
  }
}

TEST(FreezerGroup, AProcessThatIsGoneHasNone) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  ::waitpid(pid, nullptr, 0);
  EXPECT_FALSE(FreezerGroup::place_for(pid).ok());
}

}  // namespace
}  // namespace swapd::sys
