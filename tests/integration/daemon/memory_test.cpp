// Programs that together need more than a control group may have, under a policy that keeps memory for what matters.
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include "base/fd.h"
#include "session.h"
#include "swap_device.h"

namespace swapd::test {
namespace {

namespace fs = std::filesystem;
constexpr std::int64_t mib = 1 << 20;

// A memory control group with a limit; its processes leave it at the end.
class LimitedGroup {
 public:
  explicit LimitedGroup(std::int64_t bytes) {
    const std::string name = "swapd-test-" + std::to_string(::getpid());
    v1_ = fs::exists("/sys/fs/cgroup/memory/memory.limit_in_bytes");
    parent_ = v1_ ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup";
    directory_ = parent_ + "/" + name;
    if (!v1_) std::ofstream(parent_ + "/cgroup.subtree_control") << "+memory";
    ::mkdir(directory_.c_str(), 0755);
    set(bytes);
    std::ifstream limit(directory_ + limit_file());
    std::int64_t is = 0;
    there_ = (limit >> is) && is == bytes;
  }
  ~LimitedGroup() {
    std::ifstream in(directory_ + "/cgroup.procs");
    for (std::string pid; in >> pid;) std::ofstream(parent_ + "/cgroup.procs") << pid;
    ::rmdir(directory_.c_str());
  }
  LimitedGroup(const LimitedGroup&) = delete;
  LimitedGroup& operator=(const LimitedGroup&) = delete;
  [[nodiscard]] bool there() const { return there_; }
  void take(pid_t pid) const { std::ofstream(directory_ + "/cgroup.procs") << pid; }
  void set(std::int64_t bytes) const { std::ofstream(directory_ + limit_file()) << bytes; }
  // Processes that the kernel has killed for want of memory.
  [[nodiscard]] long killed() const {
    std::ifstream in(directory_ + (v1_ ? "/memory.oom_control" : "/memory.events"));
    std::string word;
    for (long count = 0; in >> word >> count;)
      if (word == "oom_kill") return count;
    return 0;
  }

 private:
  [[nodiscard]] const char* limit_file() const { return v1_ ? "/memory.limit_in_bytes" : "/memory.max"; }

  std::string parent_, directory_;
  bool v1_ = false, there_ = false;
};

class MemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    swap.emplace(2048 * mib);
    if (!swap->failure().empty()) GTEST_SKIP() << swap->failure();
    group.emplace(256 * mib);
    if (!group->there()) GTEST_SKIP() << "no memory controller";
    session.emplace(std::vector<std::string>{}, "[memory]\non = true\nquantum_ms = 60000\n");
    if (!session->failure().empty()) GTEST_SKIP() << session->failure();
  }
  void TearDown() override { session.reset(); }
  // In the group before it has any memory: it begins stopped. more: further arguments of the program.
  pid_t start_hog(int name, const std::vector<std::string>& options = {}, const std::string& more = "") {
    return start_in_group(options, "exec " + hog(name) + " " + more);
  }
  pid_t start_in_group(const std::vector<std::string>& options, const std::string& script) {
    const pid_t pid = session->start(options, {"/bin/bash", "-c", "kill -STOP $$; " + script});
    EXPECT_TRUE(eventually([&] { return status_field(pid, "State").starts_with("T"); }));
    group->take(pid);
    ::kill(pid, SIGCONT);
    return pid;
  }
  std::string hog(int name) const { return MEMORY_HOG_PROGRAM " 100 " + rounds_file(name); }
  // Three programs, of which the third matters least and leaves. Its pid; 0: it has not.
  pid_t put_third_away(const std::string& third) {
    const std::array others = {start_hog(0), start_hog(1)};
    start_in_group({"--nice", "1"}, third);
    pid_t found = 0;
    const auto is_away = [&] {
      const auto all = away();
      if (all.size() != 1 || all[0]["state"] != "away") return false;
      found = all[0]["pid"];
      return std::ranges::find(others, found) == others.end();
    };
    return eventually(is_away, std::chrono::seconds(60)) ? found : 0;
  }
  bool one_leaves() {
    return eventually([&] { return !away().empty() && away()[0]["state"] == "away"; }, std::chrono::seconds(60));
  }
  std::string rounds_file(int name) const { return session->path("rounds-" + std::to_string(name)); }
  long rounds(int name) const {
    long done = 0;
    std::ifstream(rounds_file(name)) >> done;
    return done;
  }
  nlohmann::json away() const { return session->json({"status"})["memory"]["away"]; }
  static bool stands_still(pid_t pid) {
    std::ifstream cgroup("/proc/" + std::to_string(pid) + "/cgroup");
    for (std::string line; std::getline(cgroup, line);)
      if (line.find("swapd-freeze-") != std::string::npos) return true;
    return false;
  }
  // A kernel that finds no page at once, because all were used just now, kills one though swap is free.
  bool kernel_has_killed_one() const { return group->killed() > 0; }
  // Why the third had no reason to leave; empty: it had.
  std::string cannot_run() const {
    if (kernel_has_killed_one()) return "the kernel has killed a program for want of memory";
    const auto groups = session->json({"status"})["memory"]["groups"];
    const auto gains_nothing = [](const nlohmann::json& one) { return one["stuck"] == "no-set-frees-enough"; };
    if (std::ranges::any_of(groups, gains_nothing)) return "the kernel has left the two others all their pages";
    return "";
  }
  std::string report() const {
    return session->ctl({"status"}).out + session->ctl({"ps"}).out +
           "killed by the kernel: " + std::to_string(group->killed()) + "\n";
  }
  // It comes back, and there is room for it as soon as it does: else the three would thrash on.
  bool comes_back(pid_t out) {
    const auto returns = [&] { return away().empty() || away()[0]["state"] != "away"; };
    if (!eventually(returns)) return false;
    group->set(1024 * mib);
    return eventually([&] { return !stands_still(out); });
  }
  // The program makes rounds.
  bool gets_on(int name) {
    const long before = rounds(name);
    return eventually([&] { return rounds(name) > before + 2; }, std::chrono::seconds(30));
  }

  std::optional<SwapDevice> swap;
  std::optional<LimitedGroup> group;
  std::optional<Session> session;
};

TEST_F(MemoryTest, the_one_that_matters_least_leaves_and_the_others_get_on) {
  const pid_t out = put_third_away("exec " + hog(2));
  if (const std::string why = out == 0 ? cannot_run() : ""; !why.empty()) GTEST_SKIP() << why;
  ASSERT_NE(out, 0) << report();
  EXPECT_GT(away()[0]["swapped_out_bytes"], 50 * mib);
  EXPECT_TRUE(stands_still(out));
  const long before = rounds(0);
  EXPECT_TRUE(eventually([&] { return rounds(0) > before + 20; }, std::chrono::seconds(30))) << report();
  EXPECT_NE(session->ctl({"status"}).out.find("swapctl thaw"), std::string::npos);

  ASSERT_EQ(session->ctl({"thaw", std::to_string(out)}).status, 0);
  EXPECT_TRUE(comes_back(out)) << report();
  EXPECT_TRUE(gets_on(2)) << report();
  EXPECT_EQ(session->ctl({"thaw", std::to_string(out)}).status, 2) << "it is not away";
}

TEST_F(MemoryTest, all_run_when_swapd_ends) {
  std::vector<pid_t> hogs;
  for (int i = 0; i < 3; ++i) hogs.push_back(start_hog(i));
  const bool one_left = one_leaves();
  if (!one_left && kernel_has_killed_one()) GTEST_SKIP() << "the kernel has killed a program for want of memory";
  ASSERT_TRUE(one_left) << report();
  EXPECT_EQ(session->stop(SIGTERM), 0);
  for (const pid_t hog : hogs) EXPECT_FALSE(stands_still(hog));
}

TEST_F(MemoryTest, all_run_soon_after_swapd_was_killed) {
  std::vector<pid_t> hogs;
  for (int i = 0; i < 3; ++i) hogs.push_back(start_hog(i));
  const bool one_left = one_leaves();
  if (!one_left && kernel_has_killed_one()) GTEST_SKIP() << "the kernel has killed a program for want of memory";
  ASSERT_TRUE(one_left) << report();
  const pid_t out = away()[0]["pid"];
  const int name = static_cast<int>(std::ranges::find(hogs, out) - hogs.begin());
  const long before = rounds(name);
  ::kill(session->daemon_pid(), SIGKILL);
  EXPECT_TRUE(eventually([&] { return rounds(name) > before; }, std::chrono::seconds(20)))
      << "the guard has not thawed it";
}

// The waits of a thread that matters bring back what it waits for.

TEST_F(MemoryTest, one_whose_lock_an_important_program_awaits_comes_back) {
  const pid_t out = put_third_away("exec " + hog(2) + " lock " + session->path("lock"));
  if (const std::string why = out == 0 ? cannot_run() : ""; !why.empty()) GTEST_SKIP() << why;
  ASSERT_NE(out, 0) << report();
  session->start({"--nice", "-5"}, {"/usr/bin/flock", session->path("lock"), "/bin/true"});
  EXPECT_TRUE(comes_back(out)) << report();
  EXPECT_TRUE(gets_on(2)) << report();
}

TEST_F(MemoryTest, one_to_which_an_important_program_has_sent_a_message_comes_back) {
  const pid_t out = put_third_away("exec " + hog(2) + " listen " + session->path("port"));
  if (const std::string why = out == 0 ? cannot_run() : ""; !why.empty()) GTEST_SKIP() << why;
  ASSERT_NE(out, 0) << report();
  std::string port;
  std::ifstream(session->path("port")) >> port;
  const pid_t client = session->start({"--nice", "-5"}, {"/bin/bash", "-c",
                                                         "exec 3<>/dev/tcp/127.0.0.1/" + port +
                                                             "; echo -n x >&3; read -rn 1 -u 3 it; "
                                                             "[ $it = x ]"});
  EXPECT_TRUE(comes_back(out)) << report();
  EXPECT_EQ(session->wait(client), 0) << report();
  EXPECT_TRUE(gets_on(2)) << report();
}

// More than it has written before it was put away.
TEST_F(MemoryTest, one_whose_pipe_an_important_program_reads_comes_back) {
  const std::string pipe = session->path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const pid_t out = put_third_away("exec " + hog(2) + " pipe " + pipe);
  if (const std::string why = out == 0 ? cannot_run() : ""; !why.empty()) GTEST_SKIP() << why;
  ASSERT_NE(out, 0) << report();
  const std::string bytes = std::to_string(rounds(2) + 2);
  const pid_t reader = session->start({"--nice", "-5"}, {"/usr/bin/head", "-c", bytes, pipe});
  EXPECT_TRUE(comes_back(out)) << report();
  EXPECT_EQ(session->wait(reader), 0) << report();
}

// In a shell with job control, at a terminal.
TEST_F(MemoryTest, one_at_whose_terminal_a_key_is_typed_comes_back) {
  const Fd master(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(master && ::grantpt(master.get()) == 0 && ::unlockpt(master.get()) == 0);
  char terminal[64];
  ASSERT_EQ(::ptsname_r(master.get(), terminal, sizeof terminal), 0);
  const pid_t out = put_third_away("exec setsid -c /bin/bash --norc -ic '" + hog(2) + "; true' <" + terminal + " >" +
                                   terminal + " 2>&1");
  if (const std::string why = out == 0 ? cannot_run() : ""; !why.empty()) GTEST_SKIP() << why;
  ASSERT_NE(out, 0) << report();
  EXPECT_EQ(status_field(out, "Name"), "memory_hog") << "the shell stays";
  ASSERT_EQ(::write(master.get(), "x\n", 2), 2);
  EXPECT_TRUE(comes_back(out)) << report();
  EXPECT_TRUE(gets_on(2)) << report();
}

TEST_F(MemoryTest, one_in_tmux_comes_back_when_a_key_is_typed) {
  if (run({"/usr/bin/tmux", "-V"}).status != 0) GTEST_SKIP() << "no tmux";
  const std::string tmux = "/usr/bin/tmux -S " + session->path("tmux");
  const pid_t out = put_third_away(tmux + " -f /dev/null new-session -d '" + hog(2) + "'; exec sleep 100");
  const auto end = [&] { run({"/bin/sh", "-c", tmux + " kill-server"}); };
  if (const std::string why = out == 0 ? cannot_run() : ""; !why.empty()) {
    end();
    GTEST_SKIP() << why;
  }
  EXPECT_NE(out, 0) << report();
  EXPECT_EQ(status_field(out, "Name"), "memory_hog") << "tmux stays";
  EXPECT_EQ(run({"/bin/sh", "-c", tmux + " send-keys x Enter"}).status, 0);
  EXPECT_TRUE(comes_back(out)) << report();
  EXPECT_TRUE(gets_on(2)) << report();
  end();
}

TEST_F(MemoryTest, a_scan_of_files_is_no_thrashing) {
  start_hog(0);
  const std::string file = session->path("large");
  {
    std::ofstream out(file);
    const std::string piece(1 << 20, 'x');
    for (int i = 0; i < 600; ++i) out << piece;
  }
  EXPECT_EQ(session->wait(start_in_group({}, "exec cat " + file + " " + file + " " + file + " >/dev/null")), 0);
  const auto memory = session->json({"status"})["memory"];
  EXPECT_EQ(memory["swapped_out_total_bytes"], 0) << memory;
  EXPECT_TRUE(memory["away"].empty()) << memory;
}

}  // namespace
}  // namespace swapd::test
