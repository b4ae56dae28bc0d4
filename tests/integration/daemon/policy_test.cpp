// Programs that nobody has put under swapd but its policy ([match.NAME]).
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "session.h"

namespace swapd::test {
namespace {

class PolicyRules : public ::testing::TestWithParam<const char*> {
 protected:
  void start(const std::string& policy) {
    session.emplace(std::vector<std::string>{"--observe", GetParam()}, policy);
    if (!session->failure().empty()) GTEST_SKIP() << session->failure();
  }
  // A program of this test's own: nobody else's is called so.
  std::string program(const std::string& name, const std::string& of = "/bin/sleep") {
    const std::string path = session->path(name);
    std::filesystem::copy_file(of, path, std::filesystem::copy_options::skip_existing);
    return path;
  }
  // The class of a managed process; empty: it is not managed.
  [[nodiscard]] std::string class_of(pid_t pid) const {
    const auto answer = session->json({"ps"});
    for (const auto& thread : answer["threads"])
      if (thread["pid"] == pid) return thread["class"];
    return "";
  }
  bool comes_in(pid_t pid) {
    return eventually([&] { return !class_of(pid).empty(); });
  }
  std::optional<Session> session;
};

constexpr const char* policy = R"(
[class.work]
[match.left-alone]
comm = "swapd-t-alone"
manage = false
[match.ours]
comm = "swapd-t-*"
class = "work"
nice = -7
)";

TEST_P(PolicyRules, TakeInAProgramThatStarts) {
  start(policy);
  if (!session) return;
  const pid_t pid = session->start_plain({program("swapd-t-one"), "100"});
  ASSERT_TRUE(comes_in(pid));
  EXPECT_EQ(class_of(pid), "work");
  EXPECT_TRUE(eventually([&] { return kernel_attr(pid).nice == -7; }));
  EXPECT_EQ(session->json({"status"})["managed_by_policy_total"], 1);
}

TEST_P(PolicyRules, GiveAProgramAllThatTheySay) {
  start(R"(
[match.ours]
comm = "swapd-t-*"
sched = "batch"
nice = 3
io_class = "best-effort"
io_priority = 6
oom_score_adj = 321
)");
  if (!session) return;
  const pid_t pid = session->start_plain({program("swapd-t-all"), "100"});
  ASSERT_TRUE(comes_in(pid));
  EXPECT_TRUE(eventually([&] { return kernel_attr(pid).policy == "batch"; }));
  EXPECT_EQ(kernel_attr(pid).nice, 3);
  constexpr int of_process = 1, best_effort = 2;  // linux/ioprio.h
  EXPECT_EQ(::syscall(SYS_ioprio_get, of_process, pid), (best_effort << 13) | 6);
  int score = 0;
  std::ifstream("/proc/" + std::to_string(pid) + "/oom_score_adj") >> score;
  EXPECT_EQ(score, 321);
}

TEST_P(PolicyRules, LeaveWhatAProgramHasOfItsOwnWhereTheySaySo) {
  start("[match.ours]\ncomm = \"swapd-t-*\"\nsched = \"batch\"\nkeep_own = true\n");
  if (!session) return;
  const pid_t pid = session->start_plain({"/usr/bin/nice", "-n", "4", program("swapd-t-own"), "100"});
  ASSERT_TRUE(comes_in(pid));
  const pid_t other = session->start_plain({program("swapd-t-none"), "100"});
  ASSERT_TRUE(eventually([&] { return kernel_attr(other).policy == "batch"; }));
  EXPECT_EQ(kernel_attr(pid).policy, "other");
  EXPECT_EQ(kernel_attr(pid).nice, 4);
}

TEST_P(PolicyRules, KnowWhatAProgramDescendsFrom) {
  start("[match.ours]\ndescends = \"swapd-t-launch\"\ncomm = \"swapd-t-game\"\n");
  if (!session) return;
  const std::string game = program("swapd-t-game");
  session->start_plain({program("swapd-t-launch", "/bin/bash"), "-c", "(" + game + " 8; true); true"});
  const pid_t alone = session->start_plain({game, "100"});
  pid_t found = 0;
  ASSERT_TRUE(eventually([&] {
    const auto answer = session->json({"ps"});
    for (const auto& thread : answer["threads"]) found = thread["pid"];
    return found != 0;
  }));
  EXPECT_NE(found, alone);
  EXPECT_EQ(class_of(alone), "");
}

TEST_P(PolicyRules, TakeInAProgramThatIsRenamedLater) {
  start(policy);
  if (!session) return;
  const pid_t pid = session->start_plain(
      {"/bin/sh", "-c",
       "while ! [ -e " + session->path("go") +
           " ]; do sleep .02; done; echo swapd-t-new >/proc/$$/comm; while :; do sleep .05; done"});
  EXPECT_EQ(class_of(pid), "");
  session->raise("go");
  ASSERT_TRUE(comes_in(pid));
  EXPECT_EQ(class_of(pid), "work");
}

TEST_P(PolicyRules, TakeInWhatRunsAlreadyWithItsChildren) {
  start("");
  if (!session) return;
  const std::string shell = program("swapd-t-shell", "/bin/dash");
  const pid_t parent = session->start_plain({shell, "-c", "/bin/sleep 100; :"});
  ASSERT_TRUE(eventually([&] { return only_child(parent) > 0; }));
  const pid_t child = only_child(parent);
  std::ofstream(session->path("config.toml")) << policy;
  ASSERT_EQ(session->ctl({"restart"}).status, 0);
  EXPECT_TRUE(comes_in(parent));
  EXPECT_TRUE(comes_in(child));
  EXPECT_EQ(class_of(child), "work");
  EXPECT_TRUE(eventually([&] { return kernel_attr(parent).nice == -7; }));
  session->kill(child, SIGKILL);
}

// As renice(1): what a program has chosen for its threads (rtkit's SCHED_RR with reset-on-fork, say) stays.
TEST_P(PolicyRules, ANiceValueLeavesTheClassAndItsFlag) {
  start(policy);
  if (!session) return;
  struct Case {
    std::vector<std::string> chrt;
    std::string policy;
  };
  const std::vector<Case> cases = {{{"-R", "-r", "20"}, "rr"}, {{"-b", "0"}, "batch"}, {{"-i", "0"}, "idle"}};
  for (const Case& one : cases) {
    std::vector<std::string> command = {"/usr/bin/chrt"};
    command.insert(command.end(), one.chrt.begin(), one.chrt.end());
    command.insert(command.end(), {program("swapd-t-class"), "100"});
    const pid_t pid = session->start_plain(command);
    ASSERT_TRUE(comes_in(pid));
    const auto nice = [&] { return ::getpriority(PRIO_PROCESS, static_cast<id_t>(pid)); };
    EXPECT_TRUE(eventually([&] { return nice() == -7; })) << nice();
    ASSERT_EQ(session->ctl({"set", std::to_string(pid), "--nice", "4"}).status, 0);
    EXPECT_EQ(nice(), 4);
    EXPECT_EQ(kernel_attr(pid).policy, one.policy);
    const bool resets = (::sched_getscheduler(pid) & SCHED_RESET_ON_FORK) != 0;
    EXPECT_EQ(resets, one.policy == "rr");
    EXPECT_EQ(kernel_attr(pid).rt_priority, one.policy == "rr" ? 20 : 0);
  }
}

TEST_P(PolicyRules, LeaveAloneWhatTheySay) {
  start(policy);
  if (!session) return;
  const pid_t alone = session->start_plain({program("swapd-t-alone"), "100"});
  ASSERT_TRUE(eventually([&] { return session->json({"status"})["matched_total"] == 1; }));
  const pid_t other = session->start_plain({program("swapd-t-two"), "100"});
  ASSERT_TRUE(comes_in(other));
  EXPECT_EQ(class_of(alone), "");
  EXPECT_EQ(kernel_attr(alone).nice, 0);
}

// A command's word counts more than a rule's.
TEST_P(PolicyRules, LeaveAsItIsWhatACommandPutThere) {
  start(policy);
  if (!session) return;
  const pid_t pid = session->start({"--nice", "-3"}, {program("swapd-t-three"), "100"});
  ASSERT_TRUE(comes_in(pid));
  const pid_t other = session->start_plain({program("swapd-t-four"), "100"});
  ASSERT_TRUE(comes_in(other));  // so the first one has been looked at
  EXPECT_EQ(class_of(pid), "default");
  EXPECT_EQ(kernel_attr(pid).nice, -3);
}

TEST_P(PolicyRules, DoNotUndoARelease) {
  start(policy);
  if (!session) return;
  const pid_t pid = session->start_plain({program("swapd-t-five"), "100"});
  ASSERT_TRUE(comes_in(pid));
  ASSERT_EQ(session->ctl({"release", std::to_string(pid)}).status, 0);
  ASSERT_EQ(session->ctl({"restart"}).status, 0);
  const pid_t other = session->start_plain({program("swapd-t-six"), "100"});
  ASSERT_TRUE(comes_in(other));
  EXPECT_EQ(class_of(pid), "");
}

// Who has started it counts, not whom it runs as.
TEST_P(PolicyRules, ForRootAreNotForASetuidProgramThatAnotherUserStarts) {
  start("[class.work]\n[match.roots]\nuser = \"root\"\ncomm = \"swapd-t-*\"\nclass = \"work\"\n");
  if (!session) return;
  using std::filesystem::perms;
  std::filesystem::permissions(session->dir(), perms(0711));
  std::filesystem::permissions(program("swapd-t-setuid"), perms(04755));
  const pid_t pid = session->start_plain(
      {"/usr/bin/setpriv", "--reuid", "65534", "--clear-groups", program("swapd-t-setuid"), "100"});
  const auto ids = [&] { return status_field(pid, "Uid"); };  // real, effective, saved, of files
  if (!eventually([&] { return ids().starts_with("65534"); })) FAIL() << ids();
  ASSERT_TRUE(eventually([&] { return ids() == "65534\t0\t0\t0"; }))
      << ids() << ": is " << session->dir() << " nosuid?";
  const pid_t roots = session->start_plain({program("swapd-t-root"), "100"});
  ASSERT_TRUE(comes_in(roots));  // so the first one has been looked at
  EXPECT_EQ(class_of(roots), "work");
  EXPECT_EQ(class_of(pid), "");
  ASSERT_EQ(session->ctl({"restart"}).status, 0);
  ASSERT_TRUE(comes_in(roots));
  EXPECT_EQ(class_of(pid), "") << "looked at as one that runs already";
}

TEST_P(PolicyRules, ChangeNothingInADryRun) {
  session.emplace(std::vector<std::string>{"--observe", GetParam(), "--dry-run"}, policy);
  if (!session->failure().empty()) GTEST_SKIP() << session->failure();
  const pid_t pid = session->start_plain({program("swapd-t-seven"), "100"});
  ASSERT_TRUE(eventually([&] { return session->json({"status"})["matched_total"] == 1; }));
  EXPECT_EQ(class_of(pid), "");
  EXPECT_EQ(kernel_attr(pid).nice, 0);
}

// As `swapctl run --embedded` starts one: for a program of its own.
TEST_P(PolicyRules, AreNotAPrivateSwapds) {
  session.emplace(std::vector<std::string>{"--observe", GetParam(), "--exit-with-pid", std::to_string(::getpid())},
                  policy);
  if (!session->failure().empty()) GTEST_SKIP() << session->failure();
  EXPECT_EQ(session->json({"status"})["match_rules"], 0);
}

TEST_P(PolicyRules, SeeAThousandProgramsThatEndAtOnce) {
  start("[match.short]\ncomm = \"true\"\ncmdline = \"/bin/true of-swapd\"\n");
  if (!session) return;
  const auto status = session->json({"status"});
  for (const auto& piece : status["missing"])
    if (piece["instead"].get<std::string>().find("[match.NAME]") != std::string::npos) GTEST_SKIP() << piece;
  const Output done = run({"/bin/sh", "-c", "i=0; while [ $i -lt 1000 ]; do /bin/true of-swapd; i=$((i + 1)); done"},
                          std::chrono::seconds(60));
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_TRUE(eventually([&] { return session->json({"status"})["matched_total"] == 1000; }))
      << session->json({"status"});
  EXPECT_TRUE(eventually([&] { return session->json({"status"})["managed_processes"] == 0; }));
}

TEST_P(PolicyRules, AreShownWithWhereTheyStand) {
  start(policy);
  if (!session) return;
  const std::string shown = session->ctl({"policy", "show"}).out;
  EXPECT_NE(shown.find("[match.ours]\ncomm = "), std::string::npos) << shown;
  EXPECT_NE(shown.find(session->path("config.toml") + ":7"), std::string::npos) << shown;
  EXPECT_NE(shown.find("confidence = 20                         # built-in\n"), std::string::npos) << shown;
}

// Nothing of a running swapd is asked: swapd's own words and status.
TEST_P(PolicyRules, AreCheckedBeforeTheyAreUsed) {
  start(policy);
  if (!session) return;
  const std::string file = session->path("site.toml");
  std::ofstream(file) << "[match.x]\ncom = \"a\"\n";
  const Output bad = session->ctl({"policy", "check", file});
  EXPECT_EQ(bad.status, 2);
  EXPECT_EQ(bad.err, "swapd: " + file + ":2: unknown key 'com' in [match.x]; did you mean 'comm'?\n");
  std::ofstream(file) << policy;
  const Output good = session->ctl({"policy", "check", file});
  EXPECT_EQ(good.status, 0) << good.err;
  EXPECT_EQ(good.out, file + ": good\n");
}

INSTANTIATE_TEST_SUITE_P(Both, PolicyRules, ::testing::Values("seccomp", "bpf"),
                         [](const auto& with) { return std::string(with.param); });

}  // namespace
}  // namespace swapd::test
