// The socket's owner, where that is not root: what he may, and what he may not.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>

#include "session.h"
#include "sys/seccomp/launch.h"

namespace swapd::test {
namespace {

constexpr uid_t owner = 65534;

class Owner : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
    session.emplace(std::vector<std::string>{"--observe", GetParam()}, policy());
    if (!session->failure().empty()) GTEST_SKIP() << session->failure();
    std::filesystem::permissions(session->dir(), std::filesystem::perms(0711));
    ASSERT_EQ(::chown(session->path("s").c_str(), owner, owner), 0);
    roots = session->start({}, {"/bin/sleep", "100"});
    owners = session->start_plain(
        {"/usr/bin/setpriv", "--reuid", std::to_string(owner), "--clear-groups", "/bin/sleep", "100"});
    ASSERT_TRUE(eventually([&] { return std::filesystem::path(program(owners)).filename() == "sleep"; }));
  }
  [[nodiscard]] virtual std::string policy() const { return "[class.closed]\nopen = false\n[class.open]\n"; }
  static std::string program(pid_t pid) {
    std::error_code gone;
    return std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/exe", gone).string();
  }
  // As that user.
  [[nodiscard]] Output ctl(std::vector<std::string> arguments) const {
    std::vector<std::string> argv{"/usr/bin/setpriv", "--reuid",  std::to_string(owner), "--clear-groups",
                                  SWAPCTL_BINARY,     "--socket", session->path("s")};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return run(argv);
  }
  void expect_refused(const std::vector<std::string>& arguments, const std::string& why) const {
    const Output refused = ctl(arguments);
    EXPECT_EQ(refused.status, 1) << arguments.front();
    EXPECT_NE(refused.err.find(why), std::string::npos) << refused.err;
  }
  std::optional<Session> session;
  pid_t roots = -1, owners = -1;
};

TEST_P(Owner, LeavesOthersProcessesAlone) {
  const std::string pid = std::to_string(roots);
  EXPECT_EQ(ctl({"status"}).status, 0);
  for (const std::vector<std::string>& order :
       {std::vector<std::string>{"enroll", pid}, {"release", pid}, {"set", pid, "--nice", "5"}})
    expect_refused(order, "belongs to another user");
  EXPECT_EQ(kernel_attr(roots).nice, 0);
  EXPECT_EQ(session->json({"status"})["managed_processes"], 1);
}

// What limits him is not his to lift.
TEST_P(Owner, StaysInAClassThatLimitsHim) {
  const std::string pid = std::to_string(owners);
  expect_refused({"class", "create", "mine"}, "only root may make classes");
  expect_refused({"class", "set", "open", "--read", "1MiB"}, "only root may change classes");
  ASSERT_EQ(session->ctl({"class", "create", "slow", "--both", "1MiB"}).status, 0);
  expect_refused({"class", "remove", "slow"}, "only root may remove classes");
  ASSERT_EQ(session->ctl({"class", "join", "--allow-no-new-privs", "slow", pid}).status, 0);
  expect_refused({"class", "leave", pid}, "only root takes it out");
  expect_refused({"enroll", "--class", "open", pid}, "only root takes it out");
  expect_refused({"release", pid}, "only root takes it out");
  expect_refused({"run", "--class", "closed", "--", "/bin/true"}, "is closed");
  EXPECT_EQ(session->json({"class", "show", "slow"})["classes"][0]["processes"], 1);
  EXPECT_EQ(session->ctl({"class", "leave", pid}).status, 0);
  EXPECT_EQ(session->json({"class", "show", "slow"})["classes"][0]["processes"], 0);
}

TEST_P(Owner, RaisesNobody) {
  const std::string pid = std::to_string(owners);
  ASSERT_EQ(ctl({"enroll", "--allow-no-new-privs", pid}).status, 0);
  EXPECT_EQ(ctl({"set", pid, "--nice", "5"}).status, 0);
  for (const std::vector<std::string>& order :
       {std::vector<std::string>{"set", pid, "--nice", "-5"}, {"set", pid, "--fifo", "1"}})
    expect_refused(order, "only root may raise a priority");
  EXPECT_EQ(kernel_attr(owners).nice, 5);
}

// A process that was the owner's when it connected, and is root's by now (a setuid program, say), is not his to launch.
TEST_P(Owner, LaunchesOnlyItsOwn) {
  const auto launched = [&](bool root_by_now, pid_t whose) {
    const pid_t child = ::fork();
    if (child == 0) {
      sd_bus* bus = nullptr;
      const std::string address = "unix:path=" + session->path("s");
      if (::seteuid(owner) != 0 || sd_bus_new(&bus) < 0 || sd_bus_set_address(bus, address.c_str()) < 0 ||
          sd_bus_start(bus) < 0)
        ::_exit(9);
      if (root_by_now && ::seteuid(0) != 0) ::_exit(8);
      const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, whose != 0 ? whose : ::getpid(), 0));
      const int memory = ::memfd_create("launch", MFD_CLOEXEC);
      sd_bus_error error{};
      (void)sd_bus_call_method(bus, nullptr, "/org/swapd1", "org.swapd1.Manager", "Launch", &error, nullptr, "hhss",
                               pidfd, memory, "default", "auto");
      const std::string said = error.message != nullptr ? error.message : "";
      if (said.find("belongs to another user") != std::string::npos) ::_exit(1);
      ::_exit(said.find("the pidfd is not the launcher's own") != std::string::npos ? 2 : 0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  };
  EXPECT_EQ(launched(true, 0), 1);
  EXPECT_EQ(launched(false, owners), 2);
  EXPECT_EQ(launched(false, 0), 0) << "whatever came of it";
}

// Launchers that never install their filter: of one user so many at once, and root's are served beside them.
TEST_P(Owner, LaunchesSoManyAtOnce) {
  if (std::string(GetParam()) == "bpf") return;  // there no launcher has a filter that one could wait for
  std::vector<pid_t> launchers;
  const auto launch = [&] {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::string("no pipe");
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      sd_bus* bus = nullptr;
      sd_bus_error error{};
      const std::string address = "unix:path=" + session->path("s");
      if (::seteuid(owner) != 0 || sd_bus_new(&bus) < 0 || sd_bus_set_address(bus, address.c_str()) < 0 ||
          sd_bus_start(bus) < 0)
        ::_exit(9);
      const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0));
      const int memory = ::memfd_create("launch", MFD_CLOEXEC | MFD_ALLOW_SEALING);
      const sys::launch::Shared empty;
      if (::write(memory, &empty, sizeof empty) != sizeof empty || ::ftruncate(memory, 4096) != 0 ||
          ::fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        ::_exit(8);
      (void)sd_bus_call_method(bus, nullptr, "/org/swapd1", "org.swapd1.Manager", "Launch", &error, nullptr, "hhss",
                               pidfd, memory, "default", "auto");
      const std::string said = error.message != nullptr ? error.message : "";
      (void)!::write(ends[1], said.data(), said.size());
      ::close(ends[1]);
      ::pause();
    }
    launchers.push_back(child);
    ::close(ends[1]);
    std::string said(1000, '\0');
    std::size_t used = 0;
    for (ssize_t got = 0; (got = ::read(ends[0], said.data() + used, said.size() - used)) > 0;)
      used += static_cast<std::size_t>(got);
    ::close(ends[0]);
    said.resize(used);
    return said;
  };
  std::string said;
  const auto begun = std::chrono::steady_clock::now();
  while (launchers.size() < 100 && said.empty()) said = launch();
  const bool all_wait = std::chrono::steady_clock::now() - begun < std::chrono::seconds(5);  // a launch's time
  EXPECT_NE(said.find("too many launches at once"), std::string::npos) << said;
  EXPECT_GE(launchers.size(), 49U);
  if (all_wait) {
    EXPECT_EQ(launchers.size(), 49U);
  }
  EXPECT_EQ(session->ctl({"run", "--", "/bin/true"}).status, 0);
  for (const pid_t launcher : launchers) session->kill(launcher, SIGKILL);
}

TEST_P(Owner, DoesNotRestartSwapd) {
  const pid_t before = session->daemon_pid();
  expect_refused({"restart"}, "only root may restart swapd");
  expect_refused({"pause"}, "only root may pause swapd");
  EXPECT_EQ(session->daemon_pid(), before);
  EXPECT_EQ(session->json({"status"})["managed_processes"], 1);
}

TEST_P(Owner, JoinsNoClosedClass) {
  const std::string pid = std::to_string(owners);
  expect_refused({"enroll", "--allow-no-new-privs", "--class", "closed", pid}, "class 'closed' is closed");
  expect_refused({"run", "--allow-no-new-privs", "--class", "closed", "--", "/bin/true"}, "class 'closed' is closed");
  EXPECT_EQ(ctl({"enroll", "--allow-no-new-privs", "--class", "open", pid}).status, 0);
  EXPECT_EQ(session->ctl({"enroll", "--allow-no-new-privs", "--class", "closed", pid}).status, 0) << "root may";
}

TEST_P(Owner, IsNotTurnedAwayBelowItsQuota) {
  for (int i = 0; i < 20; ++i) EXPECT_EQ(ctl({"status"}).status, 0);
}

// One user's forks, threads and questions take no room from the others.
class Quota : public Owner {
 protected:
  [[nodiscard]] std::string policy() const override { return "[quota]\nprocesses = 5\nthreads = 8\nrequests = 2\n"; }
};

TEST_P(Quota, OfProcesses) {
  const pid_t shell =
      session->start_plain({"/usr/bin/setpriv", "--reuid", std::to_string(owner), "--clear-groups", "/bin/sh", "-c",
                            "while [ ! -e " + session->path("flag") +
                                " ]; do sleep 0.02; done; i=0; while [ $i -lt 20 ]; do setpriv --pdeathsig KILL sleep "
                                "100 & i=$((i+1)); done; wait"});
  ASSERT_TRUE(eventually([&] { return std::filesystem::path(program(shell)).filename() == "dash"; }));
  ASSERT_EQ(session->ctl({"enroll", "--allow-no-new-privs", std::to_string(shell)}).status, 0);
  session->raise("flag");
  EXPECT_TRUE(eventually([&] { return session->json({"status"})["over_quota_total"] >= 16; }))
      << session->json({"status"});
  const auto managed = [&] { return session->json({"status"})["managed_processes"].get<int>(); };
  EXPECT_EQ(managed(), 1 + 5) << "root's sleep, and as many as the user may have";
  const std::string refused = session->ctl({"enroll", "--allow-no-new-privs", std::to_string(owners)}).err;
  EXPECT_NE(refused.find("as many as [quota] processes in the policy allows"), std::string::npos) << refused;
  session->start({}, {"/bin/sleep", "100"});
  EXPECT_TRUE(eventually([&] { return managed() == 2 + 5; })) << "root has no quota";
}

// What is lent for its waiters, where somebody else is there who may need the CPU.
class LentTime : public Owner {
 protected:
  [[nodiscard]] std::string policy() const override {
    return "[donation]\nceiling_share = 1\n[quota]\nlent_share = 0.01\n";
  }
  [[nodiscard]] std::vector<std::string> as_owner(std::vector<std::string> command) const {
    command.insert(command.begin(), {"/usr/bin/setpriv", "--reuid", std::to_string(owner), "--clear-groups"});
    return command;
  }
};

TEST_P(LentTime, IsBoundedForEachUser) {
  const std::string dir = session->path("theirs");
  ASSERT_TRUE(std::filesystem::create_directory(dir));
  ASSERT_EQ(::chown(dir.c_str(), owner, owner), 0);
  const pid_t server = session->start_plain(as_owner({session->pair(), "server", dir + "/sock", dir + "/flag"}));
  std::vector<std::string> command = as_owner({session->pair(), "client", dir + "/sock"});
  command.insert(command.begin(), {"/usr/bin/chrt", "-f", "50"});
  const pid_t client = session->start_plain(command);
  ASSERT_TRUE(eventually([&] { return blocked_in(client, SYS_read); }));
  for (const pid_t pid : {server, client})
    ASSERT_EQ(session->ctl({"enroll", "--allow-no-new-privs", std::to_string(pid)}).status, 0);
  const auto rests = [&] {
    return session->json({"why", std::to_string(client)}).dump().find("\"reason\":\"quota\"") != std::string::npos;
  };
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(eventually([&] { return kernel_attr(server).policy == "fifo"; })) << round;
    EXPECT_TRUE(eventually([&] { return rests() && kernel_attr(server).policy == "other"; })) << round;
  }
  session->raise("theirs/flag");
  EXPECT_EQ(session->wait(client), 0);
}

INSTANTIATE_TEST_SUITE_P(observers, LentTime, ::testing::Values("seccomp", "bpf"),
                         [](const auto& test) { return test.param; });

TEST_P(Quota, OfRequests) {
  Output refused;
  EXPECT_TRUE(eventually([&] { return (refused = ctl({"status"})).status != 0; }));
  EXPECT_NE(refused.err.find("too many requests: user 65534 may make 2 a second"), std::string::npos) << refused.err;
  for (int i = 0; i < 20; ++i) EXPECT_EQ(session->ctl({"status"}).status, 0) << "root has no quota";
}

INSTANTIATE_TEST_SUITE_P(observers, Quota, ::testing::Values("seccomp", "bpf"),
                         [](const auto& test) { return test.param; });
INSTANTIATE_TEST_SUITE_P(observers, Owner, ::testing::Values("seccomp", "bpf"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace swapd::test
