// A real inversion is recorded by the real swapctl from the real swapd, and decided again without either: the same
// bytes each time, and the same favoured providers as in the live run.
#include <sys/syscall.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "session.h"

namespace swapd::test {
namespace {

class Record : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    session.emplace(std::vector<std::string>{"--observe", GetParam()});
    if (!session->failure().empty()) GTEST_SKIP() << session->failure();
    file = session->path("a.rec");
  }
  // `swapctl record`; returns when the recording has begun.
  pid_t record() {
    std::filesystem::remove(file);
    const pid_t recorder = session->start_plain({SWAPCTL_BINARY, "--socket", session->path("s"), "record", file});
    EXPECT_TRUE(eventually([&] {
      std::error_code none;
      return std::filesystem::file_size(file, none) > 0 && !none;
    })) << "the recording never began";
    return recorder;
  }
  void start_server() {
    server = session->start({}, {session->pair(), "server", session->path("sock"), session->path("flag")});
    for (int i = 0; i < 2; ++i) session->start_plain({session->pair(), "spin", "40"});
  }
  pid_t start_client(const std::string& socket = "sock") {
    const pid_t client = session->start({"--fifo", "50"}, {session->pair(), "client", session->path(socket)});
    EXPECT_TRUE(eventually([&] { return blocked_in(client, SYS_read); })) << "the client never waited";
    return client;
  }
  bool boosted() {
    return eventually([&] { return kernel_attr(server).policy == "fifo" && kernel_attr(server).rt_priority == 49; });
  }
  // The favoured provider, as the live swapd says.
  pid_t live_favoured(pid_t client) {
    const auto why = session->json({"why", std::to_string(client)});
    for (const auto& thread : why["threads"])
      for (const auto& wait : thread["waiting_for"])
        for (const auto& provider : wait["providers"])
          if (provider["favoured"] == true) return provider["tid"];
    return -1;
  }
  // The lines of `swapd --replay --json`; the same ones, and exit status 0, each time.
  std::vector<nlohmann::json> replay() const {
    const Output first = run({SWAPD_BINARY, "--replay", file, "--json"});
    const Output second = run({SWAPD_BINARY, "--replay", file, "--json"});
    EXPECT_EQ(first.status, 0) << first.out << first.err;
    EXPECT_EQ(first.err, "");
    EXPECT_EQ(first.out, second.out);
    EXPECT_EQ(second.status, 0);
    std::vector<nlohmann::json> lines;
    std::istringstream in(first.out);
    for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }
  // The leaves that were favoured for the client, in order.
  static std::vector<pid_t> favoured(const std::vector<nlohmann::json>& lines, pid_t client) {
    std::vector<pid_t> found;
    for (const auto& line : lines)
      if (line["type"] == "decision" && line["requester"] == client) found.push_back(line["path"].back());
    return found;
  }

  std::optional<Session> session;
  std::string file;
  pid_t server = -1;
};

TEST_P(Record, an_inversion_from_its_begin_is_decided_again_as_it_was) {
  const pid_t recorder = record();
  start_server();
  const pid_t client = start_client();
  ASSERT_TRUE(boosted());
  const pid_t live = live_favoured(client);
  EXPECT_EQ(live, server) << session->ctl({"why", std::to_string(client), "--json"}).out;
  session->raise("flag");
  EXPECT_EQ(session->wait(client), 0);
  ASSERT_TRUE(eventually([&] { return kernel_attr(server).policy == "other"; }));
  session->kill(recorder, SIGINT);
  EXPECT_EQ(session->wait(recorder), 0);

  const auto lines = replay();
  ASSERT_GE(lines.size(), 3U);
  const auto& summary = lines.back();
  EXPECT_EQ(summary["type"], "summary");
  EXPECT_EQ(summary["end"], "whole");
  EXPECT_EQ(summary["lost"], 0);
  EXPECT_EQ(summary["differing"], 0);
  EXPECT_GT(summary["events"], 4);
  ASSERT_FALSE(favoured(lines, client).empty());
  EXPECT_EQ(favoured(lines, client).front(), live);
  EXPECT_EQ(lines.front()["rt_priority"], 49);
  EXPECT_EQ(lines.at(lines.size() - 2)["type"], "ended");
  EXPECT_EQ(run({SWAPD_BINARY, "--replay", file}).status, 0);
}

TEST_P(Record, from_the_middle_of_a_wait_on_and_until_swapd_ends) {
  start_server();
  const pid_t relay = session->start({}, {session->pair(), "relay", session->path("r"), session->path("sock")});
  const pid_t client = start_client("r");
  ASSERT_TRUE(boosted());  // behind the relay
  const pid_t recorder = record();
  // The snapshot has the wait, and the next decision is made from it.
  ASSERT_TRUE(eventually([&] {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);)
      if (line.find("\"type\":\"granted\"") != std::string::npos) return true;
    return false;
  }));
  EXPECT_EQ(session->stop(SIGTERM), 0);
  EXPECT_EQ(session->wait(recorder), 0) << "swapd ended the recording before it went";

  const auto lines = replay();
  EXPECT_EQ(lines.back()["end"], "whole");
  ASSERT_FALSE(favoured(lines, client).empty());
  EXPECT_EQ(favoured(lines, client).front(), server);
  EXPECT_EQ(lines.front()["path"], nlohmann::json::array({relay, server}));
}

TEST_P(Record, a_recorder_that_is_killed_leaves_a_good_beginning_and_swapd_alone) {
  const pid_t recorder = record();
  start_server();
  const pid_t client = start_client();
  ASSERT_TRUE(boosted());
  session->kill(recorder, SIGKILL);
  session->raise("flag");
  EXPECT_EQ(session->wait(client), 0);
  EXPECT_NE(replay().back()["end"], "whole");
  const pid_t again = record();
  session->kill(again, SIGTERM);
  EXPECT_EQ(session->wait(again), 0) << "another one can begin";
}

INSTANTIATE_TEST_SUITE_P(observers, Record, ::testing::Values("seccomp", "bpf"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace swapd::test
