// I/O shaping of real programs: limits hold, and whoever is held is not worse off than in a blocking read (papers/004;
// DESIGN.md sections 7 and 8).
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/fd.h"
#include "session.h"
#include "sys/block_devices.h"

namespace swapd::test {
namespace {

constexpr long long mib = 1 << 20, kib = 1 << 10;

// What a mover says at its end.
struct Moved {
  long long bytes = -1;
  double seconds = 0;
  long calls = 0, errors = -1;
  double begun = 0;  // CLOCK_MONOTONIC
};

// The other side of a connection: takes what comes, or sends without end.
class Peer {
 public:
  enum class Does { takes, sends };
  Peer(int type, Does does)
      : socket_(::socket(AF_INET, type | SOCK_CLOEXEC, 0)), thread_([this, type, does] { run(type, does); }) {}
  ~Peer() {
    stop_ = true;
    ::shutdown(socket_.get(), SHUT_RDWR);
    if (const int other = connection_.load(); other >= 0) ::shutdown(other, SHUT_RDWR);
    thread_.join();
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  [[nodiscard]] std::string port() {
    while (port_ == 0) std::this_thread::yield();
    return std::to_string(port_);
  }

 private:
  void run(int type, Does does) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), size);
    if (type == SOCK_STREAM) ::listen(socket_.get(), 4);
    ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    const timeval look{.tv_sec = 0, .tv_usec = 50'000};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &look, sizeof look);
    port_ = ntohs(address.sin_port);
    std::vector<char> bytes(64 << 10);
    if (type == SOCK_DGRAM) {
      while (!stop_) (void)!::recv(socket_.get(), bytes.data(), bytes.size(), 0);
      return;
    }
    while (!stop_) {
      const Fd connection(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!connection) continue;
      connection_ = connection.get();
      while (!stop_) {
        const ssize_t n = does == Does::takes ? ::recv(connection.get(), bytes.data(), bytes.size(), 0)
                                              : ::send(connection.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (n <= 0) break;
      }
      connection_ = -1;
    }
  }
  Fd socket_;
  std::atomic<int> port_{0}, connection_{-1};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

class Shaping : public ::testing::TestWithParam<const char*> {
 protected:
  void begin(const std::string& config = "", std::vector<std::string> options = {}) {
    options.insert(options.end(), {"--observe", GetParam()});
    session.emplace(options, config);
    if (!session->failure().empty()) GTEST_SKIP() << session->failure();
    if (!sys::BlockDevices().find(session->dir())) GTEST_SKIP() << session->dir() << " is on no disk";
    std::ofstream out(session->path("data"));
    const std::string block(64 << 10, 'x');
    for (int i = 0; i < 128; ++i) out << block;  // 8 MiB
  }
  void must(const std::vector<std::string>& arguments) {
    const Output done = session->ctl(arguments);
    ASSERT_EQ(done.status, 0) << done.err;
  }
  [[nodiscard]] std::string mover() const { return std::filesystem::path(PAIR_PROGRAM).parent_path() / "mover"; }
  // Starts one in the class, its answer in a file.
  pid_t start(const std::string& class_name, const std::string& name, const std::vector<std::string>& words) {
    return session->start({"--class", class_name}, shell(name, words));
  }
  std::vector<std::string> shell(const std::string& name, const std::vector<std::string>& words) {
    std::string line = "exec " + mover();
    for (const std::string& word : words) line += " " + word;
    return {"/bin/sh", "-c", line + " >" + session->path(name)};
  }
  [[nodiscard]] Moved answer(const std::string& name) const {
    std::ifstream in(session->path(name));
    Moved out;
    in >> out.bytes >> out.seconds >> out.calls >> out.errors >> out.begun;
    return out;
  }
  Moved moved(const std::string& class_name, const std::vector<std::string>& words) {
    const pid_t pid = start(class_name, "answer", words);
    EXPECT_EQ(session->wait(pid), 0) << words.front();
    return answer("answer");
  }
  [[nodiscard]] nlohmann::json shown(const std::string& class_name) const {
    return session->json({"class", "show", class_name})["classes"][0];
  }
  [[nodiscard]] bool delayed(pid_t pid) const {
    const auto all = session->json({"ps"});
    for (const auto& thread : all["threads"])
      if (thread["tid"] == pid) return thread["state"] == "delayed";
    return false;
  }
  // One that has taken a minute's tokens with its first call and waits for its second.
  pid_t start_delayed(const std::string& count = "1000x") {
    must({"class", "create", "slow", "--both", "64KiB", "--burst", "64KiB"});
    const pid_t pid = start("slow", "slow", {"read", "4194304", count, session->path("data")});
    EXPECT_TRUE(eventually([&] { return delayed(pid); })) << session->ctl({"ps"}).out;
    return pid;
  }
  std::optional<Session> session;
};

// Never more than the burst, what the rate brings, and a block; and not much less.
void expect_limited(const Moved& m, long long rate, long long burst, long long block, const std::string& what) {
  EXPECT_EQ(m.errors, 0) << what;
  const double allowed = static_cast<double>(rate) * m.seconds;
  EXPECT_LE(static_cast<double>(m.bytes), allowed + static_cast<double>(burst + block))
      << what << ", " << m.seconds << " s";
  EXPECT_GE(static_cast<double>(m.bytes), allowed / 2) << what << ", " << m.seconds << " s";
}

TEST_P(Shaping, EveryWayKeepsToItsLimit) {
  begin();
  must({"class", "create", "slow", "--both", "4MiB", "--burst", "64KiB"});
  must({"class", "set", "slow", "--network", "--both", "4MiB", "--burst", "64KiB"});
  const std::string data = session->path("data"), to = session->path("to");
  for (const char* way : {"read", "pread", "readv", "write"})
    expect_limited(moved("slow", {way, "65536", "0.6", way == std::string("write") ? to : data}), 4 * mib, 64 * kib,
                   64 * kib, way);
  // Both legs are on one disk, and count.
  for (const char* way : {"sendfile", "copy"})
    expect_limited(moved("slow", {way, "65536", "0.6", data, to}), 2 * mib, 64 * kib, 128 * kib, way);
  Peer takes(SOCK_STREAM, Peer::Does::takes), sends(SOCK_STREAM, Peer::Does::sends),
      datagrams(SOCK_DGRAM, Peer::Does::takes);
  expect_limited(moved("slow", {"tcp-send", "65536", "0.6", takes.port()}), 4 * mib, 64 * kib, 64 * kib, "tcp-send");
  expect_limited(moved("slow", {"tcp-receive", "65536", "0.6", sends.port()}), 4 * mib, 64 * kib, 64 * kib,
                 "tcp-receive");
  expect_limited(moved("slow", {"udp-send", "8192", "0.6", datagrams.port()}), 4 * mib, 64 * kib, 8 * kib, "udp-send");
  const auto devices = shown("slow")["devices"];
  bool loopback = false;
  for (const auto& device : devices) loopback = loopback || device["device"] == "lo";
  EXPECT_TRUE(loopback) << devices.dump();
}

// The paper's classes: their members share what there is, and do not wait for another class's.
TEST_P(Shaping, MembersShareAndClassesDoNot) {
  begin();
  must({"class", "create", "one", "--both", "4MiB", "--burst", "64KiB"});
  must({"class", "create", "two", "--both", "4MiB", "--burst", "64KiB"});
  std::vector<pid_t> movers;
  for (const char* name : {"a", "b", "c"})
    movers.push_back(
        start(name == std::string("c") ? "two" : "one", name, {"read", "16384", "1", session->path("data")}));
  for (const pid_t pid : movers) EXPECT_EQ(session->wait(pid), 0);
  const Moved a = answer("a"), b = answer("b"), c = answer("c");
  // They need not have begun and ended together.
  const double all = std::max(a.begun + a.seconds, b.begun + b.seconds) - std::min(a.begun, b.begun);
  EXPECT_LE(static_cast<double>(a.bytes + b.bytes), 4.0 * mib * all + 96 * kib);
  EXPECT_GE(static_cast<double>(a.bytes + b.bytes), 2.0 * mib * std::max(a.seconds, b.seconds));
  expect_limited(c, 4 * mib, 64 * kib, 16 * kib, "c");
  // First come, first served: neither is starved.
  EXPECT_GT(a.bytes, (a.bytes + b.bytes) / 4);
  EXPECT_GT(b.bytes, (a.bytes + b.bytes) / 4);
}

TEST_P(Shaping, ReadingAndWritingApart) {
  begin();
  must({"class", "create", "apart", "--read", "2MiB", "--burst", "64KiB"});
  expect_limited(moved("apart", {"read", "65536", "0.5", session->path("data")}), 2 * mib, 64 * kib, 64 * kib, "read");
  const Moved written = moved("apart", {"write", "65536", "300x", session->path("to")});
  EXPECT_EQ(written.bytes, 300 * 65536) << "no limit of writing";
  EXPECT_EQ(shown("apart")["devices"][0]["written_bytes"], 300 * 65536);
}

TEST_P(Shaping, OperationsASecond) {
  begin();
  must({"class", "create", "few", "--operations", "100"});
  const Moved m = moved("few", {"pread", "512", "1", session->path("data")});
  EXPECT_LE(m.calls, 5 + static_cast<long>(100 * m.seconds) + 1);
  EXPECT_GE(m.calls, 50);
}

// The paper's RESOURCE mode: what comes from the page cache is free.
TEST_P(Shaping, InDeviceModeWhatIsCachedIsFree) {
  begin();
  must({"class", "create", "disk", "--read", "1MiB", "--mode", "device"});
  const Moved m = moved("disk", {"read", "65536", "512x", session->path("data")});
  EXPECT_EQ(m.bytes, 512 * 65536 - 3 * 65536) << "a round ends with an empty read";
  const auto device = shown("disk")["devices"][0];
  EXPECT_EQ(device["delayed_calls"], 0) << device.dump();
  EXPECT_GT(device["cached_bytes"], 30 * mib) << device.dump();
}

TEST_P(Shaping, AMappedFileIsPaidAtTheNextCall) {
  begin();
  must({"class", "create", "slow", "--read", "2MiB", "--burst", "64KiB", "--mode", "device"});
  const Fd file(::open(session->path("data").c_str(), O_RDONLY | O_CLOEXEC));
  ::fsync(file.get());
  ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  // 4 MiB, of which a burst is free, and what the last call has not paid for yet.
  const Moved m = moved("slow", {"mapped", "262144", "16x", session->path("data")});
  EXPECT_EQ(m.errors, 0);
  EXPECT_GE(m.seconds, static_cast<double>(4 * mib - 64 * kib - 256 * kib) / (2.0 * mib));
}

TEST_P(Shaping, ChangesHoldAtOnceForWhoIsHeld) {
  begin();
  const pid_t pid = start_delayed();
  must({"class", "set", "slow", "--both", "none"});
  EXPECT_TRUE(eventually([&] { return !delayed(pid); }, std::chrono::seconds(2)));
  EXPECT_EQ(session->wait(pid), 0);
  EXPECT_EQ(answer("slow").errors, 0);
}

TEST_P(Shaping, OneThatIsReleasedGoesOn) {
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
TEST_P(Shaping, AReleasedProcessIsNotLimited) {
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
TEST_P(Shaping, SignalsEndADelay) {
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

TEST_P(Shaping, AKilledSwapdHoldsNobodyLongAndTheNextOneHasTheLimits) {
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

TEST_P(Shaping, ARestartKeepsClassesAndMembers) {
  begin();
  const pid_t pid = start_delayed("1000000x");
  must({"restart"});
  EXPECT_TRUE(eventually([&] { return delayed(pid); })) << session->ctl({"ps"}).out;
  EXPECT_EQ(shown("slow")["origin"], "made");
  session->kill(pid, SIGKILL);
}

// The paper's could not.
TEST_P(Shaping, ARunningProcessJoins) {
  begin();
  must({"class", "create", "slow", "--both", "2MiB", "--burst", "64KiB"});
  const pid_t pid = session->start_plain(shell("answer", {"read", "65536", "2", session->path("data")}));
  ASSERT_TRUE(eventually([&] {
    return std::ifstream("/proc/" + std::to_string(pid) + "/comm").rdbuf() != nullptr &&
           status_field(pid, "Name") == "mover";
  }));
  const Output joined = session->ctl({"class", "join", "slow", std::to_string(pid)});
  ASSERT_EQ(joined.status, 0) << joined.err;
  EXPECT_TRUE(eventually([&] { return delayed(pid); }));
  EXPECT_EQ(session->wait(pid), 0);
  EXPECT_EQ(answer("answer").errors, 0);
  const auto device = shown("slow")["devices"][0];
  EXPECT_LE(device["read_bytes"], 2 * 2 * mib + 3 * 64 * kib) << device.dump();
  EXPECT_GT(device["delayed_calls"], 0);
}

TEST_P(Shaping, ChildrenJoinOrGetAClassOfTheirOwn) {
  begin();
  const std::string data = session->path("data");
  const std::string two = mover() + " read 65536 0.6 " + data + " >" + session->path("a") + " & " + mover() +
                          " read 65536 0.6 " + data + " >" + session->path("b") + "; wait";
  for (const bool own : {false, true}) {
    const std::string name = own ? "own" : "joined";
    must({"class", "create", name, "--both", "2MiB", "--burst", "64KiB", "--inherit", own ? "new" : "join"});
    EXPECT_EQ(session->wait(session->start({"--class", name}, {"/bin/sh", "-c", two})), 0);
    const Moved a = answer("a"), b = answer("b");
    const Moved both{a.bytes + b.bytes, std::max(a.seconds, b.seconds), 0, 0};
    expect_limited(both, own ? 4 * mib : 2 * mib, 256 * kib, 256 * kib, name);
    const auto devices = shown(name)["devices"];
    ASSERT_FALSE(devices.empty());
    EXPECT_GE(devices[0]["read_bytes"].get<long long>(), both.bytes / 2) << "what its own classes moved counts";
  }
}

// Whoever holds an important thread up is not held up itself; what it moves it owes.
TEST_P(Shaping, AFavouredProviderIsNotDelayed) {
  begin();
  must({"class", "create", "slow", "--both", "64KiB", "--burst", "64KiB"});
  const pid_t server =
      session->start({"--class", "slow"}, {session->pair(), "reader", session->path("sock"), session->path("data")});
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(session->path("sock")); }));
  // 32 MiB: eight minutes at its limit.
  const pid_t client = session->start({"--fifo", "50"}, {session->pair(), "client", session->path("sock")});
  EXPECT_EQ(session->wait(client, std::chrono::seconds(20)), 0) << session->ctl({"why", std::to_string(client)}).out;
  EXPECT_LT(shown("slow")["devices"][0]["tokens"], -30 * mib);
  // A class may say otherwise. (Its debt would hold the next call for minutes.)
  must({"class", "set", "slow", "--favoured-wait", "true"});
  const pid_t another = session->start({"--fifo", "50"}, {session->pair(), "client", session->path("sock")});
  ASSERT_TRUE(eventually([&] { return delayed(server); }));
  EXPECT_EQ(session->wait(another, std::chrono::seconds(1)), -1);
  session->kill(another, SIGKILL);
}

// Limits that change all the time, members that come and go.
TEST_P(Shaping, ChangesUnderLoadLeaveNobodyBehind) {
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

TEST_P(Shaping, WhatIsWrongIsSaidAndChangesNothing) {
  begin("[class.policy.io.disk]\nboth = \"10MiB\"\n");
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& why) {
    const Output done = session->ctl(arguments);
    EXPECT_EQ(done.status, 2) << done.err;
    EXPECT_NE(done.err.find(why), std::string::npos) << done.err;
    EXPECT_EQ(std::ranges::count(done.err, '\n'), 1) << done.err;
  };
  refused({"class", "set", "nobody", "--both", "1MiB"}, "no class 'nobody'");
  refused({"class", "set", "policy", "--both", "fast"}, "must be a size");
  refused({"class", "set", "policy", "--both", "0"}, "must be a size");
  refused({"class", "set", "policy", "--device", "/proc", "--both", "1MiB"}, "on no disk (proc)");
  refused({"class", "set", "policy", "--device", "no-such-link", "--both", "1MiB"}, "no network link");
  refused({"class", "create", "policy"}, "exists already");
  refused({"class", "create", "a b"}, "1 to 64 letters");
  refused({"class", "remove", "policy"}, "stands in the policy");
  refused({"run", "--class", "nobody", "--", "/bin/true"}, "no class 'nobody'");
  EXPECT_EQ(shown("policy")["limits"].size(), 1U);
  EXPECT_EQ(shown("policy")["limits"][0]["value"], 10 * mib);
  EXPECT_EQ(shown("policy")["origin"], "policy");
}

INSTANTIATE_TEST_SUITE_P(observers, Shaping, ::testing::Values("seccomp", "bpf"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace swapd::test
