// What the bpf observer alone can do: take in what runs already, whatever filters it has; and what swapd does where it
// is not to be had.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "session.h"

namespace swapd::test {
namespace {

class BpfEnroll : public ::testing::Test {
 protected:
  void SetUp() override {
    session.emplace(std::vector<std::string>{"--observe", "bpf"});
    if (!session->failure().empty()) GTEST_SKIP() << session->failure();
  }
  bool nobody_is_left() {
    return eventually([&] { return session->json({"status"})["managed_processes"] == 0; });
  }
  // Of a shell: an inversion, until the flag is there; "client" has the client's id then.
  [[nodiscard]] std::string client_and_server() const {
    const std::string pair = session->pair(), socket = session->path("sock");
    return "others=; for role in 'server " + socket + " " + session->path("flag") + "' 'spin 40' 'spin 40'; do " +
           pair + " $role & others=\"$others $!\"; done; chrt -f 50 " + pair + " client " + socket + " & echo $! >" +
           session->path("client") + "; wait $!; kill $others; wait";
  }
  std::optional<Session> session;
};

// With all that is needed here, auto takes it, and says what it was that decided.
TEST_F(BpfEnroll, IsWhatAutoPicks) {
  Session other({"--observe", "auto"});
  ASSERT_EQ(other.failure(), "");
  const auto status = other.json({"status"});
  EXPECT_EQ(status["observer"], "bpf") << status;
  EXPECT_NE(status["observer_reason"].get<std::string>().find("BTF"), std::string::npos) << status;
}

TEST_F(BpfEnroll, AProgramWithAFilterOfItsOwn) {
  const pid_t filtered = ::fork();
  if (filtered == 0) {
    sock_filter allow[] = {{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
    const sock_fprog program{1, allow};
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    for (;;) ::pause();
  }
  EXPECT_TRUE(eventually([&] { return status_field(filtered, "Seccomp") == "2" && blocked_in(filtered, SYS_pause); }));
  EXPECT_EQ(session->ctl({"enroll", std::to_string(filtered)}).status, 0);
  EXPECT_EQ(session->json({"status"})["managed_processes"], 1);
  session->kill(filtered, SIGKILL);
  EXPECT_TRUE(nobody_is_left());
}

TEST_F(BpfEnroll, ARunNeedsNoFilter) {
  const Output out = session->ctl({"run", "--", "/bin/grep", "Seccomp:", "/proc/self/status"});
  EXPECT_EQ(out.out, "Seccomp:\t0\n") << out.err;
  const Output other = session->ctl({"run", "--observe", "seccomp", "--", "/bin/true"});
  EXPECT_EQ(other.status, 2);
  EXPECT_NE(other.err.find("observes with bpf"), std::string::npos) << other.err;
}

// With nothing in its way it becomes who its file says it is.
TEST_F(BpfEnroll, ASetuidProgram) {
  const std::filesystem::path copy = "/var/tmp" / std::filesystem::path(session->dir()).filename();
  std::filesystem::copy_file("/usr/bin/id", copy);
  std::filesystem::permissions(copy, std::filesystem::perms(04755));
  const std::vector<std::string> as_nobody = {"/usr/bin/setpriv", "--reuid", "65534", "--clear-groups", copy, "-u"};
  std::vector<std::string> words = {"run", "--"};
  words.insert(words.end(), as_nobody.begin(), as_nobody.end());
  const Output alone = run(as_nobody), managed = session->ctl(words);
  std::filesystem::remove(copy);
  if (alone.out != "0\n") GTEST_SKIP() << "/var/tmp gives no privilege (nosuid): " << alone.out;
  EXPECT_EQ(managed.out, "0\n") << managed.err;
}

// Its calls have other numbers. It is enrolled before it waits, or while it does, when only /proc tells of its wait.
class A32BitProgram : public BpfEnroll, public ::testing::WithParamInterface<bool> {};

TEST_P(A32BitProgram, IsLentFor) {
  if (run({"/bin/sh", "-c", "echo | " READ32_PROGRAM}).status != 0)
    GTEST_SKIP() << "the kernel runs no 32-bit programs (CONFIG_IA32_EMULATION)";
  ASSERT_EQ(::mkfifo(session->path("fifo").c_str(), 0600), 0);
  // Opened for both, so that neither waits for the other to open it.
  const pid_t provider = session->start({}, {"/bin/sh", "-c",
                                             "exec 3<>" + session->path("fifo") + "; : >" + session->path("ready") +
                                                 "; until [ -e " + session->path("flag") + " ]; do :; done; echo >&3"});
  for (int i = 0; i < 2; ++i) session->start({}, {session->pair(), "spin", "40"});
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(session->path("ready")); }));
  const std::vector<std::string> reads = {"/bin/sh", "-c", "exec " READ32_PROGRAM " <" + session->path("fifo")};
  pid_t reader = -1;
  if (GetParam()) {
    reader = session->start({"--fifo", "50"}, reads);
  } else {
    std::vector<std::string> words = {"/usr/bin/chrt", "-f", "50"};
    words.insert(words.end(), reads.begin(), reads.end());
    reader = session->start_plain(words);
    constexpr int read_of_32_bit = 3;
    ASSERT_TRUE(eventually([&] { return blocked_in(reader, read_of_32_bit); }));
    const Output enrolled = session->ctl({"enroll", std::to_string(reader)});
    ASSERT_EQ(enrolled.status, 0) << enrolled.err;
  }
  EXPECT_TRUE(eventually([&] { return kernel_attr(provider).policy == "fifo"; })) << session->ctl({"why"}).out;
  session->raise("flag");
  EXPECT_EQ(session->wait(reader), 0);
}

INSTANTIATE_TEST_SUITE_P(Enrolled, A32BitProgram, ::testing::Values(true, false),
                         [](const auto& test) { return test.param ? "Before" : "WhileItWaits"; });

// A container to the kernel: namespaces of its own, where its threads have other ids than here.
TEST_F(BpfEnroll, AContainersProgramsFromOutside) {
  const Output can = run({"/usr/bin/unshare", "--pid", "--fork", "--mount-proc", "/bin/true"});
  if (can.status != 0) GTEST_SKIP() << "no namespaces can be made here: " << can.err;
  const pid_t container =
      session->start_plain({"/usr/bin/unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--net", "--ipc",
                            "--uts", "--cgroup", "/bin/sh", "-c", client_and_server()});
  const auto in_it = [&](const std::string& role) {
    const auto ps = session->json({"ps"});
    for (const auto& thread : ps["threads"]) {
      const pid_t pid = thread["pid"];
      std::ifstream in("/proc/" + std::to_string(pid) + "/cmdline");
      const std::string words{std::istreambuf_iterator<char>(in), {}};
      if (words.starts_with(session->pair() + '\0' + role)) return pid;
    }
    return pid_t{-1};
  };
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(session->path("client")); }));
  const Output enrolled = session->ctl({"enroll", "--tree", std::to_string(container)});
  ASSERT_EQ(enrolled.status, 0) << enrolled.err;
  ASSERT_TRUE(eventually([&] { return in_it("server") > 0; })) << session->ctl({"ps"}).out;
  const pid_t server = in_it("server");
  EXPECT_TRUE(eventually([&] { return kernel_attr(server).policy == "fifo"; })) << session->ctl({"why"}).out;
  session->raise("flag");
  session->wait(container);
  EXPECT_TRUE(nobody_is_left()) << session->ctl({"ps"}).out;
}

// More has happened than the ring could hold while nobody read it; among it a client and its server that came to be.
TEST_F(BpfEnroll, WhatWasLostIsLookedUpAnew) {
  const pid_t shell =
      session->start({}, {"/bin/sh", "-c",
                          "until [ -e " + session->path("go") +
                              " ]; do sleep 0.05; done; i=0; while [ $i -lt 8000 ]; do (:); i=$((i+1)); done; " +
                              client_and_server()});
  const pid_t swapd = session->daemon_pid();
  ASSERT_TRUE(eventually([&] { return session->json({"status"})["managed_processes"] > 0; })) << "nothing was started";
  ASSERT_EQ(session->json({"status"})["events_lost"], 0);
  ASSERT_EQ(::kill(swapd, SIGSTOP), 0);
  session->raise("go");
  pid_t client = -1;
  const bool waits = eventually(
      [&] {
        std::ifstream(session->path("client")) >> client;
        return client > 0 && blocked_in(client, SYS_read);
      },
      std::chrono::seconds(60));
  ASSERT_EQ(::kill(swapd, SIGCONT), 0);
  ASSERT_TRUE(waits) << "there is no client";
  EXPECT_TRUE(eventually([&] { return session->json({"status"})["events_lost"] > 0; }));
  const auto lent = [&] { return session->json({"status"})["donations_total"] > 0; };
  EXPECT_TRUE(eventually(lent)) << session->ctl({"why"}).out << session->ctl({"ps"}).out;
  session->raise("flag");
  EXPECT_EQ(session->wait(shell), 0);
  EXPECT_TRUE(nobody_is_left()) << session->ctl({"ps"}).out;
}

// Nothing has woken swapd since, which rests; who asks for the child has its number already.
TEST_F(BpfEnroll, ACommandKnowsOfAChildThatWasMadeJustNow) {
  const pid_t shell =
      session->start({}, {"/bin/sh", "-c",
                          "for i in 1 2 3 4 5; do until [ -e " + session->path("go") +
                              "$i ]; do :; done; sleep 100 & all=\"$all $!\"; echo $! >" + session->path("pid") +
                              "$i.new; mv " + session->path("pid") + "$i.new " + session->path("pid") +
                              "$i; done; until [ -e " + session->path("go") + "6 ]; do :; done; kill $all; wait"});
  for (int i = 1; i <= 5; ++i) {
    pid_t child = -1;
    session->raise("go" + std::to_string(i));
    ASSERT_TRUE(eventually([&] {
      std::ifstream(session->path("pid") + std::to_string(i)) >> child;
      return child > 0;
    }));
    const Output done = session->ctl({"set", std::to_string(child), "--nice", "5"});
    EXPECT_EQ(done.status, 0) << done.err;
  }
  session->raise("go6");
  session->wait(shell);
}

// A tick that finds nothing to do costs whoever had the CPU.
TEST_F(BpfEnroll, TheEngineRestsWhileNobodyImportantWaits) {
  session->start({}, {session->pair(), "spin", "40"});
  ASSERT_TRUE(eventually([&] { return session->json({"status"})["managed_processes"] == 1; }));
  std::string engine;
  const std::string tasks = "/proc/" + std::to_string(session->daemon_pid()) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks))
    if (status_field(task.path().string(), "Name") == "swapd-engine") engine = task.path();
  ASSERT_NE(engine, "") << "swapd has no thread of that name";
  using Clock = std::chrono::steady_clock;
  const auto wakes_a_second = [&] {
    const auto wakes = [&] { return std::stol(status_field(engine, "voluntary_ctxt_switches")); };
    const auto began = Clock::now();
    const long before = wakes();
    EXPECT_EQ(run({"/bin/sleep", "0.5"}).status, 0);
    const long after = wakes();
    return static_cast<double>(after - before) / std::chrono::duration<double>(Clock::now() - began).count();
  };
  EXPECT_LT(wakes_a_second(), 25) << "of 10, and some for what else has happened";
  const pid_t server = session->start({}, {session->pair(), "server", session->path("sock"), session->path("flag")});
  const pid_t client = session->start({"--fifo", "50"}, {session->pair(), "client", session->path("sock")});
  EXPECT_TRUE(eventually([&] { return blocked_in(client, SYS_read); }));
  EXPECT_GT(wakes_a_second(), 50) << "one waits, and is looked after";
  session->raise("flag");
  EXPECT_EQ(session->wait(client), 0);
  session->kill(server, SIGKILL);
  EXPECT_TRUE(eventually([&] { return session->json({"status"})["managed_processes"] == 1; }));
  EXPECT_LT(wakes_a_second(), 25) << "nobody does any more";
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
  // By `why`, which also says that it is nobody to lend to.
  bool is_named() {
    return eventually([&] {
      const std::string why = session->ctl({"why", std::to_string(client)}).out;
      return (why.find("kworker") != std::string::npos || why.find("jbd2") != std::string::npos) &&
             why.find("not managed") != std::string::npos;
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
  EXPECT_TRUE(is_named()) << session->ctl({"why", std::to_string(client)}).out;
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
