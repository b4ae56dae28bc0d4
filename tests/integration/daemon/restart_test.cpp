// swapd that takes its own place, and swapd that its guard starts again.
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "session.h"

namespace swapd::test {
namespace {

class Restart : public ::testing::TestWithParam<const char*> {
 protected:
  void begin(std::vector<std::string> options = {}, const std::string& config = "") {
    options.insert(options.end(), {"--observe", GetParam()});
    session.emplace(options, config);
    if (!session->failure().empty()) GTEST_SKIP() << session->failure();
    server = session->start({}, {session->pair(), "server", session->path("sock"), session->path("flag")});
    for (int i = 0; i < 2; ++i) session->start_plain({session->pair(), "spin", "40"});
    client = session->start({"--fifo", "50"}, {session->pair(), "client", session->path("sock")});
    ASSERT_TRUE(boosted());
  }
  void end() {
    session->raise("flag");
    EXPECT_EQ(session->wait(client), 0);
  }
  [[nodiscard]] bool boosted() const {
    return eventually([&] { return kernel_attr(server).policy == "fifo"; });
  }
  std::optional<Session> session;
  pid_t server = -1, client = -1;
};

TEST_P(Restart, TheSameProcessGoesOnWithWhatItManaged) {
  begin();
  const pid_t pid = session->daemon_pid();
  for (int round = 0; round < 3; ++round) {
    const Output done = session->ctl({"restart"});
    ASSERT_EQ(done.status, 0) << done.err;
    EXPECT_EQ(session->daemon_pid(), pid);
    EXPECT_EQ(session->json({"status"})["managed_processes"], 2);
    EXPECT_TRUE(boosted()) << session->ctl({"why"}).out;
  }
  // Of its guards there is one.
  EXPECT_TRUE(eventually([&] { return only_child(pid) > 0; }));
  end();
  EXPECT_EQ(session->stop(SIGTERM), 0) << "whoever started it sees one process";
}

TEST_P(Restart, WhatCannotStartAgainIsNotEnded) {
  begin({}, "[donation]\nceiling_share = 1.0\n");
  const pid_t pid = session->daemon_pid();
  std::ofstream(session->path("config.toml")) << "[donation]\nceilling_share = 1.0\n";
  const Output refused = session->ctl({"restart"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.err.find("refuses"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("nothing was changed"), std::string::npos) << refused.err;
  EXPECT_EQ(session->daemon_pid(), pid);
  EXPECT_EQ(session->json({"status"})["managed_processes"], 2);
  // The server spins: a swapd that took a second to refuse, as a sanitizer's does, has seen that no boost helps it.
  const auto helps_or_says_why_not = [&] {
    return kernel_attr(server).policy == "fifo" || session->ctl({"why"}).out.find("no-progress") != std::string::npos;
  };
  EXPECT_TRUE(eventually(helps_or_says_why_not)) << session->ctl({"why"}).out;
  end();
}

// Nobody else would.
TEST_P(Restart, AGuardStartsSwapdAgain) {
  begin({"--respawn"});
  const pid_t first = session->daemon_pid();
  const auto written_down = [&](pid_t pid) {
    std::ifstream in(session->path("state") + "/members");
    std::string text;
    std::getline(in, text);
    return text.find("\"pid\":" + std::to_string(pid) + ",") != std::string::npos;
  };
  ASSERT_TRUE(eventually([&] { return written_down(server) && written_down(client); }));
  ::kill(first, SIGKILL);
  const auto another = [&] {
    const Output status = session->ctl({"status", "--json"});
    return status.status == 0 && session->daemon_pid() != first;
  };
  ASSERT_TRUE(eventually(another));
  const pid_t second = session->daemon_pid();
  EXPECT_TRUE(eventually([&] { return session->json({"status"})["managed_processes"] == 2; }));
  EXPECT_TRUE(boosted());
  end();
  // One that ends because it was told to stays away.
  ::kill(second, SIGTERM);
  EXPECT_TRUE(eventually([&] { return ::kill(second, 0) != 0; }));
  EXPECT_NE(session->ctl({"status"}).status, 0);
}

// A service manager holds the listeners as a third one. Nothing answers until it has started swapd again, and no call
// fails meanwhile.
TEST(DescriptorStore, SwapdAndItsGuardKilledAtOnceHarmNobody) {
  const std::string manager = SWAPD_SOURCE_DIR "/tests/programs/manager.py";
  const std::string notify = "/tmp/swapd-notify-" + std::to_string(::getpid());
  Session session({"--observe", "seccomp"}, "[observe]\nhistory = \"calls\"\n", {"/usr/bin/python3", manager, notify});
  if (!session.failure().empty()) GTEST_SKIP() << session.failure();
  const pid_t server = session.start({}, {session.pair(), "server", session.path("sock"), session.path("flag")});
  const pid_t client = session.start({"--fifo", "50"}, {session.pair(), "client", session.path("sock")});
  ASSERT_TRUE(eventually([&] { return session.json({"status"})["listeners"] == 2; }));
  const pid_t first = session.daemon_pid();
  const pid_t guard = only_child(first);
  ASSERT_GT(guard, 0);
  session.kill(first, SIGSTOP);
  session.kill(guard, SIGKILL);
  session.kill(first, SIGKILL);
  session.raise("flag");
  EXPECT_EQ(session.wait(client), 0);
  ASSERT_TRUE(eventually([&] { return session.ctl({"status"}).status == 0; }));
  EXPECT_NE(session.daemon_pid(), first);
  session.kill(server, SIGKILL);
  EXPECT_TRUE(eventually([&] { return session.json({"status"})["listeners"] == 0; }));
  ::unlink(notify.c_str());
}

INSTANTIATE_TEST_SUITE_P(observers, Restart, ::testing::Values("seccomp", "bpf"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace swapd::test
