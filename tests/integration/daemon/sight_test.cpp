// Waits whose provider no descriptor tells: a lock inside the kernel, a FUSE daemon, a sibling that sends a signal.
// Only the bpf observer sees who ends them.
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>

#include "session.h"

namespace swapd::test {
namespace {

class Sight : public ::testing::Test {
 protected:
  void begin(const std::string& config = "") {
    session.emplace(std::vector<std::string>{"--observe", "bpf"}, config);
    if (!session->failure().empty()) GTEST_SKIP() << session->failure();
    if (session->json({"status"})["observer"] != "bpf") GTEST_SKIP() << session->json({"status"})["observer_reason"];
  }
  void TearDown() override {
    if (!mounted.empty()) {
      session->kill(daemon, SIGCONT);
      (void)run({"umount", "--lazy", mounted});
    }
    std::error_code ignored;
    if (!scratch.empty()) std::filesystem::remove_all(scratch, ignored);
  }
  std::string why(pid_t pid) { return session->ctl({"why", std::to_string(pid)}).out; }
  bool says(pid_t pid, const std::vector<std::string>& words) {
    return eventually([&] {
      const std::string said = why(pid);
      return std::ranges::all_of(words, [&](const std::string& word) { return said.find(word) != std::string::npos; });
    });
  }
  bool becomes(pid_t pid, const std::string& policy) {
    return eventually([&] { return kernel_attr(pid).policy == policy; });
  }
  // On the CPU of the one who is to be helped.
  void hog() { session->start_plain({"taskset", "-c", "0", session->pair(), "spin", "40"}); }
  static bool has(const std::string& program) {
    return std::filesystem::exists("/usr/bin/" + program) || std::filesystem::exists("/bin/" + program);
  }
  // bindfs over a directory with the file `f`, on CPU 0; managed, or not.
  void mount(bool managed) {
    if (::access("/dev/fuse", R_OK | W_OK) != 0) GTEST_SKIP() << "no /dev/fuse";
    if (!has("bindfs")) GTEST_SKIP() << "no bindfs";
    scratch = session->path("fuse");
    std::filesystem::create_directories(scratch + "/below");
    std::filesystem::create_directories(scratch + "/mount");
    std::ofstream(scratch + "/below/f") << "x";
    const std::vector<std::string> command{
        "taskset",         "-c", "0", "bindfs", "-f", "-o", "attr_timeout=0,entry_timeout=0", scratch + "/below",
        scratch + "/mount"};
    daemon = managed ? session->start({}, command) : session->start_plain(command);
    file = scratch + "/mount/f";
    if (!eventually([&] { return std::filesystem::exists(file); })) GTEST_SKIP() << "bindfs does not mount here";
    mounted = scratch + "/mount";
  }

  std::optional<Session> session;
  std::string scratch, mounted, file;
  pid_t daemon = -1;
};

TEST_F(Sight, TheHolderOfAFilesLockInTheKernelIsLentTo) {
  begin();
  if (IsSkipped()) return;
  file = session->path("file");
  const pid_t writer = session->start({}, {"taskset", "-c", "0", session->pair(), "fill", file, session->path("flag")});
  ASSERT_TRUE(eventually([&] { return kernel_attr(writer).nice == 19; }));
  hog();
  const pid_t waiter = session->start({"--fifo", "50"}, {session->pair(), "poke", file, session->path("flag")});
  EXPECT_TRUE(becomes(writer, "fifo")) << why(waiter);
  session->raise("flag");
  EXPECT_EQ(session->wait(waiter), 0);
  EXPECT_EQ(session->wait(writer), 0);
}

TEST_F(Sight, AFuseDaemonIsLentTo) {
  begin();
  if (IsSkipped()) return;
  mount(true);
  if (IsSkipped()) return;
  (void)run({"renice", "-n", "19", "-p", std::to_string(daemon)});
  ASSERT_TRUE(eventually([&] { return kernel_attr(daemon).nice == 19; }));
  for (int i = 0; i < 4; ++i) hog();  // beside one alone the daemon is often quick enough to need no help
  const pid_t waiter = session->start({"--fifo", "50"}, {session->pair(), "visit", file, session->path("flag")});
  EXPECT_TRUE(becomes(daemon, "fifo")) << why(waiter);
  session->raise("flag");
  EXPECT_EQ(session->wait(waiter), 0);
}

TEST_F(Sight, AFuseDaemonThatIsNotManagedIsNamed) {
  begin();
  if (IsSkipped()) return;
  mount(false);
  if (IsSkipped()) return;
  const pid_t below = session->start({}, {session->pair(), "spin", "40"});  // else there is nobody to lend to
  session->kill(daemon, SIGSTOP);
  const pid_t waiter = session->start({"--fifo", "50"}, {session->pair(), "visit", file, session->path("flag")});
  EXPECT_TRUE(says(waiter, {"kernel:", ":fuse", "bindfs", "not managed"})) << why(waiter);
  session->kill(daemon, SIGCONT);
  session->raise("flag");
  EXPECT_EQ(session->wait(waiter), 0);
  session->kill(below, SIGKILL);
}

class Kin : public Sight, public ::testing::WithParamInterface<std::string> {
 protected:
  void begin_kin() {
    begin();
    if (IsSkipped()) return;
    server = session->start({}, {KIN_PROGRAM, GetParam(), session->path("sock"), session->path("flag")});
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(session->path("sock")); }));
    ASSERT_TRUE(eventually([&] { return (holder = only_child(server)) > 0 && kernel_attr(holder).nice == 10; }));
    hog();
  }
  pid_t client() { return session->start({"--fifo", "50"}, {session->pair(), "client", session->path("sock")}); }
  void answered(pid_t client) {
    session->raise("flag");
    EXPECT_EQ(session->wait(client), 0);
    EXPECT_TRUE(eventually([&] { return only_child(server) == holder; }));
  }
  pid_t server = -1, holder = -1;
};

INSTANTIATE_TEST_SUITE_P(waits, Kin, ::testing::Values("signal", "latch"));

// The first client's server is helped by a guess at most; what it taught holds for the next, which is another process.
TEST_P(Kin, WhatOneProcessOfAFamilyTaughtHelpsTheNext) {
  begin_kin();
  if (IsSkipped()) return;
  for (int i = 0; i < 3; ++i) {
    const pid_t first = client();
    // Nothing is learnt of what nobody looks at.
    ASSERT_TRUE(says(first, {GetParam() == "signal" ? "waits in rt_sigtimedwait" : "waits in poll"})) << why(first);
    if (i == 0 && GetParam() == "signal") {
      EXPECT_TRUE(eventually([&] { return kernel_attr(holder).nice == -20; }))
          << why(first) << session->ctl({"ps"}).out;
      EXPECT_EQ(kernel_attr(holder).policy, "other");
    }
    answered(first);
  }
  const pid_t next = client();
  EXPECT_TRUE(becomes(holder, "fifo")) << why(next);
  EXPECT_TRUE(says(next, {"ended such waits of the waiter's siblings"})) << why(next);
  answered(next);
}

}  // namespace
}  // namespace swapd::test
