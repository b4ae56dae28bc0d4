// Processes that are never enrolled, in a /proc of the test's own.
#include "enroll/enrollable.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace swapd::daemon {
namespace {

class Enrollable : public testing::Test {
 protected:
  Enrollable() : root_(testing::TempDir() + "swapd-enrollable-XXXXXX") { ::mkdtemp(root_.data()); }
  ~Enrollable() override { std::filesystem::remove_all(root_); }
  void runs(pid_t pid, const std::string& comm) const {
    const std::filesystem::path dir = root_ + "/" + std::to_string(pid);
    std::filesystem::create_directories(dir);
    std::ofstream(dir / "comm") << comm << '\n';
    std::filesystem::create_symlink("/usr/bin/" + comm, dir / "exe");
  }
  std::string refused(pid_t pid, const std::vector<std::string>& never = {}) const {
    const Status may = may_enroll(sys::Procfs(root_), pid, never);
    return may ? "" : may.error().context();
  }
  std::string root_;
};

TEST_F(Enrollable, WhatTheMachineStandsOnIsNot) {
  pid_t pid = 100;
  for (const char* name : {"dbus-daemon", "dbus-broker", "dbus-broker-lau", "systemd-journal", "systemd-udevd"}) {
    runs(++pid, name);
    EXPECT_EQ(refused(pid),
              "process " + std::to_string(pid) + " is part of the system (" + name + "), which swapd never supervises");
  }
  EXPECT_NE(refused(1), "");
  runs(200, "swapd-guard");
  EXPECT_NE(refused(200), "");
  runs(201, "sshd");
  EXPECT_EQ(refused(201), "");
}

TEST_F(Enrollable, WhatThePolicyProtectsIsNot) {
  runs(201, "sshd");
  runs(202, "bash");
  EXPECT_EQ(refused(201, {"postgres", "sshd"}),
            "process 201 is a sshd, which the policy protects ([observe] protected)");
  EXPECT_EQ(refused(202, {"postgres", "sshd"}), "");
}

}  // namespace
}  // namespace swapd::daemon
