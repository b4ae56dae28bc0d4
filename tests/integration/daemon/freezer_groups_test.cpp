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
#include <functional>
#include <span>
#include <string>
#include <thread>

#include "fakes/cgroup_root.h"
#include "patience.h"
#include "shaping/quick_moves.h"

namespace swapd::daemon {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

bool eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + test::patience() * seconds(10);
  for (; !condition(); std::this_thread::yield())
    if (std::chrono::steady_clock::now() >= end) return false;
  return true;
}

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
  static bool has_group(pid_t pid) {
    return cgroups_of(pid).find("/swapd-freeze-" + std::to_string(pid) + "-") != std::string::npos;
  }

  test::CgroupRoot root_{"v2"};
  fs::path group_;
  std::array<FrozenGroup, 2> memory_{};
  Sleeper one_, other_;
  const Time now_{seconds(100)};
};

TEST_F(FreezerGroupsOfSwapd, OneIsMadeEachRound) {
  FreezerGroups groups(memory_, places());
  EXPECT_TRUE(groups.enter(one_.pid(), now_).value());
  EXPECT_FALSE(groups.enter(other_.pid(), now_).value()) << "not in this round";
  EXPECT_TRUE(groups.enter(one_.pid(), now_).value()) << "it has one";
  groups.tidy(now_);
  EXPECT_TRUE(groups.enter(other_.pid(), now_).value());
  EXPECT_TRUE(has_group(one_.pid()));
  EXPECT_TRUE(has_group(other_.pid()));
}

TEST_F(FreezerGroupsOfSwapd, AreWrittenDownWhileTheyExist) {
  {
    FreezerGroups groups(memory_, places());
    ASSERT_TRUE(groups.enter(one_.pid(), now_).value());
    EXPECT_NE(written().find("/swapd-freeze-"), std::string::npos);
    groups.leave(one_.pid(), now_);
    groups.tidy(now_);
    EXPECT_EQ(written(), "");
    ASSERT_TRUE(groups.enter(one_.pid(), now_).value());
  }
  EXPECT_EQ(written(), "");
  EXPECT_FALSE(has_group(one_.pid()));
}

// Also root may not make one there: the kernel says EAGAIN, which is not "another round".
TEST_F(FreezerGroupsOfSwapd, WhereNoneMayBeMadeThatIsSaid) {
  std::ofstream(group_ / "cgroup.max.descendants") << "0" << std::flush;
  FreezerGroups groups(memory_, places());
  const auto entered = groups.enter(one_.pid(), now_);
  ASSERT_FALSE(entered.ok());
  EXPECT_EQ(entered.error().code(), EAGAIN);
  groups.tidy(now_);
  EXPECT_EQ(written(), "");
}

TEST_F(FreezerGroupsOfSwapd, GroupsBelowItsOwnAreFoundOnce) {
  FreezerGroups groups(memory_, places());
  ASSERT_TRUE(groups.enter(one_.pid(), now_).value());
  std::string below = written();
  below = below.substr(0, below.find('\n')) + "/below";
  ASSERT_EQ(::mkdir(below.c_str(), 0755), 0);
  groups.tidy(now_);
  const auto again = groups.enter(one_.pid(), now_);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code(), EBUSY);
  groups.tidy(now_);
  EXPECT_TRUE(groups.enter(one_.pid(), now_).value()) << "in another, when it is tried again";
  ::rmdir(below.c_str());
}

TEST_F(FreezerGroupsOfSwapd, WhatTheGuardHasEndedIsSeen) {
  FreezerGroups groups(memory_, places());
  ASSERT_TRUE(groups.enter(one_.pid(), now_).value());
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
  ASSERT_TRUE(groups.enter(one_.pid(), now_).value());
  EXPECT_FALSE(groups.is_full());
  ASSERT_TRUE(groups.freeze(one_.pid(), now_).value());
  EXPECT_TRUE(groups.is_full());
  groups.leave(one_.pid(), now_);
  EXPECT_FALSE(groups.is_full());
}

TEST_F(FreezerGroupsOfSwapd, WhatCouldNotBeWrittenIsWrittenLater) {
  fs::remove(root_.path() / "state");
  FreezerGroups groups(memory_, places());
  ASSERT_TRUE(groups.enter(one_.pid(), now_).value());
  fs::create_directory(root_.path() / "state");
  groups.tidy(now_ + seconds(2));
  EXPECT_NE(written().find("/swapd-freeze-"), std::string::npos);
}

// The thread that keeps moves quick has run so often.
long switches_of_mover() {
  for (const auto& entry : fs::directory_iterator("/proc/self/task")) {
    std::ifstream comm(entry.path() / "comm"), status(entry.path() / "status");
    std::string name;
    if (!std::getline(comm, name) || name != "swapd-moves") continue;
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("voluntary_ctxt_switches:")) return std::stol(line.substr(line.find(':') + 1));
  }
  return -1;
}

TEST_F(FreezerGroupsOfSwapd, MovesAreKeptQuickByAMoveThatChangesNothing) {
  const std::string before = cgroups_of(::getpid());
  QuickMoves moves("/proc", root_.path());
  ASSERT_TRUE(eventually([] { return switches_of_mover() >= 0; }));
  moves.keep_for(seconds(60));
  EXPECT_TRUE(eventually([] { return switches_of_mover() > 5; })) << "one each 5 ms";
  EXPECT_EQ(cgroups_of(::getpid()), before);
}

TEST_F(FreezerGroupsOfSwapd, WhereNoProcessCanBeMovedNoneIsTried) {
  QuickMoves moves("/proc", "/nowhere");
  moves.keep_for(seconds(60));
  EXPECT_TRUE(eventually([] { return switches_of_mover() < 0; })) << "its thread has ended";
}

}  // namespace
}  // namespace swapd::daemon
