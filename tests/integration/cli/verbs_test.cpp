// Each verb of the real swapctl against a server: what it prints, and its exit status.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/unix_address.h"
#include "fakes/bus_fixture.h"
#include "started.h"

namespace swapd::cli {
namespace {

using fakes::BusThread;
using fakes::FakeBackend;
using nlohmann::json;
using testing::HasSubstr;

struct Outcome {
  int status;
  std::string out, err;
};

class Verbs : public testing::Test {
 protected:
  Outcome swapctl(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {SWAPCTL, "--socket", bus_.path()});
    Started started(arguments, directory_.path());
    const int status = started.wait();
    return {status, started.out(), started.err()};
  }
  TemporaryDirectory directory_;
  BusThread bus_;
};

TEST_F(Verbs, ThatShow) {
  EXPECT_EQ(json::parse(swapctl({"status", "--json"}).out)["donations_total"], 17);
  EXPECT_EQ(json::parse(swapctl({"ps", "--json"}).out)["threads"].size(), 3U);
  EXPECT_EQ(json::parse(swapctl({"why", "100", "--json"}).out)["threads"][0]["tid"], 100);
  EXPECT_EQ(json::parse(swapctl({"graph", "--format", "json"}).out)["edges"].size(), 2U);
  EXPECT_EQ(json::parse(swapctl({"graph", "--json"}).out)["edges"].size(), 2U);
  EXPECT_THAT(swapctl({"status"}).out, HasSubstr("17 in all"));
  EXPECT_THAT(swapctl({"ps"}).out, HasSubstr("virtual-runnable"));
  EXPECT_THAT(swapctl({"why", "100"}).out, HasSubstr("donation: in force"));
  EXPECT_EQ(json::parse(swapctl({"policy", "show", "--json"}).out)["settings"].size(), 3U);
  EXPECT_EQ(swapctl({"policy", "show"}).out,
            "[model]\n"
            "confidence = 20                         # built-in\n"
            "\n"
            "[donation]\n"
            "strict = true                           # /etc/swapd/swapd.toml:3\n"
            "ceiling = 90                            # built-in\n");
  EXPECT_EQ(json::parse(swapctl({"class", "list", "--json"}).out)["classes"].size(), 4U);
  EXPECT_THAT(swapctl({"class", "show", "batch"}).out, HasSubstr("    300 job\n"));
  const Outcome no_class = swapctl({"class", "show", "nosuch"});
  EXPECT_EQ(no_class.status, 2);
  EXPECT_EQ(no_class.err, "swapctl: no class 'nosuch': `swapctl class list` has them\n");
  EXPECT_THAT(swapctl({"top"}).out, HasSubstr("virtual-runnable"));
  EXPECT_EQ(json::parse(swapctl({"top", "--json"}).out)["threads"].size(), 3U);
  const Outcome graph = swapctl({"graph"});
  EXPECT_EQ(graph.status, 0);
  EXPECT_EQ(graph.err, "");
  EXPECT_THAT(graph.out, HasSubstr("digraph"));
}

TEST_F(Verbs, ThatCommandAreSilent) {
  for (const std::vector<std::string>& command : {std::vector<std::string>{"set", "100", "--fifo", "7"},
                                                  {"set", "100", "--nice", "-5"},
                                                  {"set", "100", "--other"},
                                                  {"release", "100"},
                                                  {"thaw", "100"},
                                                  {"resume"},
                                                  {"pause"}}) {
    const Outcome outcome = swapctl(command);
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.out + outcome.err, "");
  }
  bus_.call([&] {
    ASSERT_EQ(bus_.backend().sets.size(), 3U);
    EXPECT_EQ(bus_.backend().sets[0].base, FakeBackend::fifo(7));
    EXPECT_EQ(bus_.backend().sets[1].base, FakeBackend::nice(-5));
    EXPECT_TRUE(bus_.backend().sets[1].nice_alone) << "classes stay";
    EXPECT_EQ(bus_.backend().sets[2].base, FakeBackend::nice(0));
    EXPECT_FALSE(bus_.backend().sets[2].nice_alone) << "ordinary ones, all of them";
    EXPECT_EQ(bus_.backend().released.size(), 1U);
    EXPECT_TRUE(bus_.backend().paused);
  });
}

// Whoever answers says what filter `run` installs.
TEST_F(Verbs, AnImpostorIsNotTalkedTo) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  const std::string path = directory_.path() + "/impostor";
  const pid_t impostor = ::fork();
  if (impostor == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const auto address = unix_address(path);
    const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    if (::setresuid(65534, 65534, 65534) != 0 || ::bind(fd, address->get(), address->size) != 0 || ::listen(fd, 5) != 0)
      ::_exit(1);
    for (;;) ::pause();
  }
  Outcome outcome{-1, "", ""};
  for (int tries = 0; tries < 1000; ++tries) {  // until it listens
    Started started({SWAPCTL, "--socket", path, "run", "--", "/bin/true"}, directory_.path());
    outcome = {started.wait(), started.out(), started.err()};
    if (outcome.status == 2) break;
  }
  ::kill(impostor, SIGKILL);
  ::waitpid(impostor, nullptr, 0);
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.err, "swapctl: who answers at " + path +
                             " is user 65534, neither root nor you: give the --socket PATH of a swapd\n");
}

TEST_F(Verbs, TheUsersMistakeIsTwoAndTheRestIsOne) {
  const Outcome unknown = swapctl({"why", "999"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_EQ(unknown.err, "swapctl: no managed process or thread has the id 999\n");
  EXPECT_EQ(swapctl({"release", "999"}).status, 2);
  EXPECT_EQ(swapctl({"set", "999", "--other"}).status, 2);
  const Outcome refused = swapctl({"enroll", "999"});
  EXPECT_EQ(refused.status, 1);
  EXPECT_EQ(refused.err, "swapctl: start the program with swapctl run\n");
}

TEST_F(Verbs, EventsEndAfterTheirCount) {
  Started events({SWAPCTL, "--socket", bus_.path(), "events", "--json", "--count", "3"}, directory_.path());
  ASSERT_TRUE(bus_.eventually([&] { return static_cast<bool>(bus_.backend().sink); }));
  bus_.call([&] {
    for (int i = 0; i < 5; ++i) bus_.backend().sink(FakeBackend::donation_begun());
  });
  EXPECT_EQ(events.wait(), 0);
  std::istringstream lines(events.out());
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_EQ(json::parse(line)["type"], "donation-begun");
  EXPECT_EQ(count, 3);
}

TEST_F(Verbs, EventsSayWhenSwapdEnds) {
  auto ending = std::make_unique<BusThread>();
  Started events({SWAPCTL, "--socket", ending->path(), "events"}, directory_.path());
  ASSERT_TRUE(ending->eventually([&] { return static_cast<bool>(ending->backend().sink); }));
  ending.reset();
  EXPECT_EQ(events.wait(), 1);
  EXPECT_THAT(events.err(), HasSubstr("closed the connection"));
}

TEST_F(Verbs, AFullDiskIsNoSuccess) {
  Started full({SWAPCTL, "--socket", bus_.path(), "ps"}, directory_.path(), [] {
    const int device = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
    ::dup2(device, 1);
  });
  EXPECT_EQ(full.wait(), 1);
  EXPECT_THAT(full.err(), HasSubstr("cannot write"));
}

TEST_F(Verbs, AStrangerIsToldThatTheSocketIsNotHis) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  ASSERT_EQ(::chmod(bus_.directory().c_str(), 0755), 0);
  const auto as_nobody = [&] {
    Started stranger({directory_.for_all(SWAPCTL), "--socket", bus_.path(), "status"}, directory_.path(), [] {
      if (::setgid(65534) < 0 || ::setuid(65534) < 0) ::_exit(98);
    });
    EXPECT_EQ(stranger.wait(), 1);
    return stranger.err();
  };
  EXPECT_THAT(as_nobody(), HasSubstr("only root and the owner of the socket may"));
  ASSERT_EQ(::chmod(bus_.path().c_str(), 0666), 0);
  EXPECT_THAT(as_nobody(), HasSubstr("refuses this user"));
}

TEST_F(Verbs, RecordWritesWhatComesUntilItIsInterrupted) {
  const std::string file = directory_.path() + "/a.rec";
  for (const bool as_json : {false, true}) {
    std::vector<std::string> arguments{SWAPCTL, "--socket", bus_.path(), "record", file};
    if (as_json) arguments.emplace_back("--json");
    Started started(arguments, directory_.path());
    ASSERT_TRUE(bus_.eventually([&] { return static_cast<bool>(bus_.backend().recorder); }));
    bus_.call([&] {
      EXPECT_TRUE(bus_.backend().recorder("{\"type\":\"header\"}\n{\"type\":\"exited\",\"t\":1}\n"));
      EXPECT_TRUE(bus_.backend().recorder("{\"type\":\"gap\",\"lost\":7}\n{\"type\":\"decided\"}\n"));
    });
    ::kill(started.pid(), SIGINT);
    EXPECT_EQ(started.wait(), 0) << started.err();
    if (as_json) {
      const json summary = json::parse(started.out());
      EXPECT_EQ(summary["events"], 1);
      EXPECT_EQ(summary["whole"], true);
    } else {
      EXPECT_EQ(started.out(), file + ": 1 events, 1 decisions, 7 lost\n");
    }
    EXPECT_EQ(
        content(file),
        "{\"type\":\"header\"}\n{\"type\":\"exited\",\"t\":1}\n{\"type\":\"gap\",\"lost\":7}\n{\"type\":\"decided\"}"
        "\n{\"type\":\"end\",\"events\":3,\"decisions\":2,\"lost\":0}\n");
    struct stat st {};
    ASSERT_EQ(::stat(file.c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 0777, 0600U) << "what programs wait for is not for everybody";
  }
}

TEST_F(Verbs, RecordEndsAfterItsTimeAndSaysWhatFails) {
  const std::string file = directory_.path() + "/a.rec";
  EXPECT_EQ(swapctl({"record", file, "--seconds", "0.05"}).status, 0);
  EXPECT_EQ(swapctl({"record"}).status, 2);
  EXPECT_EQ(swapctl({"record", file, "--seconds", "-1"}).status, 2);
  const Outcome nowhere = swapctl({"record", directory_.path() + "/none/a.rec"});
  EXPECT_EQ(nowhere.status, 1);
  EXPECT_THAT(nowhere.err, HasSubstr("cannot write " + directory_.path() + "/none/a.rec: No such file"));
  bus_.call([&] { ASSERT_TRUE(bus_.backend().record([](std::string_view) { return true; }).ok()); });
  const Outcome second = swapctl({"record", file});
  EXPECT_EQ(second.status, 1);
  EXPECT_EQ(second.err, "swapctl: a recording is under way\n");
}

}  // namespace
}  // namespace swapd::cli
