// The launcher that a process comes from: a made-up tree of processes.
#include "engine/launchers.h"

#include <gtest/gtest.h>

#include "fakes/fake_proc.h"

namespace swapd::daemon {
namespace {

class LaunchersTest : public testing::Test {
 protected:
  void has(pid_t pid, pid_t parent, const std::string& comm) const {
    proc_.add(pid, {.start_time = 7, .parent = parent, .comm = comm});
  }
  [[nodiscard]] pid_t launcher(pid_t pid) const { return launcher_of(sys::Procfs(proc_.root()), pid).tid; }
  fakes::FakeProc proc_;
};

TEST_F(LaunchersTest, IsTheParentThatStartsRanks) {
  has(10, 1, "bash");
  has(20, 10, "mpirun");
  has(21, 20, "solver");
  EXPECT_EQ(launcher(21), 20);
  EXPECT_EQ(launcher(20), 0) << "it is none of its own ranks";
}

TEST_F(LaunchersTest, IsTheNearestOne) {
  has(20, 1, "mpiexec.hydra");
  has(30, 20, "hydra_pmi_proxy");
  has(31, 30, "solver");
  EXPECT_EQ(launcher(31), 30);
}

TEST_F(LaunchersTest, IsFoundBehindWrappersButNotAnyNumber) {
  has(20, 1, "mpirun");
  has(21, 20, "sh");
  has(22, 21, "time");
  has(23, 22, "sh");
  has(24, 23, "solver");
  has(25, 24, "solver");
  EXPECT_EQ(launcher(24), 20);
  EXPECT_EQ(launcher(25), 0);
}

TEST_F(LaunchersTest, IsNoOtherProgram) {
  has(20, 1, "mpirunner");
  has(21, 20, "solver");
  EXPECT_EQ(launcher(21), 0);
}

TEST_F(LaunchersTest, HasGoneWithItsProcFolder) {
  has(21, 20, "solver");
  EXPECT_EQ(launcher(21), 0);
  EXPECT_EQ(launcher(99), 0);
}

}  // namespace
}  // namespace swapd::daemon
