// The socket's owner, where that is not root: what he may, and what he may not.
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "session.h"

namespace swapd::test {
namespace {

constexpr uid_t owner = 65534;

class Owner : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
    session.emplace(std::vector<std::string>{"--observe", GetParam()});
    if (!session->failure().empty()) GTEST_SKIP() << session->failure();
    std::filesystem::permissions(session->dir(), std::filesystem::perms(0711));
    ASSERT_EQ(::chown(session->path("s").c_str(), owner, owner), 0);
    roots = session->start({}, {"/bin/sleep", "100"});
    owners = session->start_plain(
        {"/usr/bin/setpriv", "--reuid", std::to_string(owner), "--clear-groups", "/bin/sleep", "100"});
    ASSERT_TRUE(eventually([&] { return std::filesystem::path(program(owners)).filename() == "sleep"; }));
  }
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

TEST_P(Owner, RaisesNobody) {
  const std::string pid = std::to_string(owners);
  ASSERT_EQ(ctl({"enroll", "--allow-no-new-privs", pid}).status, 0);
  EXPECT_EQ(ctl({"set", pid, "--nice", "5"}).status, 0);
  for (const std::vector<std::string>& order :
       {std::vector<std::string>{"set", pid, "--nice", "-5"}, {"set", pid, "--fifo", "1"}})
    expect_refused(order, "only root may raise a priority");
  EXPECT_EQ(kernel_attr(owners).nice, 5);
}

TEST_P(Owner, DoesNotRestartSwapd) {
  const pid_t before = session->daemon_pid();
  expect_refused({"restart"}, "only root may restart swapd");
  EXPECT_EQ(session->daemon_pid(), before);
  EXPECT_EQ(session->json({"status"})["managed_processes"], 1);
}

INSTANTIATE_TEST_SUITE_P(observers, Owner, ::testing::Values("seccomp", "bpf"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace swapd::test
