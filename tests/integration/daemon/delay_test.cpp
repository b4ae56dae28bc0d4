// Calls that are held: nobody is worse off in a delay than in a blocking read, whatever happens to swapd, to the limits
// and to whoever is held (docs/design.md, Shaping).
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "shaping_session.h"

namespace swapd::test {
namespace {

class Delay : public ShapingSession {};

TEST_P(Delay, ChangesHoldAtOnceForWhoIsHeld) {
  begin();
  const pid_t pid = start_delayed();
  must({"class", "set", "slow", "--both", "none"});
  EXPECT_TRUE(eventually([&] { return !delayed(pid); }, std::chrono::seconds(2)));
  EXPECT_EQ(session->wait(pid), 0);
  EXPECT_EQ(answer("slow").errors, 0);
}

TEST_P(Delay, OneThatIsReleasedGoesOn) {
  begin();
  const pid_t pid = start_delayed();
  must({"class", "set", "slow", "--both", "1KiB"});
  must({"class", "leave", std::to_string(pid)});
  // The call that it is held in was the old class's; what comes after it is free.
  must({"class", "remove", "slow"});
  EXPECT_EQ(session->wait(pid), 0);
  EXPECT_EQ(answer("slow").errors, 0);
}

// Its filter stays, and its parent is still in the class.
TEST_P(Delay, AReleasedProcessIsNotLimited) {
  begin();
  must({"class", "create", "slow", "--both", "1MiB", "--burst", "64KiB"});
  const std::string line =
      mover() + " read 65536 100000x " + session->path("data") + " & echo $! >" + session->path("pid") + "; wait";
  const pid_t shell = session->start({"--class", "slow"}, {"/bin/sh", "-c", line});
  pid_t child = 0;
  ASSERT_TRUE(eventually([&] { return static_cast<bool>(std::ifstream(session->path("pid")) >> child); }));
  ASSERT_TRUE(eventually([&] { return delayed(child); }));
  must({"release", std::to_string(child)});
  EXPECT_EQ(session->wait(shell, std::chrono::seconds(20)), 0) << "6 GB take more than an hour at its limit";
}

// ^C, a signal with a handler, a stop: as in a blocking read.
TEST_P(Delay, SignalsEndADelay) {
  begin();
  const pid_t pid = start_delayed();
  session->kill(pid, SIGUSR1);
  EXPECT_TRUE(
      eventually([&] { return !delayed(pid) || shown("slow")["devices"][0]["calls"] > 1; }, std::chrono::seconds(2)));
  ASSERT_TRUE(eventually([&] { return delayed(pid); }));
  session->kill(pid, SIGSTOP);
  EXPECT_TRUE(eventually([&] { return status_field(pid, "State").starts_with("T"); }, std::chrono::seconds(2)));
  session->kill(pid, SIGCONT);
  ASSERT_TRUE(eventually([&] { return delayed(pid); }));
  const auto sent = std::chrono::steady_clock::now();
  session->kill(pid, SIGINT);
  EXPECT_EQ(session->wait(pid, std::chrono::seconds(2)), 128 + SIGINT);
  EXPECT_LT(std::chrono::steady_clock::now() - sent, std::chrono::seconds(1));
  EXPECT_TRUE(eventually([&] { return session->json({"status"})["delayed_calls"] == 0; }));
}

// A call that sleeps uninterruptibly would keep its group from being frozen until it is over, which may be minutes.
TEST_P(Delay, AFreezerFreezes) {
  begin();
  const std::string v1 = "/sys/fs/cgroup/freezer", v2 = "/sys/fs/cgroup";
  const bool old = std::filesystem::exists(v1);
  if (!old && !std::filesystem::exists(v2 + "/cgroup.procs")) GTEST_SKIP() << "no cgroups that freeze";
  const std::string root = old ? v1 : v2, group = root + "/swapd-test-" + std::to_string(::getpid());
  const auto write = [](const std::string& file, const std::string& text) { std::ofstream(file) << text; };
  const auto freeze = [&](bool on) {
    write(group + (old ? "/freezer.state" : "/cgroup.freeze"), old ? (on ? "FROZEN" : "THAWED") : (on ? "1" : "0"));
  };
  const auto frozen = [&] {
    std::ifstream in(group + (old ? "/freezer.state" : "/cgroup.events"));
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    return text.find(old ? "FROZEN" : "frozen 1") != std::string::npos;
  };
  const pid_t pid = start_delayed();
  std::filesystem::create_directory(group);
  write(group + "/cgroup.procs", std::to_string(pid));
  freeze(true);
  EXPECT_TRUE(eventually(frozen, std::chrono::seconds(2)));
  freeze(false);
  EXPECT_TRUE(eventually([&] { return delayed(pid); })) << "and is held again";
  write(root + "/cgroup.procs", std::to_string(pid));
  std::filesystem::remove(group);
  session->kill(pid, SIGKILL);
}

// As gdb and strace attach.
TEST_P(Delay, ADebuggerStopsWhoIsHeld) {
  begin();
  const pid_t pid = start_delayed();
  const auto calls = [&] { return shown("slow")["devices"][0]["calls"].get<long>(); };
  const long before = calls();
  ASSERT_EQ(::ptrace(PTRACE_SEIZE, pid, 0, 0), 0) << std::strerror(errno);
  ASSERT_EQ(::ptrace(PTRACE_INTERRUPT, pid, 0, 0), 0);
  int status = 0;
  const auto stopped = [&] { return ::waitpid(pid, &status, __WALL | WNOHANG) == pid; };
  EXPECT_TRUE(eventually(stopped, std::chrono::seconds(2)));
  EXPECT_TRUE(WIFSTOPPED(status));
  EXPECT_EQ(::ptrace(PTRACE_CONT, pid, 0, 0), 0);
  // Being traced lifts no limit.
  EXPECT_TRUE(eventually([&] { return delayed(pid); }));
  EXPECT_LE(calls(), before + 2);
  session->kill(pid, SIGKILL);
}

TEST_P(Delay, AKilledSwapdHoldsNobodyLongAndTheNextOneHasTheLimits) {
  begin();
  const pid_t pid = start_delayed("1000000x");
  const long calls = shown("slow")["devices"][0]["calls"];
  EXPECT_GE(calls, 0);
  const auto written_down = [&] {
    std::ifstream in(session->path("state") + "/members");
    std::string text;
    std::getline(in, text);
    return text.find("\"pid\":" + std::to_string(pid) + ",") != std::string::npos;
  };
  ASSERT_TRUE(eventually(written_down));
  const auto read_chars = [&] {
    std::ifstream in("/proc/" + std::to_string(pid) + "/io");
    std::string key;
    long long value = 0;
    in >> key >> value;
    return value;
  };
  const long long before = read_chars();
  session->kill(session->daemon_pid(), SIGKILL);
  EXPECT_TRUE(eventually([&] { return read_chars() > before; }, std::chrono::seconds(2))) << "the guard serves it";
  session->start_again();
  ASSERT_EQ(session->failure(), "");
  EXPECT_EQ(shown("slow")["limits"][0]["value"], 64 * kib);
  // The earlier one's guard ends with the last call that it had to serve.
  const auto guards = [&] {
    return run({"/usr/bin/pgrep", "-fc", "swapd-guard [0-9]* " + session->path("state")}).out;
  };
  EXPECT_TRUE(eventually([&] { return guards() == "1\n"; })) << guards();
  EXPECT_TRUE(eventually([&] { return delayed(pid); })) << session->ctl({"ps"}).out;
  session->kill(pid, SIGKILL);
  EXPECT_TRUE(eventually([&] { return session->json({"status"})["delayed_calls"] == 0; }));
}

TEST_P(Delay, ARestartKeepsClassesAndMembers) {
  begin();
  const pid_t pid = start_delayed("1000000x");
  must({"restart"});
  EXPECT_TRUE(eventually([&] { return delayed(pid); })) << session->ctl({"ps"}).out;
  EXPECT_EQ(shown("slow")["origin"], "made");
  session->kill(pid, SIGKILL);
}

// Whoever holds an important thread up is not held up itself; what it moves it owes.
TEST_P(Delay, AFavouredProviderIsNotDelayed) {
  begin();
  must({"class", "create", "slow", "--both", "64KiB", "--burst", "64KiB"});
  const pid_t server =
      session->start({"--class", "slow"}, {session->pair(), "reader", session->path("sock"), session->path("data")});
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(session->path("sock")); }));
  // 32 MiB: eight minutes at its limit.
  const pid_t client = session->start({"--fifo", "50"}, {session->pair(), "client", session->path("sock")});
  EXPECT_EQ(session->wait(client, std::chrono::seconds(20)), 0) << session->ctl({"why", std::to_string(client)}).out;
  const auto device = shown("slow")["devices"][0];
  ASSERT_FALSE(device["debts"].empty()) << device.dump();
  EXPECT_GT(device["debts"][0]["bytes"], 28 * mib) << device.dump();
  EXPECT_GE(device["tokens"], -64 * kib) << "the others of its class have nothing to do with it: " << device.dump();
  // A class may say otherwise. (Its debt would hold the next call for minutes.)
  must({"class", "set", "slow", "--favoured-wait", "true"});
  const pid_t another = session->start({"--fifo", "50"}, {session->pair(), "client", session->path("sock")});
  ASSERT_TRUE(eventually([&] { return delayed(server); }));
  EXPECT_EQ(session->wait(another, std::chrono::seconds(1)), -1);
  session->kill(another, SIGKILL);
}

// Limits that change all the time, members that come and go.
TEST_P(Delay, ChangesUnderLoadLeaveNobodyBehind) {
  begin();
  must({"class", "create", "busy", "--both", "8MiB"});
  std::vector<pid_t> movers;
  for (int i = 0; i < 4; ++i)
    movers.push_back(start("busy", "m" + std::to_string(i), {"read", "16384", "10000000x", session->path("data")}));
  for (int changes = 0; changes < 100; ++changes) {
    const std::string rate = std::to_string(1 + changes % 16) + "MiB";
    must({"class", "set", "busy", "--both", changes % 7 == 6 ? "1GiB" : rate});
    if (changes % 5 == 4)
      must({"class", changes % 10 == 9 ? "join" : "leave", changes % 10 == 9 ? "busy" : std::to_string(movers[0]),
            changes % 10 == 9 ? std::to_string(movers[0]) : "--tree"});
  }
  long long all = 0, first = 0;
  for (std::size_t i = 0; i < movers.size(); ++i) {
    session->kill(movers[i], SIGTERM);
    EXPECT_EQ(session->wait(movers[i], std::chrono::seconds(10)), 0);
    const Moved m = answer("m" + std::to_string(i));
    EXPECT_EQ(m.errors, 0);
    if (i == 0) first = m.bytes;
    all += m.bytes;
  }
  // The first one was out of it now and then; and what reads a program counts.
  const long long counted = shown("busy")["devices"][0]["read_bytes"];
  EXPECT_GE(counted, all - first);
  EXPECT_LE(counted, all + 256 * kib);
  EXPECT_EQ(session->json({"status"})["delayed_calls"], 0);
}

INSTANTIATE_TEST_SUITE_P(observers, Delay, ::testing::Values("seccomp", "bpf"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace swapd::test
