// swapctl run --embedded: a private swapd that the program never notices and that leaves nothing behind.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <regex>
#include <thread>

#include "started.h"

namespace swapd::cli {
namespace {

using testing::HasSubstr;

class EmbeddedTest : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string(SWAPD).empty()) GTEST_SKIP() << "this build has no swapd";
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    ::setenv("SWAPD_BINARY", SWAPD, 1);
    ::unsetenv("SWAPD_SOCKET");
  }
  void TearDown() override { ::unsetenv("SWAPD_BINARY"); }

  static bool eventually(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
  }
  TemporaryDirectory directory_;
};

TEST_F(EmbeddedTest, TheProgramCannotTell) {
  const auto report = [&](std::vector<std::string> before) {
    const std::string file = directory_.path() + "/report";
    before.insert(before.end(), {REPORTER, file});
    Started program(before, directory_.path(), [] {
      sigset_t blocked;
      sigemptyset(&blocked);
      sigaddset(&blocked, SIGCHLD);
      ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
    });
    EXPECT_EQ(program.wait(), 42) << program.err();
    EXPECT_EQ(program.out() + program.err(), "");
    const std::string text = std::regex_replace(content(file), std::regex("/(out|err)[0-9]+ "), "/$1 ");
    return std::regex_replace(text, std::regex("pid [0-9]+\n"), "pid\n");
  };
  EXPECT_EQ(report({SWAPCTL, "run", "--embedded"}), report({}));
}

TEST_F(EmbeddedTest, ItServesWhileTheProgramRunsAndIsGoneAfterwards) {
  int hold[2];
  ASSERT_EQ(::pipe2(hold, O_CLOEXEC), 0);
  Started program({SWAPCTL, "run", "--embedded", "--verbose", "cat"}, directory_.path(), [&] { ::dup2(hold[0], 0); });
  ::close(hold[0]);
  std::smatch found;
  ASSERT_TRUE(eventually([&] {
    const std::string said = program.err();
    return std::regex_search(said, std::regex("listens at (\\S+)\n"));
  })) << program.err();
  const std::string said = program.err();
  ASSERT_TRUE(std::regex_search(said, found, std::regex("listens at (\\S+)\n")));
  const std::string socket = found[1];
  EXPECT_TRUE(eventually([&] {
    Started ps({SWAPCTL, "--socket", socket, "ps"}, directory_.path());
    return ps.wait() == 0 && ps.out().find(" cat ") != std::string::npos;
  })) << "ps does not show the program";
  // The program's input and output are not held open by swapd: the end of one is the end of the other.
  ::close(hold[1]);
  EXPECT_EQ(program.wait(), 0);
  EXPECT_TRUE(eventually([&] { return !std::filesystem::exists(std::filesystem::path(socket).parent_path()); }))
      << "swapd left its directory";
}

TEST_F(EmbeddedTest, ASwapdThatDoesNotStartIsOneLine) {
  const std::string broken = directory_.path() + "/swapd";
  std::ofstream(broken) << "#!/bin/sh\necho one >&2\necho the moon is wrong >&2\nexit 1\n";
  ASSERT_EQ(::chmod(broken.c_str(), 0755), 0);
  ::setenv("SWAPD_BINARY", broken.c_str(), 1);
  const std::string file = directory_.path() + "/never";
  Started program({SWAPCTL, "run", "--embedded", REPORTER, file}, directory_.path());
  EXPECT_EQ(program.wait(), 1);
  EXPECT_EQ(program.err(), "swapctl: a private swapd ended before it was ready: the moon is wrong\n");
  EXPECT_FALSE(std::filesystem::exists(file));

  ::setenv("SWAPD_BINARY", "/nonexistent/swapd", 1);
  Started missing({SWAPCTL, "run", "--embedded", REPORTER, file}, directory_.path());
  EXPECT_EQ(missing.wait(), 1);
  EXPECT_THAT(missing.err(), HasSubstr("SWAPD_BINARY names /nonexistent/swapd, which cannot be executed"));
}

}  // namespace
}  // namespace swapd::cli
