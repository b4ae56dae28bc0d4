// I/O shaping of real programs: limits hold, in whatever way bytes are moved ([TAP08]; docs/design.md, Shaping).
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "shaping_session.h"

namespace swapd::test {
namespace {

class Shaping : public ShapingSession {};

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
  auto answers = std::filesystem::file_size(session->path("answer"));
  const Moved written = moved("apart", {"write", "65536", "300x", session->path("to")});
  EXPECT_EQ(written.bytes, 300 * 65536) << "no limit of writing";
  answers += std::filesystem::file_size(session->path("answer"));
  EXPECT_TRUE(eventually([&] { return shown("apart")["devices"][0]["written_bytes"] == 300 * 65536 + answers; }))
      << shown("apart").dump();
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
  // Now all is cached, the program too.
  ASSERT_EQ(run({mover(), "read", "65536", "512x", session->path("data")}).status, 0);
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

// A program's last read mostly finds the end of the file, and its last write is its own: neither is followed by a call
// that would settle it.
TEST_P(Shaping, ProgramsThatEndPayForWhatTheyHaveMoved) {
  begin();
  must({"class", "create", "short", "--both", "64KiB", "--burst", "32MiB"});
  std::ofstream(session->path("small")) << std::string(128 * kib, 'x');
  const auto run = [&](const std::string& command) {
    const std::string line = "i=0; while [ $i -lt 40 ]; do " + command + "; i=$((i + 1)); done";
    EXPECT_EQ(session->wait(session->start({"--class", "short"}, {"/bin/sh", "-c", line})), 0);
  };
  run("/bin/cat " + session->path("small") + " >/dev/null");
  nlohmann::json device;
  EXPECT_TRUE(eventually([&] {
    device = shown("short")["devices"][0];
    return device["tokens"] > (32 - 5) * mib - 512 * kib;
  })) << device.dump();
  EXPECT_GE(device["read_bytes"], 5 * mib);
  EXPECT_LE(device["read_bytes"], 5 * mib + 512 * kib) << "and its libraries' first bytes";
  EXPECT_EQ(device["delayed_calls"], 0);
  run("/bin/dd if=/dev/zero of=" + session->path("to") + " bs=64K count=1 status=none");
  EXPECT_TRUE(eventually([&] {
    device = shown("short")["devices"][0];
    return device["written_bytes"] == 40 * 64 * kib;
  })) << device.dump();
}

// Where each has a class of its own, what its last call has moved is in the sums of the class that they come from.
TEST_P(Shaping, WhoEndsLeavesItsSumsToTheClass) {
  begin();
  must({"class", "create", "each", "--both", "1GiB", "--inherit", "new"});
  const std::string line = "i=0; while [ $i -lt 20 ]; do /bin/dd if=/dev/zero of=" + session->path("to") +
                           " bs=64K count=1 status=none; i=$((i + 1)); done";
  EXPECT_EQ(session->wait(session->start({"--class", "each"}, {"/bin/sh", "-c", line})), 0);
  nlohmann::json device;
  EXPECT_TRUE(eventually([&] {
    device = shown("each")["devices"][0];
    return device["written_bytes"] == 20 * 64 * kib;
  })) << device.dump();
}

// A thread that execs takes over the id of its process's first one, which ends at that moment: each pays for its own.
TEST_P(Shaping, AThreadThatExecsPaysForItself) {
  begin();
  must({"class", "create", "once", "--both", "64KiB", "--burst", "32MiB"});
  const std::string read = mover() + " read 65536 ", data = " " + session->path("data");
  const std::string then = "unset MOVER_THEN; " + read + "16x" + data + " >/dev/null; exec " + read + "16x" + data;
  const std::string line =
      "MOVER_THEN='" + then + "' " + read + "96x" + data + " >/dev/null; " + read + "16x" + data + " >/dev/null";
  EXPECT_EQ(session->wait(session->start({"--class", "once"}, {"/bin/sh", "-c", line})), 0);
  nlohmann::json device;
  EXPECT_TRUE(eventually([&] {
    device = shown("once")["devices"][0];
    return device["tokens"] < (32 - 9) * mib + 128 * kib;
  })) << device.dump();
  EXPECT_GT(device["tokens"], (32 - 9) * mib - 512 * kib) << "libraries' first bytes, and what the rate brings";
  EXPECT_GE(device["read_bytes"], 9 * mib);
  EXPECT_LE(device["read_bytes"], 9 * mib + 512 * kib);
  EXPECT_EQ(device["delayed_calls"], 0);
}

// Killed while they are held, twenty have made no call, also where the gate hears of their ends first.
TEST_P(Shaping, WhoIsKilledInADelayOwesNothing) {
  begin();
  constexpr int many = 80;
  must({"class", "create", "few", "--operations", "16"});
  const std::string pread = mover() + " pread 512 ", data = " " + session->path("data") + " >/dev/null";
  std::string line;
  for (int i = 0; i < many; ++i) line += pread + "1000x" + data + " & ";
  const pid_t shell = session->start({"--class", "few"}, {"/bin/sh", "-c", line + "wait; exec " + pread + "1x" + data});
  std::vector<pid_t> held;
  ASSERT_TRUE(eventually([&] {
    held.clear();
    const auto all = session->json({"ps"});
    for (const auto& thread : all["threads"])
      if (thread["state"] == "delayed") held.push_back(thread["tid"]);
    return held.size() == many;
  })) << held.size();
  const auto killed = std::chrono::steady_clock::now();
  for (const pid_t pid : held) ::kill(pid, SIGKILL);
  EXPECT_EQ(session->wait(shell), 0);
  const auto took = std::chrono::steady_clock::now() - killed;
  EXPECT_LT(took, std::chrono::seconds(4))
      << "what it opens and reads takes a second or two; those of the killed took five";
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

// As on a kernel that has none: programs fall back.
TEST_P(Shaping, AClassWithoutRings) {
  begin();
  must({"class", "create", "ringless", "--both", "1GiB", "--io-uring", "false"});
  must({"class", "create", "ringed", "--both", "1GiB"});
  const std::string script =
      "import ctypes; c = ctypes.CDLL(None, use_errno=True); p = ctypes.create_string_buffer(120); "
      "r = c.syscall(425, 4, p); print(ctypes.get_errno() if r < 0 else 'ring')";
  const auto setup = [&](const std::string& name) {
    const pid_t pid = session->start(
        {"--class", name}, {"/bin/sh", "-c", "exec python3 -c \"" + script + "\" >" + session->path(name + "-says")});
    EXPECT_EQ(session->wait(pid), 0);
    std::string said;
    std::ifstream(session->path(name + "-says")) >> said;
    return said;
  };
  EXPECT_EQ(setup("ringless"), std::to_string(ENOSYS));
  EXPECT_EQ(setup("ringed"), setup("default")) << "as without swapd";
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
