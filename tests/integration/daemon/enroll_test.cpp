// Programs that run already are taken in, under both observers: bpf needs nothing from them, seccomp installs its
// filter.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <fstream>
#include <iterator>

#include "session.h"

namespace swapd::test {
namespace {

class Enroll : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    session.emplace(std::vector<std::string>{"--observe", GetParam()});
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
  [[nodiscard]] static bool filters() { return std::string(GetParam()) == "seccomp"; }
  std::optional<Session> session;
  pid_t server = -1, client = -1;
};

// All that swapd may change of a thread, as the kernel has it: scheduling with its flags and slice, I/O priority, the
// CPUs, the autogroup's nice value and the cgroup.
std::string of_kernel(pid_t pid) {
  std::array<unsigned char, 64> attr{};  // struct sched_attr
  if (::syscall(SYS_sched_getattr, pid, attr.data(), attr.size(), 0) != 0) return "gone";
  std::string out;
  for (const unsigned char byte : attr) out += std::to_string(byte) + " ";
  constexpr int who_process = 1;
  out += "io " + std::to_string(::syscall(SYS_ioprio_get, who_process, pid));
  out += " cpus " + status_field(pid, "Cpus_allowed_list");
  for (const char* file : {"autogroup", "cgroup"}) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/" + file);
    out += " " + std::string(std::istreambuf_iterator<char>(in), {});
  }
  return out;
}

// Without a trace but the filter, which stays.
TEST_P(Enroll, WhatWaitsAlreadyIsHelpedAndReleased) {
  start_plain();
  const std::array<std::string, 2> before = {of_kernel(client), of_kernel(server)};
  EXPECT_EQ(enroll(server), "");
  EXPECT_EQ(enroll(client), "");
  EXPECT_TRUE(boosted()) << session->ctl({"why"}).out << session->ctl({"ps"}).out;
  EXPECT_EQ(session->json({"status"})["listeners"], filters() ? 2 : 0);
  for (const pid_t pid : {client, server}) EXPECT_EQ(session->ctl({"release", std::to_string(pid)}).status, 0);
  EXPECT_TRUE(eventually([&] { return kernel_attr(server).policy == "other"; }));
  EXPECT_TRUE(eventually([&] {
    const auto s = session->json({"status"});
    return s["managed_threads"] == 0 && s["managed_processes"] == 0 && s["resources"] == 0;
  })) << session->json({"status"});
  EXPECT_EQ(before, (std::array{of_kernel(client), of_kernel(server)}));
  EXPECT_EQ(status_field(server, "Seccomp"), filters() ? "2" : "0");
  EXPECT_EQ(status_field(server, "TracerPid"), "0");
  EXPECT_EQ(status_field(server, "NoNewPrivs"), "0");
  session->raise("flag");
  EXPECT_EQ(session->wait(client), 0);
}

TEST_P(Enroll, AgainAfterARelease) {
  start_plain();
  for (int round = 0; round < 3; ++round) {
    for (const pid_t pid : {server, client}) ASSERT_EQ(enroll(pid), "");
    ASSERT_TRUE(boosted()) << "round " << round;
    ASSERT_EQ(session->ctl({"release", std::to_string(client)}).status, 0);
    ASSERT_TRUE(eventually([&] { return kernel_attr(server).policy == "other"; })) << "round " << round;
  }
}

TEST_P(Enroll, ATreeWithItsDescendantsAndThoseToCome) {
  const pid_t shell = session->start_plain(
      {"/bin/sh", "-c",
       "sleep 100 & (sleep 101 & wait) & until [ -e " + session->path("more") + " ]; do sleep 0.05; done; sleep 102"});
  // Before that a shell that is enrolled has children to come.
  ASSERT_TRUE(eventually([&] {
    std::ifstream in("/proc/" + std::to_string(shell) + "/task/" + std::to_string(shell) + "/children");
    std::vector<pid_t> children;
    for (pid_t child = 0; in >> child;) children.push_back(child);
    return std::ranges::any_of(children, [](pid_t child) { return only_child(child) > 0; });
  }));
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
TEST_P(Enroll, AProgramThatGoesIntoTheBackground) {
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

TEST_P(Enroll, WhatTheMachineStandsOnIsRefused) {
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

INSTANTIATE_TEST_SUITE_P(observers, Enroll, ::testing::Values("seccomp", "bpf"),
                         [](const auto& test) { return test.param; });

// What cannot be had is said, and the process goes on as it was.
class EnrollBySeccomp : public Enroll {
 protected:
  pid_t start_child(const std::function<void()>& body) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      body();
      for (;;) ::pause();
    }
    children.push_back(pid);
    EXPECT_TRUE(eventually([&] { return blocked_in(pid, SYS_pause); }));
    return pid;
  }
  void TearDown() override {
    for (auto pid = children.rbegin(); pid != children.rend(); ++pid) session->kill(*pid, SIGKILL);
  }
  std::vector<pid_t> children;
};

TEST_P(EnrollBySeccomp, AnotherTracer) {
  const pid_t pid = start_child([] {});
  const pid_t tracer = start_child([&] { ::ptrace(PTRACE_SEIZE, pid, nullptr, nullptr); });
  EXPECT_EQ(enroll(pid),
            "1: swapctl: process " + std::to_string(pid) + " is traced by process " + std::to_string(tracer) + "\n");
}

TEST_P(EnrollBySeccomp, AnotherListener) {
  const pid_t pid = start_child([] {
    sock_filter allow[] = {{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
    const sock_fprog program{1, allow};
    ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
  });
  EXPECT_EQ(enroll(pid), "1: swapctl: process " + std::to_string(pid) + ": it has a seccomp listener already\n");
  EXPECT_TRUE(eventually([&] { return blocked_in(pid, SYS_pause); })) << "back in its call once it is let go";
}

TEST_P(EnrollBySeccomp, AnOrdinaryUsersProcess) {
  const pid_t pid = start_child([] {
    if (::setresuid(65534, 65534, 65534) != 0) ::_exit(1);
  });
  const std::string refused = enroll(pid);
  EXPECT_NE(refused.find("--allow-no-new-privs"), std::string::npos) << refused;
  EXPECT_EQ(std::ranges::count(refused, '\n'), 1) << refused;
  EXPECT_EQ(status_field(pid, "NoNewPrivs"), "0");
  EXPECT_EQ(status_field(pid, "Seccomp"), "0");
  EXPECT_EQ(enroll(pid, {"--allow-no-new-privs"}), "");
  EXPECT_EQ(status_field(pid, "NoNewPrivs"), "1");
  EXPECT_EQ(session->json({"status"})["listeners"], 1);
}

// Some of a tree cannot be: the others are, and who is not is named.
TEST_P(EnrollBySeccomp, ATreeInPart) {
  const pid_t mother = start_child([] {
    for (int i = 0; i < 2; ++i)
      if (::fork() == 0) {
        if (i == 1 && ::setresuid(65534, 65534, 65534) != 0) ::_exit(1);
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) ::pause();
      }
  });
  const std::string in_part = enroll(mother, {"--tree"});
  EXPECT_TRUE(in_part.starts_with("1: swapctl: not all were enrolled: process ")) << in_part;
  EXPECT_EQ(session->json({"status"})["managed_processes"], 2);
}

INSTANTIATE_TEST_SUITE_P(observers, EnrollBySeccomp, ::testing::Values("seccomp"),
                         [](const auto& test) { return test.param; });

// swapd and all its programs in a pid namespace of their own: this program again, as its first process.
TEST(PidNamespace, WaitsAreSeenAndHelpedThere) {
  const Output inside =
      run_in_pid_namespace("observers/Enroll.WhatWaits*:observers/Enroll.ATree*", std::chrono::seconds(60));
  if (inside.err.find("unshare failed") != std::string::npos) GTEST_SKIP() << inside.err;
  EXPECT_EQ(inside.status, 0) << inside.out << inside.err;
  EXPECT_NE(inside.out.find("[  PASSED  ] 4 tests"), std::string::npos) << inside.out;
}

}  // namespace
}  // namespace swapd::test
