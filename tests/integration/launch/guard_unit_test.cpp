// A guard that swapd does not start itself, but systemd, through a socket (systemd/swapd-guard.socket).
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "base/unix_address.h"
#include "guard/guard_process.h"
#include "guard/guard_takeover.h"
#include "guard/helper_program.h"
#include "guard_fixture.h"

namespace swapd::daemon {
namespace {

using test::eventually;
using test::state_of;

// Does what systemd does for a socket with Accept=yes.
class GuardUnit : public GuardTest {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "swapd-unit-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
    socket_ = dir_ + "/guard.sock";
    const auto address = unix_address(socket_);
    const Fd listening(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::bind(listening.get(), address->get(), address->size), 0);
    ASSERT_EQ(::listen(listening.get(), 8), 0);
    manager_ = ::fork();
    if (manager_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::signal(SIGCHLD, SIG_IGN);
    for (;;) {
      const Fd connection(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
      const auto program = OwnProgram::open(SWAPD_GUARD_BINARY);
      if (!connection || !program) ::_exit(1);
      (void)program->start({"swapd-guard"}, {{connection.get(), guard_fd::socket}});
    }
  }
  void TearDown() override {
    if (manager_ > 0) kill_and_reap(manager_);
    if (swapd_ > 0) kill_and_reap(swapd_);
    std::filesystem::remove_all(dir_);
  }
  std::string dir_;
  pid_t manager_ = -1;
};

TEST_F(GuardUnit, IsNoChildOfSwapds) {
  auto guard = Guard::start(guard_options(default_stale, "", socket_));
  ASSERT_TRUE(guard) << guard.error().text();
  EXPECT_EQ(guard->note(), "");
  const auto stat = [&] {  // name and parent
    std::ifstream in("/proc/" + std::to_string(guard->pid()) + "/stat");
    std::string pid, name, state, parent;
    in >> pid >> name >> state >> parent;
    return name + " " + parent;
  };
  const std::string expected = "(swapd-guard) " + std::to_string(manager_);
  EXPECT_TRUE(eventually([&] { return stat() == expected; })) << stat();
}

TEST_F(GuardUnit, AnswersOnceSwapdIsGone) {
  ASSERT_NO_FATAL_FAILURE(begin());
  go();
  ASSERT_TRUE(calls_go_on());
  kill_and_reap(std::exchange(swapd_, -1));
  EXPECT_TRUE(calls_go_on());
  end();
  EXPECT_TRUE(guard_ended());
}

TEST_F(GuardUnit, AnotherTakesItsPlace) {
  ASSERT_NO_FATAL_FAILURE(begin());
  go();
  const int before = progress_.guard.load();
  ::kill(before, SIGKILL);
  ASSERT_TRUE(eventually([&] { return progress_.guard.load() != before; }));
  kill_and_reap(std::exchange(swapd_, -1));
  EXPECT_TRUE(calls_go_on());
  end();
}

TEST_F(GuardUnit, WhereNobodyListensItIsAChildAndSaysSo) {
  auto guard = Guard::start(guard_options(default_stale, "", dir_ + "/nobody"));
  ASSERT_TRUE(guard);
  EXPECT_NE(guard->note().find("nobody: No such file or directory"), std::string::npos) << guard->note();
  EXPECT_NE(state_of(guard->pid()), '\0');
}

// Their socket is in the same directory as those at which guards that are alone are found.
TEST_F(GuardUnit, TheirSocketIsNoGuards) { EXPECT_TRUE(OrphanGuard::find(dir_).empty()); }

// One that is told nonsense ends.
TEST_F(GuardUnit, ToldNonsenseItEnds) {
  const auto connection = start_as_unit(socket_);
  ASSERT_TRUE(connection);
  ASSERT_EQ(::send(connection->get(), "nonsense", 8, MSG_NOSIGNAL), 8);
  char byte = 0;
  EXPECT_EQ(::recv(connection->get(), &byte, 1, 0), 0) << "it has closed its end";
}

}  // namespace
}  // namespace swapd::daemon
