// A program in a terminal beside busy loops, under a policy that says no more than that there are levels.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "session.h"

namespace swapd::test {
namespace {

class LevelsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    session.emplace(std::vector<std::string>{"--observe", "bpf"},
                    "[class.default.levels]\non = true\n[class.server]\n");
    if (!session->failure().empty()) GTEST_SKIP() << session->failure();
    master.reset(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    ASSERT_TRUE(master && ::grantpt(master.get()) == 0 && ::unlockpt(master.get()) == 0);
    char name[64];
    ASSERT_EQ(::ptsname_r(master.get(), name, sizeof name), 0);
    terminal = name;
    slave.reset(::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC));
    termios settings{};
    ASSERT_EQ(::tcgetattr(slave.get(), &settings), 0);
    ::cfmakeraw(&settings);
    ASSERT_EQ(::tcsetattr(slave.get(), TCSANOW, &settings), 0);
    for (int i = 0; i < 4; ++i) session->start_plain({session->pair(), "spin", "40"});
  }
  pid_t start_typist(std::vector<std::string> options = {}, const std::string& socket = "") {
    std::vector<std::string> command = {session->pair(), "typist", terminal};
    if (!socket.empty()) command.push_back(socket);
    return session->start(std::move(options), std::move(command));
  }
  void press(char key) const { ASSERT_EQ(::write(master.get(), &key, 1), 1); }
  ::testing::AssertionResult has_nice(pid_t pid, int nice) {
    if (eventually([&] { return kernel_attr(pid).nice == nice; })) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "nice " << kernel_attr(pid).nice << "\n"
                                         << session->ctl({"why", std::to_string(pid)}).out << session->ctl({"ps"}).out;
  }

  std::optional<Session> session;
  Fd master, slave;
  std::string terminal;
};

TEST_F(LevelsTest, a_program_that_awaits_its_terminal_is_before_others) {
  const pid_t typist = start_typist();
  ASSERT_TRUE(has_nice(typist, -5));
  EXPECT_EQ(kernel_attr(typist).slice_ns, 500'000u);
  const auto why = session->json({"why", std::to_string(typist)})["threads"][0];
  EXPECT_EQ(why["level"]["level"], 11);
  EXPECT_EQ(why["level"]["base"], 5);
  EXPECT_EQ(why["level"]["awaited"], "terminal-input");
  EXPECT_EQ(why["rank_from"], "level");
  EXPECT_NE(session->ctl({"why", std::to_string(typist)}).out.find("awaited terminal input"), std::string::npos);
  EXPECT_NE(session->ctl({"ps"}).out.find("level 11"), std::string::npos);
}

TEST_F(LevelsTest, it_sinks_as_it_computes_and_comes_back) {
  const pid_t typist = start_typist();
  ASSERT_TRUE(has_nice(typist, -5));
  press('x');
  ASSERT_TRUE(has_nice(typist, 0)) << "it computes for two seconds";
  EXPECT_EQ(kernel_attr(typist).slice_ns, kernel_attr(::getpid()).slice_ns);
  EXPECT_TRUE(has_nice(typist, -5)) << "it awaits the next key";
}

// Nothing says that any program here is important.
TEST_F(LevelsTest, a_server_that_it_waits_for_is_helped_for_it) {
  const pid_t server = session->start({"--nice", "19", "--class", "server"},
                                      {session->pair(), "server", session->path("sock"), session->path("flag")});
  const pid_t typist = start_typist({}, session->path("sock"));
  ASSERT_TRUE(has_nice(typist, -5));
  ASSERT_TRUE(has_nice(server, 19));
  press('x');
  ASSERT_TRUE(has_nice(server, -5));
  session->raise("flag");
  EXPECT_TRUE(has_nice(server, 19));
  EXPECT_TRUE(has_nice(typist, -5));
}

TEST_F(LevelsTest, each_has_its_own_again_when_swapd_ends) {
  const pid_t typist = start_typist({"--nice", "3"});
  ASSERT_TRUE(has_nice(typist, -2));
  EXPECT_EQ(session->stop(SIGTERM), 0);
  EXPECT_EQ(kernel_attr(typist).nice, 3);
  EXPECT_EQ(kernel_attr(typist).slice_ns, kernel_attr(::getpid()).slice_ns);
}

TEST_F(LevelsTest, a_class_of_its_own_stays_its_own) {
  const pid_t typist = start_typist({"--rr", "5"});
  const pid_t other = start_typist();
  ASSERT_TRUE(has_nice(other, -5));
  EXPECT_EQ(kernel_attr(typist).policy, "rr");
  EXPECT_TRUE(session->json({"why", std::to_string(typist)})["threads"][0]["level"].is_null());
}

}  // namespace
}  // namespace swapd::test
