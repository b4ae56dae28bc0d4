// Ways around a limit that are none: rings, pages, pipes, addresses in messages, signals that keep coming.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "shaping_session.h"
#include "sys/procfs/io_counters.h"

namespace swapd::test {
namespace {

class ShapingWays : public ShapingSession {
 protected:
  // The disk that the session's files are on.
  [[nodiscard]] std::string disk() const {
    const sys::BlockDevices devices;
    return "/dev/" + devices.name(*devices.find(session->dir()));
  }
  void drop_cache() const {
    const Fd file(::open(session->path("data").c_str(), O_RDONLY | O_CLOEXEC));
    ::fsync(file.get());
    ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  }
  [[nodiscard]] nlohmann::json device(const std::string& class_name, const std::string& name) const {
    const auto devices = shown(class_name)["devices"];
    for (const auto& one : devices)
      if (one["device"] == name) return one;
    return nullptr;
  }
};

// Of a ring it is not known before what it reads or writes, and where; the limit may be of one of these alone.
TEST_P(ShapingWays, ARingThatReadsKeepsToTheLimitOfADisk) {
  begin();
  must({"class", "create", "slow"});
  must({"class", "set", "slow", "--device", disk(), "--both", "4MiB", "--burst", "64KiB"});
  const Moved m = moved("slow", {"ring-read", "65536", "1.0", session->path("data"), "direct"});
  expect_limited(m, 4 * mib, 64 * kib, 256 * kib, "ring-read");
  const std::string name = std::filesystem::path(disk()).filename();
  // By the call, or by the ring's own threads after it.
  const auto counted = device("slow", name);
  EXPECT_GE(counted["read_bytes"].get<long long>() + counted["mapped_bytes"].get<long long>(), m.bytes - 256 * kib)
      << counted.dump();
}

// What would block is written by threads of the ring's own, after the call.
TEST_P(ShapingWays, ARingThatWritesKeepsToALimitOfWriting) {
  begin();
  must({"class", "create", "slow", "--write", "8MiB", "--burst", "64KiB"});
  const Moved m = moved("slow", {"ring-write", "65536", "1.0", session->path("to")});
  EXPECT_EQ(m.errors, 0);
  // What they are still at as the next call comes is owed.
  EXPECT_LE(static_cast<double>(m.bytes), 8.0 * mib * m.seconds + 1 * mib) << m.seconds << " s";
  EXPECT_GE(static_cast<double>(m.bytes), 4.0 * mib * m.seconds) << m.seconds << " s";
}

// One of 8 MiB asks for all of it, and moves what the pipe has room for.
TEST_P(ShapingWays, ASpliceIsChargedWhatThePipeHolds) {
  begin();
  must({"class", "create", "slow", "--both", "4MiB", "--burst", "64KiB"});
  const Moved m = moved("slow", {"splice", "8388608", "1.0", session->path("data")});
  expect_limited(m, 4 * mib, 64 * kib, 64 * kib, "splice");
}

TEST_P(ShapingWays, ReadingAheadIsChargedWhatTheDiskMoved) {
  begin();
  must({"class", "create", "slow", "--both", "4MiB", "--burst", "64KiB"});
  drop_cache();
  const Moved m = moved("slow", {"readahead", "131072", "48x", session->path("data")});  // 6 MiB
  EXPECT_EQ(m.errors, 0);
  EXPECT_GE(m.seconds, static_cast<double>(6 * mib - 64 * kib - 256 * kib) / (4.0 * mib));
}

// 6 MiB in small pieces: 2 MiB in all are taken for what the disk read ahead.
TEST_P(ShapingWays, MappedPagesBetweenSmallReadsArePaid) {
  begin();
  must({"class", "create", "slow", "--read", "2MiB", "--burst", "64KiB"});
  drop_cache();
  const Moved m = moved("slow", {"mapped", "131072", "48x", session->path("data")});
  EXPECT_EQ(m.errors, 0);
  EXPECT_GE(m.seconds, static_cast<double>((6 - 2) * mib - 64 * kib - 256 * kib) / (2.0 * mib));
}

// Whatever its next call is about.
TEST_P(ShapingWays, MappedPagesArePaidAtACallThatIsOnNoDisk) {
  begin();
  must({"class", "create", "slow"});
  must({"class", "set", "slow", "--device", disk(), "--read", "2MiB", "--burst", "64KiB"});
  drop_cache();
  const Moved m = moved("slow", {"mapped-null", "262144", "16x", session->path("data")});  // 4 MiB
  EXPECT_EQ(m.errors, 0);
  EXPECT_GE(m.seconds, static_cast<double>(4 * mib - 64 * kib - 512 * kib) / (2.0 * mib));
  EXPECT_GE(device("slow", std::filesystem::path(disk()).filename())["delayed_calls"], 4) << shown("slow").dump();
}

TEST_P(ShapingWays, AMessageIsOnTheLinkOfItsAddress) {
  begin();
  must({"class", "create", "slow"});
  must({"class", "set", "slow", "--device", "lo", "--both", "4MiB", "--burst", "64KiB"});
  Peer datagrams(SOCK_DGRAM, Peer::Does::takes);
  expect_limited(moved("slow", {"msg-send", "8192", "0.6", datagrams.port()}), 4 * mib, 64 * kib, 8 * kib, "msg-send");
}

// A timer that never stops is no way past a limit: what it lets go on early it does later each time.
TEST_P(ShapingWays, SignalsThatKeepComingLetFewCallsGoOn) {
  begin();
  const pid_t pid = start_delayed("1000000x");
  const auto calls = [&] { return shown("slow")["devices"][0]["calls"].get<long>(); };
  const long before = calls();
  // As in a blocking read, the first one ends the wait.
  std::atomic<bool> over{false};
  std::thread timer([&] {
    while (!over) {
      session->kill(pid, SIGUSR1);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));  // a timer, not a wait for something
    }
  });
  EXPECT_TRUE(eventually([&] { return calls() > before; }, std::chrono::seconds(2)));
  EXPECT_TRUE(eventually([&] { return calls() > before + 3; }));
  const auto begun = std::chrono::steady_clock::now();
  const long few = calls();
  EXPECT_TRUE(eventually([&] { return calls() > few + 1; }, std::chrono::seconds(30)));
  EXPECT_GE(std::chrono::steady_clock::now() - begun, std::chrono::milliseconds(800)) << "two of them";
  over = true;
  timer.join();
  // Another signal is one that has not come before: the call goes on for it at once, and what it says at its end is the
  // next one, which waits.
  EXPECT_TRUE(eventually([&] { return delayed(pid); }));
  const long last = calls();
  const auto sent = std::chrono::steady_clock::now();
  session->kill(pid, SIGTERM);
  EXPECT_TRUE(eventually([&] { return calls() > last; }));
  EXPECT_LT(std::chrono::steady_clock::now() - sent, std::chrono::milliseconds(800));
  session->kill(pid, SIGKILL);
  (void)session->wait(pid);
}

// What moves while there is no limit is nobody's; what was called before is in the sums.
TEST_P(ShapingWays, LimitsThatComeBackChargeNothingOfBetween) {
  begin();
  must({"class", "create", "slow", "--network", "--both", "1MiB", "--burst", "64KiB"});
  Peer takes(SOCK_STREAM, Peer::Does::takes);
  const pid_t pid = start("slow", "answer", {"tcp-send", "65536", "1000000x", takes.port()});
  ASSERT_TRUE(eventually([&] { return delayed(pid); }));
  must({"class", "set", "slow", "--network", "--both", "none"});
  const auto sent = [&] { return status_field(pid, "voluntary_ctxt_switches"); };
  const std::string then = sent();
  ASSERT_TRUE(eventually([&] { return !delayed(pid) && sent() != then; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // lets it move much; nothing depends on how much
  must({"class", "set", "slow", "--network", "--both", "1MiB", "--burst", "64KiB"});
  ASSERT_TRUE(eventually([&] { return delayed(pid); }));
  EXPECT_EQ(device("slow", "net:unknown"), nullptr) << shown("slow").dump();
  session->kill(pid, SIGTERM);
  EXPECT_EQ(session->wait(pid), 0);
}

// Nor do a ring's own threads.
TEST_P(ShapingWays, LimitsThatComeBackChargeNothingOfBetweenToRings) {
  begin();
  must({"class", "create", "slow", "--write", "1MiB", "--burst", "64KiB"});
  const pid_t pid = start("slow", "answer", {"ring-write", "65536", "1000000x", session->path("to")});
  ASSERT_TRUE(eventually([&] { return delayed(pid); }));
  must({"class", "set", "slow", "--write", "none"});
  const auto io = [&] { return sys::process_io("/proc", pid)->written_bytes; };
  const auto before = io();
  ASSERT_TRUE(eventually([&] { return io() > before + 64 * mib; })) << "unlimited";
  must({"class", "set", "slow", "--write", "1MiB", "--burst", "64KiB"});
  ASSERT_TRUE(eventually([&] { return delayed(pid); }));
  const std::string name = std::filesystem::path(disk()).filename();
  EXPECT_GE(device("slow", name)["tokens"], -8 * mib) << shown("slow").dump();
  session->kill(pid, SIGKILL);
  (void)session->wait(pid);
}

// Who is put into another class owes nothing there.
TEST_P(ShapingWays, WhatIsOwedStaysWithItsClass) {
  begin();
  must({"class", "create", "slow", "--both", "64KiB", "--burst", "64KiB"});
  must({"class", "create", "fast", "--both", "1GiB"});
  drop_cache();
  const pid_t pid = start("slow", "answer", {"mapped-null", "2097152", "4x", session->path("data")});
  ASSERT_TRUE(eventually([&] { return delayed(pid); }));
  must({"class", "join", "fast", std::to_string(pid)});
  session->kill(pid, SIGUSR1);  // the call that is held, for half a minute, is the old class's
  EXPECT_EQ(session->wait(pid, std::chrono::seconds(5)), 0) << shown("slow").dump();
}

// What a mapping has made dirty is paid once, as pages; to write it out moves nothing new.
TEST_P(ShapingWays, ToWriteOutIsNotPaidAgain) {
  begin();
  must({"class", "create", "slow", "--both", "1GiB", "--mode", "device"});
  drop_cache();
  const pid_t pid = start("slow", "answer", {"dirty-sync", "262144", "32x", session->path("data")});
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
  const auto io = sys::process_io("/proc", pid);
  EXPECT_EQ(session->wait(pid), 0);
  ASSERT_TRUE(io);
  const auto counted = device("slow", std::filesystem::path(disk()).filename());
  const auto charged = counted["read_bytes"].get<std::uint64_t>() + counted["written_bytes"].get<std::uint64_t>() +
                       counted["mapped_bytes"].get<std::uint64_t>();
  EXPECT_GE(io->written_bytes, 8 * mib);
  EXPECT_LE(charged, io->read_bytes + io->written_bytes) << counted.dump();
  EXPECT_GE(charged, io->written_bytes - mib) << counted.dump();
}

TEST_P(ShapingWays, WhatIsSplicedIntoAFileIsPaidOnce) {
  begin();
  must({"class", "create", "slow", "--both", "1GiB"});
  const Moved m = moved("slow", {"splice", "65536", "127x", session->path("data"), session->path("to")});
  EXPECT_EQ(m.errors, 0);
  const auto counted = device("slow", std::filesystem::path(disk()).filename());
  EXPECT_GE(counted["written_bytes"], m.bytes) << counted.dump();
  EXPECT_LE(counted["mapped_bytes"], mib) << counted.dump();
}

// What a call will receive nobody knows before: it is paid before the next one, however empty the bucket was not.
TEST_P(ShapingWays, WhatIsReceivedIsPaidBeforeTheNextCall) {
  begin();
  must({"class", "create", "slow"});
  must({"class", "set", "slow", "--network", "--both", "512KiB", "--burst", "64KiB"});
  Peer sends(SOCK_STREAM, Peer::Does::sends);
  const Moved m = moved("slow", {"tcp-receive", "262144", "4x", sends.port()});
  EXPECT_EQ(m.errors, 0);
  EXPECT_GE(m.seconds, static_cast<double>(m.bytes - 64 * kib - 256 * kib) / (512.0 * kib)) << m.bytes;
}

// Far below the limit calls are settled together, and none is lost.
TEST_P(ShapingWays, CallsFarBelowTheLimitAreAllCounted) {
  begin();
  must({"class", "create", "fast"});
  must({"class", "set", "fast", "--device", disk(), "--both", "64GiB"});
  const Moved m = moved("fast", {"write", "4096", "1003x", session->path("to")});
  EXPECT_EQ(m.errors, 0);
  const auto counted = device("fast", std::filesystem::path(disk()).filename());
  EXPECT_GE(counted["calls"], 1003) << counted.dump();
  EXPECT_LE(counted["calls"], 1003 + 20) << counted.dump();  // its answer, and what the shell wrote
  EXPECT_GE(counted["written_bytes"], 1003 * 4 * kib) << counted.dump();
  EXPECT_LE(counted["written_bytes"], 1003 * 4 * kib + 64 * kib) << counted.dump();
  EXPECT_EQ(counted["delayed_calls"], 0) << counted.dump();
}

INSTANTIATE_TEST_SUITE_P(observers, ShapingWays, ::testing::Values("seccomp", "bpf"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace swapd::test
