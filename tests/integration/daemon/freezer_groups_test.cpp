// The groups of frozen processes: one a round, written down before they are made, and refusals that say why.
#include "shaping/freezer_groups.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include "fakes/cgroup_root.h"
#include "supervised.h"

namespace swapd::daemon {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using test::eventually;

class Sleeper {
 public:
  Sleeper() : pid_(::fork()) {
    if (pid_ != 0) return;
    ::alarm(60);
    for (;;) ::pause();
  }
  ~Sleeper() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

// With a group of its own that the test's programs are in, of cgroups v2.
class FreezerGroupsOfSwapd : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(root_.path() / "state");
    group_ = root_.hierarchy() / ("freezer-groups-" + std::to_string(::getpid()));
    if (!root_.is_there() || ::mkdir(group_.c_str(), 0755) != 0) GTEST_SKIP() << "no cgroups of v2";
    for (const Sleeper* each : {&one_, &other_}) std::ofstream(group_ / "cgroup.procs") << each->pid() << std::flush;
  }
  void TearDown() override {
    for (const Sleeper* each : {&one_, &other_})
      std::ofstream(group_.parent_path() / "cgroup.procs") << each->pid() << std::flush;
    EXPECT_TRUE(::rmdir(group_.c_str()) == 0 || errno == ENOENT) << "somebody left a group";
  }
  [[nodiscard]] FreezerGroups::Places places() const {
    return {.cgroups = root_.path(), .state_dir = root_.path() / "state"};
  }
  [[nodiscard]] std::string written() const {
    std::ifstream in(root_.path() / "state/frozen");
    return {std::istreambuf_iterator<char>(in), {}};
  }
  [[nodiscard]] static std::string cgroups_of(pid_t pid) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/cgroup");
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // Round by round, as the throttler asks.
  Result<bool> entered(FreezerGroups& groups, pid_t pid) const {
    Result<bool> out = false;
    EXPECT_TRUE(eventually([&] {
      groups.tidy(now_);
      out = groups.enter(pid, now_);
      return !out.ok() || *out;
    }));
    return out;
  }
  bool enters(FreezerGroups& groups, pid_t pid) const { return entered(groups, pid).ok(); }
  static bool has_group(pid_t pid) {
    return cgroups_of(pid).find("/swapd-freeze-" + std::to_string(pid) + "-") != std::string::npos;
  }

  test::CgroupRoot root_{"v2"};
  fs::path group_;
  std::array<FrozenGroup, 2> memory_{};
  Sleeper one_, other_;
  const Time now_{seconds(100)};
};

TEST_F(FreezerGroupsOfSwapd, OneIsMadeAtATimeAndNoneIsWaitedFor) {
  FreezerGroups groups(memory_, places());
  EXPECT_FALSE(groups.enter(one_.pid(), now_).value()) << "the kernel takes its time";
  EXPECT_FALSE(groups.enter(other_.pid(), now_).value());
  EXPECT_FALSE(groups.enter(one_.pid(), now_).value()) << "it is taken by tidy()";
  EXPECT_TRUE(enters(groups, one_.pid()));
  EXPECT_TRUE(groups.enter(one_.pid(), now_).value()) << "it has one";
  EXPECT_TRUE(enters(groups, other_.pid()));
  EXPECT_TRUE(has_group(one_.pid()));
  EXPECT_TRUE(has_group(other_.pid()));
}

TEST_F(FreezerGroupsOfSwapd, AreWrittenDownWhileTheyExist) {
  {
    FreezerGroups groups(memory_, places());
    ASSERT_TRUE(enters(groups, one_.pid()));
    EXPECT_NE(written().find("/swapd-freeze-"), std::string::npos);
    groups.leave(one_.pid(), now_);
    groups.tidy(now_);
    EXPECT_EQ(written(), "");
    ASSERT_TRUE(enters(groups, one_.pid()));
  }
  EXPECT_EQ(written(), "");
  EXPECT_FALSE(has_group(one_.pid()));
}

// Also root may not make one there: the kernel says EAGAIN, which is not "another round".
TEST_F(FreezerGroupsOfSwapd, WhereNoneMayBeMadeThatIsSaid) {
  std::ofstream(group_ / "cgroup.max.descendants") << "0" << std::flush;
  FreezerGroups groups(memory_, places());
  const auto entered = this->entered(groups, one_.pid());
  ASSERT_FALSE(entered.ok());
  EXPECT_EQ(entered.error().code(), EAGAIN);
  groups.tidy(now_);
  EXPECT_EQ(written(), "");
}

TEST_F(FreezerGroupsOfSwapd, GroupsBelowItsOwnAreFoundOnce) {
  FreezerGroups groups(memory_, places());
  ASSERT_TRUE(enters(groups, one_.pid()));
  std::string below = written();
  below = below.substr(0, below.find('\n')) + "/below";
  ASSERT_EQ(::mkdir(below.c_str(), 0755), 0);
  groups.tidy(now_);
  const auto again = groups.enter(one_.pid(), now_);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code(), EBUSY);
  groups.tidy(now_);
  EXPECT_TRUE(enters(groups, one_.pid())) << "in another, when it is tried again";
  ::rmdir(below.c_str());
}

TEST_F(FreezerGroupsOfSwapd, WhatTheGuardHasEndedIsSeen) {
  FreezerGroups groups(memory_, places());
  ASSERT_TRUE(enters(groups, one_.pid()));
  ASSERT_TRUE(groups.freeze(one_.pid(), now_).value());
  EXPECT_TRUE(groups.is_frozen(one_.pid()));
  EXPECT_TRUE(groups.vouch(one_.pid(), now_ + seconds(1)));
  for (FrozenGroup& place : memory_) place.until = 0;
  EXPECT_FALSE(groups.vouch(one_.pid(), now_ + seconds(2)));
  groups.thaw(one_.pid());
  EXPECT_FALSE(groups.is_frozen(one_.pid()));
}

TEST_F(FreezerGroupsOfSwapd, NoMoreAreFrozenThanTheGuardKnows) {
  FreezerGroups groups(std::span<FrozenGroup>(memory_).first(1), places());
  ASSERT_TRUE(enters(groups, one_.pid()));
  EXPECT_FALSE(groups.is_full());
  ASSERT_TRUE(groups.freeze(one_.pid(), now_).value());
  EXPECT_TRUE(groups.is_full());
  groups.leave(one_.pid(), now_);
  EXPECT_FALSE(groups.is_full());
}

TEST_F(FreezerGroupsOfSwapd, WhatCouldNotBeWrittenIsWrittenLater) {
  fs::remove(root_.path() / "state");
  FreezerGroups groups(memory_, places());
  ASSERT_TRUE(enters(groups, one_.pid()));
  fs::create_directory(root_.path() / "state");
  groups.tidy(now_ + seconds(2));
  EXPECT_NE(written().find("/swapd-freeze-"), std::string::npos);
}

// Else no other process could ever be frozen.
TEST_F(FreezerGroupsOfSwapd, OneThatLeavesWhileItEntersMakesRoomForTheNext) {
  FreezerGroups groups(memory_, places());
  ASSERT_FALSE(groups.enter(one_.pid(), now_).value());
  groups.leave(one_.pid(), now_);
  EXPECT_TRUE(enters(groups, other_.pid()));
  EXPECT_TRUE(eventually([&] {
    groups.tidy(now_ + seconds(20));
    return !has_group(one_.pid());
  }));
}

TEST_F(FreezerGroupsOfSwapd, OneThatEntersAtTheEndIsWhereItWas) {
  const std::string before = cgroups_of(one_.pid());
  {
    FreezerGroups groups(memory_, places());
    ASSERT_FALSE(groups.enter(one_.pid(), now_).value());
  }
  EXPECT_EQ(cgroups_of(one_.pid()), before);
  EXPECT_EQ(written(), "");
}

}  // namespace
}  // namespace swapd::daemon
