// Mapped files in a class that says `mapped = "freeze"`: whoever makes no call at which he could be held is frozen
// until he has paid, and nobody is left frozen.
#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "patience.h"
#include "shaping_session.h"
#include "sys/procfs/io_counters.h"
#include "sys/procfs/procfs.h"

namespace swapd::test {
namespace {

namespace fs = std::filesystem;

class Freeze : public ShapingSession {
 protected:
  void begin() {
    ShapingSession::begin();
    if (IsSkipped()) return;
    if (!fs::exists("/sys/fs/cgroup/freezer/cgroup.procs") && !fs::exists("/sys/fs/cgroup/cgroup.procs"))
      GTEST_SKIP() << "no cgroups that freeze";
    forget();
  }
  void fill(int mebibytes, const std::string& name = "data") const {
    std::ofstream out(session->path(name));
    const std::string block(mib, 'x');
    for (int i = 0; i < mebibytes; ++i) out << block;
  }
  // Its pages are on the disk alone.
  void forget(const std::string& name = "data") const {
    const Fd file(::open(session->path(name).c_str(), O_RDONLY | O_CLOEXEC));
    ::fsync(file.get());
    ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  }
  static std::string cgroups_of(pid_t pid) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/cgroup");
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static bool has_group(pid_t pid) { return cgroups_of(pid).find("/swapd-freeze-") != std::string::npos; }
  [[nodiscard]] std::string left_groups() const {
    std::ifstream in(session->path("state") + "/frozen");
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // One that has a minute to pay.
  pid_t start_frozen(int mebibytes = 64) {
    fill(mebibytes);
    forget();
    must({"class", "create", "slow", "--read", "32KiB", "--burst", "4KiB", "--mapped", "freeze"});
    const pid_t pid = start("slow", "slow", {"pages", "65536", "100000000x", session->path("data")});
    EXPECT_TRUE(eventually([&] { return has_group(pid) && delayed(pid); })) << session->ctl({"ps"}).out;
    return pid;
  }
  // It goes on: it uses CPU time.
  static bool runs(pid_t pid) {
    const auto used = [&] {
      const auto time = sys::Procfs().cpu_time(pid);
      return time ? *time : Duration::zero();
    };
    const Duration before = used();
    return eventually([&] { return used() > before; }, std::chrono::seconds(2));
  }
};

TEST_P(Freeze, AProgramThatMakesNoCallsKeepsToItsLimit) {
  begin();
  if (IsSkipped()) return;
  // An emulated processor reads no 16 MiB a second.
  const int rate = std::max(16 / patience(), 1), all = 4 * rate;
  must({"class", "create", "slow", "--read", std::to_string(rate) + "MiB", "--burst", "64KiB", "--mapped", "freeze"});
  fill(all);
  forget();
  const Moved m = moved("slow", {"pages", "65536", std::to_string(16 * all) + "x", session->path("data")});
  EXPECT_EQ(m.errors, 0);
  const auto device = shown("slow")["devices"][0];
  EXPECT_GE(device["read_bytes"].get<long long>() + device["mapped_bytes"].get<long long>(), all * mib * 8 / 10)
      << device.dump();
  EXPECT_GT(device["delayed_calls"], 0) << "frozen";
  // 4 s at the limit; what it moved before the first look and after the last one is not paid any more.
  EXPECT_GE(m.seconds, 3.0) << device.dump();
  EXPECT_TRUE(eventually([&] { return left_groups().empty(); })) << left_groups();
}

// Its pages are in memory already: it never waits, but for this.
TEST_P(Freeze, WhatIsWrittenCountsToo) {
  begin();
  if (IsSkipped()) return;
  must({"class", "create", "slow", "--write", "1MiB", "--burst", "64KiB", "--mapped", "freeze"});
  fill(64);
  forget();  // so that nothing is dirty
  const pid_t pid = start("slow", "slow", {"dirty", "65536", "100000000x", session->path("data")});
  EXPECT_TRUE(eventually([&] { return has_group(pid) && delayed(pid); })) << session->ctl({"ps"}).out;
  session->kill(pid, SIGKILL);
}

// The program had no filter when the class got its limit: it goes on without, as it does with calls.
TEST_P(Freeze, WhoHasNoGateIsNotFrozen) {
  begin();
  if (IsSkipped()) return;
  fill(256);
  forget();
  const pid_t pid = session->start({}, shell("free", {"pages", "65536", "100000000x", session->path("data")}));
  ASSERT_TRUE(eventually([&] { return status_field(pid, "Name") == "mover"; }));
  must({"class", "set", "default", "--read", "4KiB", "--burst", "4KiB", "--mapped", "freeze"});
  // One that has a filter is the sign that everybody has been looked at.
  fill(64, "other");
  forget("other");
  const pid_t other = session->start({}, shell("limited", {"pages", "65536", "100000000x", session->path("other")}));
  EXPECT_TRUE(eventually([&] { return has_group(other); }));
  EXPECT_FALSE(has_group(pid));
  EXPECT_TRUE(runs(pid));
  session->kill(pid, SIGKILL);
  session->kill(other, SIGKILL);
}

TEST_P(Freeze, ADebuggerEndsIt) {
  begin();
  if (IsSkipped()) return;
  const pid_t pid = start_frozen();
  ASSERT_EQ(::ptrace(PTRACE_SEIZE, pid, 0, 0), 0) << std::strerror(errno);
  EXPECT_TRUE(runs(pid));
  ASSERT_EQ(::ptrace(PTRACE_INTERRUPT, pid, 0, 0), 0);
  int status = 0;
  EXPECT_TRUE(eventually([&] { return ::waitpid(pid, &status, __WALL | WNOHANG) == pid; }, std::chrono::seconds(2)));
  ASSERT_EQ(::ptrace(PTRACE_DETACH, pid, 0, 0), 0);
  EXPECT_TRUE(eventually([&] { return delayed(pid); })) << "and then its limit holds again";
  session->kill(pid, SIGKILL);
}

// The gate does not charge again what has been paid.
TEST_P(Freeze, NothingIsPaidTwice) {
  begin();
  if (IsSkipped()) return;
  must({"class", "create", "slow", "--read", "16MiB", "--burst", "64KiB", "--mapped", "freeze", "--mode", "device"});
  fill(32);
  forget();
  const pid_t pid = start("slow", "answer", {"mapped", "4194304", "8x", session->path("data")});  // a call after each
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
  const auto io = sys::process_io("/proc", pid);  // what it has moved in its life
  EXPECT_EQ(session->wait(pid), 0);
  ASSERT_TRUE(io);
  EXPECT_EQ(answer("answer").errors, 0);
  const auto device = shown("slow")["devices"][0];
  const auto moved = static_cast<long long>(io->read_bytes + io->written_bytes);  // its answer is a page
  const auto mapped = device["mapped_bytes"].get<long long>();
  const long long charged = mapped + device["read_bytes"].get<long long>() + device["written_bytes"].get<long long>();
  EXPECT_GE(mapped, 8 * mib) << device.dump();
  EXPECT_LE(charged, moved) << device.dump();
  EXPECT_GE(charged, moved - 8 * mib) << device.dump();
}

TEST_P(Freeze, SignalsEndIt) {
  begin();
  if (IsSkipped()) return;
  const pid_t pid = start_frozen();
  session->kill(pid, SIGSTOP);
  EXPECT_TRUE(eventually([&] { return status_field(pid, "State").starts_with("T"); }, std::chrono::seconds(2)));
  session->kill(pid, SIGCONT);
  ASSERT_TRUE(eventually([&] { return delayed(pid); }));
  session->kill(pid, SIGINT);
  EXPECT_EQ(session->wait(pid, std::chrono::seconds(2)), 128 + SIGINT);
  EXPECT_TRUE(eventually([&] { return left_groups().empty(); })) << left_groups();
}

// As daemons do that take their signals from a descriptor: whoever would read it stands still.
TEST_P(Freeze, ASignalThatItBlocksEndsItToo) {
  begin();
  if (IsSkipped()) return;
  fill(64);
  forget();
  must({"class", "create", "slow", "--read", "32KiB", "--burst", "4KiB", "--mapped", "freeze"});
  const pid_t pid = session->start({"--class", "slow"}, {"/usr/bin/env", "--block-signal=TERM", mover(), "pages",
                                                         "65536", "100000000x", session->path("data")});
  ASSERT_TRUE(eventually([&] { return has_group(pid) && delayed(pid); })) << session->ctl({"ps"}).out;
  session->kill(pid, SIGTERM);
  EXPECT_TRUE(runs(pid));
  session->kill(pid, SIGKILL);
}

TEST_P(Freeze, OneThatLeavesIsBackWhereItWas) {
  begin();
  if (IsSkipped()) return;
  const pid_t pid = start_frozen();
  must({"class", "leave", std::to_string(pid)});
  EXPECT_TRUE(runs(pid));
  EXPECT_TRUE(eventually([&] { return !has_group(pid); }));
  session->kill(pid, SIGKILL);
}

TEST_P(Freeze, ASwapdThatStopsLeavesNobodyFrozen) {
  begin();
  if (IsSkipped()) return;
  const pid_t pid = start_frozen();
  EXPECT_EQ(session->stop(SIGTERM), 0);
  EXPECT_TRUE(runs(pid));
  EXPECT_FALSE(has_group(pid));
  session->kill(pid, SIGKILL);
}

// One that hangs, one that is killed: the guard ends the freeze, and the next swapd removes the group.
TEST_P(Freeze, TheGuardEndsItWhereSwapdDoesNot) {
  begin();
  if (IsSkipped()) return;
  const pid_t pid = start_frozen(256);  // so much that it has not seen all of it when the next swapd is there
  const pid_t daemon = session->daemon_pid();
  session->kill(daemon, SIGSTOP);
  EXPECT_TRUE(runs(pid));
  session->kill(daemon, SIGCONT);
  ASSERT_TRUE(eventually([&] { return delayed(pid); }));
  const auto written_down = [&] {
    std::ifstream in(session->path("state") + "/members");
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    return text.find("\"pid\":" + std::to_string(pid) + ",") != std::string::npos;
  };
  ASSERT_TRUE(eventually(written_down));
  session->kill(daemon, SIGKILL);
  EXPECT_TRUE(runs(pid));
  session->start_again();
  ASSERT_EQ(session->failure(), "");
  EXPECT_TRUE(eventually([&] { return has_group(pid) && delayed(pid); })) << "the limit holds again";
  session->kill(pid, SIGKILL);
  EXPECT_TRUE(eventually([&] { return left_groups().empty(); })) << left_groups();
}

INSTANTIATE_TEST_SUITE_P(observers, Freeze, ::testing::Values("seccomp", "bpf"),
                         [](const auto& instance) { return std::string(instance.param); });

}  // namespace
}  // namespace swapd::test
