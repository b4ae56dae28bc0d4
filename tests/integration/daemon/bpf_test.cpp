// What the bpf observer alone can do: take in what runs already, whatever filters it has; and what swapd does where it
// is not to be had.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "session.h"

namespace swapd::test {
namespace {

std::string status_field(pid_t pid, const std::string& key) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(key + ":")) return line.substr(line.find_first_not_of(" \t", key.size() + 1));
  return "";
}

class Enroll : public ::testing::Test {
 protected:
  void SetUp() override {
    session.emplace(std::vector<std::string>{"--observe", "bpf"});
    if (!session->failure().empty()) GTEST_SKIP() << session->failure();
  }
  // Two plain programs, which nobody has asked swapd for.
  void start_plain() {
    server = session->start_plain({session->pair(), "server", session->path("sock"), session->path("flag")});
    for (int i = 0; i < 2; ++i) session->start_plain({session->pair(), "spin", "40"});
    client = session->start_plain({"/usr/bin/chrt", "-f", "50", session->pair(), "client", session->path("sock")});
    ASSERT_TRUE(eventually([&] { return blocked_in(client, SYS_read); })) << "the client never waited";
  }
  std::string enroll(pid_t pid, std::vector<std::string> options = {}) {
    std::vector<std::string> words{"enroll", std::to_string(pid)};
    words.insert(words.end(), options.begin(), options.end());
    const Output done = session->ctl(words);
    return done.status == 0 ? "" : std::to_string(done.status) + ": " + done.err;
  }
  bool boosted() {
    return eventually([&] { return kernel_attr(server).policy == "fifo"; });
  }
  std::optional<Session> session;
  pid_t server = -1, client = -1;
};

TEST_F(Enroll, WhatWaitsAlreadyIsHelpedAndReleasedWithoutATrace) {
  start_plain();
  EXPECT_EQ(enroll(server), "");
  EXPECT_EQ(enroll(client), "");
  EXPECT_TRUE(boosted()) << session->ctl({"why"}).out << session->ctl({"ps"}).out;
  EXPECT_EQ(session->json({"status"})["listeners"], 0);
  for (const pid_t pid : {client, server}) EXPECT_EQ(session->ctl({"release", std::to_string(pid)}).status, 0);
  EXPECT_TRUE(eventually([&] { return kernel_attr(server).policy == "other"; }));
  EXPECT_TRUE(eventually([&] {
    const auto s = session->json({"status"});
    return s["managed_threads"] == 0 && s["managed_processes"] == 0 && s["resources"] == 0;
  })) << session->json({"status"});
  EXPECT_EQ(status_field(server, "Seccomp"), "0");
  EXPECT_EQ(status_field(server, "TracerPid"), "0");
  EXPECT_EQ(status_field(server, "NoNewPrivs"), "0");
  session->raise("flag");
  EXPECT_EQ(session->wait(client), 0);
}

TEST_F(Enroll, AgainAfterARelease) {
  start_plain();
  for (int round = 0; round < 3; ++round) {
    for (const pid_t pid : {server, client}) ASSERT_EQ(enroll(pid), "");
    ASSERT_TRUE(boosted()) << "round " << round;
    ASSERT_EQ(session->ctl({"release", std::to_string(client)}).status, 0);
    ASSERT_TRUE(eventually([&] { return kernel_attr(server).policy == "other"; })) << "round " << round;
  }
}

TEST_F(Enroll, AProgramWithAFilterOfItsOwn) {
  const pid_t filtered = ::fork();
  if (filtered == 0) {
    sock_filter allow[] = {{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
    const sock_fprog program{1, allow};
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    for (;;) ::pause();
  }
  EXPECT_TRUE(eventually([&] { return status_field(filtered, "Seccomp") == "2" && blocked_in(filtered, SYS_pause); }));
  EXPECT_EQ(enroll(filtered), "");
  EXPECT_EQ(session->json({"status"})["managed_processes"], 1);
  session->kill(filtered, SIGKILL);
  EXPECT_TRUE(eventually([&] { return session->json({"status"})["managed_processes"] == 0; }));
}

TEST_F(Enroll, ATreeWithItsDescendantsAndThoseToCome) {
  const pid_t shell = session->start_plain(
      {"/bin/sh", "-c",
       "sleep 100 & (sleep 101 & wait) & until [ -e " + session->path("more") + " ]; do sleep 0.05; done; sleep 102"});
  ASSERT_TRUE(eventually([&] { return !only_child(shell) || thread_count(shell) == 1; }));
  EXPECT_EQ(enroll(shell), "");
  const auto managed = [&] { return session->json({"status"})["managed_processes"].get<int>(); };
  EXPECT_LE(managed(), 2);  // itself, and at most the nap it is in now
  EXPECT_EQ(enroll(shell, {"--tree"}), "");
  EXPECT_TRUE(eventually([&] { return managed() >= 4; })) << session->ctl({"ps"}).out;
  session->raise("more");
  const auto sleeps = [&](const std::string& seconds) {
    const auto ps = session->json({"ps"});
    for (const auto& thread : ps["threads"]) {
      std::ifstream in("/proc/" + std::to_string(thread["pid"].get<int>()) + "/cmdline");
      std::string line;
      std::getline(in, line);
      if (line.find(seconds) != std::string::npos && line.find("sh") == std::string::npos) return true;
    }
    return false;
  };
  for (const char* seconds : {"100", "101", "102"})
    EXPECT_TRUE(eventually([&] { return sleeps(seconds); })) << seconds << "\n" << session->ctl({"ps"}).out;
  const auto ps = session->json({"ps"});
  for (const auto& thread : ps["threads"])
    if (thread["pid"] != shell) ::kill(thread["pid"].get<int>(), SIGKILL);
  session->kill(shell, SIGKILL);
  EXPECT_TRUE(eventually([&] { return managed() == 0; })) << session->ctl({"ps"}).out;
}

// Its parent has ended before anybody has looked.
TEST_F(Enroll, AProgramThatGoesIntoTheBackground) {
  const pid_t shell =
      session->start({}, {"/bin/sh", "-c", "(sleep 103 & echo $! >" + session->path("pid") + "); exec sleep 104"});
  pid_t background = 0;
  EXPECT_TRUE(eventually([&] { return static_cast<bool>(std::ifstream(session->path("pid")) >> background); }));
  EXPECT_TRUE(eventually([&] {
    const auto ps = session->json({"ps"});
    return std::ranges::any_of(ps["threads"], [&](const auto& thread) { return thread["pid"] == background; });
  })) << background
      << "\n"
      << session->ctl({"ps"}).out;
  EXPECT_EQ(session->json({"status"})["managed_processes"], 2) << session->ctl({"ps"}).out;
  ::kill(background, SIGKILL);
  session->kill(shell, SIGKILL);
  EXPECT_TRUE(eventually([&] { return session->json({"status"})["managed_processes"] == 0; }));
}

TEST_F(Enroll, WhatTheMachineStandsOnIsRefused) {
  for (const pid_t pid : {1, 2, session->daemon_pid(), only_child(session->daemon_pid())}) {
    const Output refused = session->ctl({"enroll", std::to_string(pid)});
    EXPECT_EQ(refused.status, 2) << pid;
    EXPECT_NE(refused.err.find("never supervises"), std::string::npos) << refused.err;
    EXPECT_EQ(std::ranges::count(refused.err, '\n'), 1) << refused.err;
  }
  EXPECT_EQ(session->ctl({"enroll", "4000000"}).status, 2);
  EXPECT_EQ(session->ctl({"enroll", "--class", "nosuch", std::to_string(::getpid())}).status, 2);
  EXPECT_EQ(session->json({"status"})["managed_threads"], 0);
}

TEST_F(Enroll, ARunNeedsNoFilter) {
  const Output out = session->ctl({"run", "--", "/bin/grep", "Seccomp:", "/proc/self/status"});
  EXPECT_EQ(out.out, "Seccomp:\t0\n") << out.err;
  const Output other = session->ctl({"run", "--observe", "seccomp", "--", "/bin/true"});
  EXPECT_EQ(other.status, 2);
  EXPECT_NE(other.err.find("observes with bpf"), std::string::npos) << other.err;
}

// Write-back is a worker's: whoever waits for it …
class KernelWork : public ::testing::Test {
 protected:
  void begin(const std::string& policy) {
    session.emplace(std::vector<std::string>{"--observe", "bpf"}, policy);
    if (!session->failure().empty()) GTEST_SKIP() << session->failure();
    file = "/var/tmp" / std::filesystem::path(session->dir()).filename();  // on a disk
    below = session->start({}, {session->pair(), "spin", "40"});           // else it has nobody to lend to
    client = session->start({"--fifo", "50"}, {session->pair(), "sync", file, session->path("flag")});
    ASSERT_TRUE(eventually([&] { return session->json({"status"})["managed_processes"] >= 2; }));
  }
  void TearDown() override { std::filesystem::remove(file); }
  void end() {
    session->raise("flag");
    EXPECT_EQ(session->wait(client), 0);
  }
  bool waits_for_kernel_work() {
    return eventually([&] {
      const auto why = session->json({"why", std::to_string(client)});
      for (const auto& thread : why["threads"])
        for (const auto& wait : thread["waiting_for"])
          if (wait["kind"] == "kernel-work") return true;
      return false;
    });
  }
  // Among what swapctl ps shows.
  std::vector<pid_t> kernel_threads() {
    std::vector<pid_t> out;
    const auto ps = session->json({"ps"});
    for (const auto& thread : ps["threads"])
      if (const pid_t pid = thread["pid"]; status_field(pid, "VmSize").empty()) out.push_back(pid);
    return out;
  }

  std::optional<Session> session;
  std::filesystem::path file;
  pid_t client = -1, below = -1;
};

// … lends nothing, …
TEST_F(KernelWork, IsNotLentFor) {
  begin("");
  EXPECT_TRUE(waits_for_kernel_work());
  EXPECT_EQ(kernel_threads(), std::vector<pid_t>{});
  EXPECT_EQ(session->json({"status"})["donations_total"], 0);
  end();
}

// … unless the policy says so.
TEST_F(KernelWork, IsLentForWhereThePolicySaysSo) {
  begin("[model.kernel-work]\ncounts = true\n");
  EXPECT_TRUE(eventually([&] { return session->json({"status"})["donations_total"] > 0; }))
      << session->ctl({"why"}).out;
  const auto managed = kernel_threads();
  EXPECT_FALSE(managed.empty()) << session->ctl({"ps"}).out;
  end();
  session->kill(below, SIGKILL);
  EXPECT_TRUE(eventually([&] { return session->json({"status"})["managed_processes"] == 0; }))
      << "who works for nobody is let go";
  EXPECT_EQ(session->stop(SIGINT), 0);
  for (const pid_t thread : managed) EXPECT_EQ(kernel_attr(thread).policy, "other") << thread;
}

// swapd and all its programs in a pid namespace of their own: this program again, as its first process.
TEST(PidNamespace, WaitsAreSeenAndHelpedThere) {
  const Output inside = run_in_pid_namespace("Enroll.WhatWaits*:Enroll.ATree*:Enroll.ARun*", std::chrono::seconds(60));
  if (inside.err.find("unshare failed") != std::string::npos) GTEST_SKIP() << inside.err;
  EXPECT_EQ(inside.status, 0) << inside.out << inside.err;
  EXPECT_NE(inside.out.find("[  PASSED  ] 3 tests"), std::string::npos) << inside.out;
}

struct Lack {
  const char* name;
  std::vector<std::string> before;   // who starts swapd
  std::vector<std::string> options;  // of swapd
  const char* said;
};
void PrintTo(const Lack& lack, std::ostream* out) { *out << lack.name; }

class Fallback : public ::testing::TestWithParam<Lack> {};

TEST_P(Fallback, ToSeccompAndSaysWhy) {
  std::vector<std::string> options = GetParam().options;
  options.insert(options.end(), {"--observe", "auto"});
  Session session(options, "", GetParam().before);
  if (!session.failure().empty()) GTEST_SKIP() << session.failure();
  const auto status = session.json({"status"});
  EXPECT_EQ(status["observer"], "seccomp");
  EXPECT_NE(status["observer_reason"].get<std::string>().find(GetParam().said), std::string::npos) << status;
  const pid_t server = session.start({}, {session.pair(), "server", session.path("sock"), session.path("flag")});
  for (int i = 0; i < 2; ++i) session.start_plain({session.pair(), "spin", "40"});
  const pid_t client = session.start({"--fifo", "50"}, {session.pair(), "client", session.path("sock")});
  EXPECT_TRUE(eventually([&] { return kernel_attr(server).policy == "fifo"; })) << session.ctl({"why"}).out;
  session.raise("flag");
  EXPECT_EQ(session.wait(client), 0);
}

TEST_P(Fallback, AskedForItEndsWithOneLine) {
  std::vector<std::string> argv = GetParam().before;
  const std::string dir = std::filesystem::temp_directory_path() / ("swapd-lack-" + std::to_string(::getpid()));
  argv.insert(argv.end(),
              {SWAPD_BINARY, "--foreground", "--observe", "bpf", "--socket", dir + "/s", "--state-dir", dir});
  argv.insert(argv.end(), GetParam().options.begin(), GetParam().options.end());
  const Output out = run(argv);
  std::filesystem::remove_all(dir);
  EXPECT_EQ(out.status, 1);
  EXPECT_NE(out.err.find("--observe bpf: "), std::string::npos) << out.err;
  EXPECT_NE(out.err.find(GetParam().said), std::string::npos) << out.err;
}

INSTANTIATE_TEST_SUITE_P(
    Without, Fallback,
    ::testing::Values(
        Lack{"CapBpf", {"/usr/bin/setpriv", "--bounding-set", "-bpf", "--inh-caps", "-bpf"}, {}, "CAP_BPF"},
        Lack{"CapPerfmon",
             {"/usr/bin/setpriv", "--bounding-set", "-perfmon", "--inh-caps", "-perfmon"},
             {},
             "CAP_PERFMON"},
        Lack{"Btf", {}, {"--btf", "/no/such/file"}, "no BTF"}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace swapd::test
