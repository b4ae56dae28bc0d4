// The filter and its listener against the real kernel.
#include "sys/seccomp/seccomp.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "supervised.h"

namespace swapd::sys {
namespace {

using test::eventually;
using test::state_of;
using test::Supervised;

const std::vector<TrapRule> getppid_only{{.nr = SYS_getppid, .condition = {}}};

// What the kernel would say to a call: a small interpreter of classic BPF, for calls that no test can make (x32 is not
// built into every kernel) and for arguments with something in their upper halves.
std::uint32_t verdict(const std::vector<sock_filter>& program, const seccomp_data& data) {
  std::uint32_t a = 0;
  for (std::size_t pc = 0; pc < program.size(); ++pc) {
    const sock_filter& i = program[pc];
    switch (i.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        std::memcpy(&a, reinterpret_cast<const char*>(&data) + i.k, sizeof a);
        break;
      case BPF_ALU | BPF_AND | BPF_K:
        a &= i.k;
        break;
      case BPF_JMP | BPF_JA:
        pc += i.k;
        break;
      case BPF_JMP | BPF_JEQ | BPF_K:
        pc += a == i.k ? i.jt : i.jf;
        break;
      case BPF_JMP | BPF_JGT | BPF_K:
        pc += a > i.k ? i.jt : i.jf;
        break;
      case BPF_JMP | BPF_JGE | BPF_K:
        pc += a >= i.k ? i.jt : i.jf;
        break;
      case BPF_RET | BPF_K:
        return i.k;
      default:
        ADD_FAILURE() << "unexpected instruction " << i.code;
        return 0;
    }
  }
  ADD_FAILURE() << "the program has no end";
  return 0;
}

seccomp_data call(int nr, std::uint64_t arg1 = 0, std::uint32_t arch = AUDIT_ARCH_X86_64) {
  seccomp_data data{};
  data.nr = nr;
  data.arch = arch;
  data.args[1] = arg1;
  return data;
}

TEST(BuildFilter, NotifiesOfTheRulesAndAllowsTheRest) {
  const auto program = build_filter(test::call_rules());
  ASSERT_TRUE(program) << program.error().text();
  for (const TrapRule& rule : test::call_rules()) {
    if (rule.condition) continue;
    EXPECT_EQ(verdict(*program, call(rule.nr)), SECCOMP_RET_USER_NOTIF) << rule.nr;
  }
  for (const int nr :
       {SYS_close, SYS_futex, SYS_execve, SYS_exit_group, SYS_clone, SYS_mmap, SYS_kill, SYS_getpid, 4000})
    EXPECT_EQ(verdict(*program, call(nr)), SECCOMP_RET_ALLOW) << nr;
}

TEST(BuildFilter, LooksAtTheMaskedArgumentForEachOfItsValues) {
  const auto program = build_filter(test::call_rules());
  ASSERT_TRUE(program);
  EXPECT_EQ(verdict(*program, call(SYS_fcntl, F_SETLKW)), SECCOMP_RET_USER_NOTIF);
  EXPECT_EQ(verdict(*program, call(SYS_fcntl, F_OFD_SETLKW)), SECCOMP_RET_USER_NOTIF);
  EXPECT_EQ(verdict(*program, call(SYS_fcntl, F_SETLK)), SECCOMP_RET_ALLOW);
  EXPECT_EQ(verdict(*program, call(SYS_fcntl, F_GETFL)), SECCOMP_RET_ALLOW);
  // An int argument: the upper half of the register is whatever the caller left there.
  EXPECT_EQ(verdict(*program, call(SYS_fcntl, 0xdeadbeef00000000ULL | F_SETLKW)), SECCOMP_RET_USER_NOTIF);
}

TEST(BuildFilter, LeavesOtherArchitecturesAlone) {
  const auto program = build_filter(test::call_rules());
  ASSERT_TRUE(program);
  constexpr int x32_bit = 0x40000000;
  for (const int nr : {SYS_read, SYS_write, SYS_poll}) {
    EXPECT_EQ(verdict(*program, call(nr | x32_bit)), SECCOMP_RET_ALLOW) << "x32 " << nr;
    EXPECT_EQ(verdict(*program, call(nr, 0, AUDIT_ARCH_I386)), SECCOMP_RET_ALLOW) << "i386 " << nr;
  }
}

TEST(BuildFilter, NoRuleIsAFilterThatAllowsEverything) {
  const auto program = build_filter({});
  ASSERT_TRUE(program) << program.error().text();
  EXPECT_EQ(verdict(*program, call(SYS_read)), SECCOMP_RET_ALLOW);
}

TEST(BuildFilter, RefusesNonsense) {
  const TrapRule rule{.nr = SYS_read, .condition = TrapRule::Condition{6, ~0ULL, {0}}};  // there are six arguments
  EXPECT_FALSE(build_filter({&rule, 1}));
}

TEST(Listener, DeliversACallWithItsArgumentsAndContinuesIt) {
  const std::vector<TrapRule> rules{{.nr = SYS_lseek, .condition = {}}};
  Supervised child(rules, [] {
    const Fd file(::open("/proc/self/status", O_RDONLY));
    return ::lseek(file.get(), 7, SEEK_SET) == 7 ? 0 : 1;
  });
  ASSERT_TRUE(child.ready());
  EXPECT_TRUE(is_listener(child.listener()));
  const Status sync = set_sync_wake_up(child.listener());
  EXPECT_TRUE(sync || sync.error().code() == EINVAL) << sync.error().text();  // since 6.6
  child.go();
  const auto notification = receive(child.listener());
  ASSERT_TRUE(notification) << notification.error().text();
  EXPECT_EQ(notification->tid, child.pid());
  EXPECT_EQ(notification->nr, SYS_lseek);
  EXPECT_EQ(notification->args[1], 7U);
  EXPECT_TRUE(still_valid(child.listener(), notification->id));
  EXPECT_TRUE(answer_continue(child.listener(), notification->id));
  EXPECT_FALSE(still_valid(child.listener(), notification->id));
  const Status again = answer_continue(child.listener(), notification->id);
  ASSERT_FALSE(again);
  EXPECT_TRUE(again.error().gone() || again.error().code() == EINPROGRESS);  // the target has not left the call yet
  EXPECT_EQ(child.wait(), 0);
}

TEST(Listener, TellsThatTheTargetIsGone) {
  Supervised child(getppid_only, [] { return static_cast<int>(::syscall(SYS_getppid) != 0); });
  ASSERT_TRUE(child.ready());
  EXPECT_FALSE(hung_up(child.listener()));
  child.go();
  const auto notification = receive(child.listener());
  ASSERT_TRUE(notification);
  ::kill(child.pid(), SIGKILL);  // WAIT_KILLABLE_RECV lets a fatal signal through
  EXPECT_EQ(child.wait(), 128 + SIGKILL);
  const Status answered = answer_continue(child.listener(), notification->id);
  ASSERT_FALSE(answered);
  EXPECT_EQ(answered.error().code(), ENOENT);
  EXPECT_TRUE(eventually([&] { return hung_up(child.listener()); }));
}

TEST(Listener, ReceiveEndsWithTheLastTarget) {
  if (!receive_ends_with_targets()) GTEST_SKIP() << "the kernel does not do so (since Linux 6.11)";
  Supervised child(getppid_only, [] { return 0; });
  ASSERT_TRUE(child.ready());
  child.go();
  const auto notification = receive(child.listener());  // would block for ever
  ASSERT_FALSE(notification);
  EXPECT_EQ(notification.error().code(), ENOENT);
  EXPECT_EQ(child.wait(), 0);
}

// WAIT_KILLABLE_RECV: once the notification is read, a signal waits for the answer, and the call is not interrupted.
TEST(Listener, ASignalDoesNotInterruptACallThatHasBeenRead) {
  static volatile sig_atomic_t handled = 0;
  Supervised child(getppid_only, [] {
    std::signal(SIGUSR1, [](int) { handled = 1; });
    const long rc = ::syscall(SYS_getppid);
    // The thread sanitizer runs the handler at the next call that it knows to block.
    for (int i = 0; i < 5000 && handled == 0; ++i) ::usleep(1000);
    return rc > 0 && handled != 0 ? 0 : 1;
  });
  ASSERT_TRUE(child.ready());
  child.go();
  const auto notification = receive(child.listener());
  ASSERT_TRUE(notification);
  ::kill(child.pid(), SIGUSR1);
  EXPECT_TRUE(answer_continue(child.listener(), notification->id));
  EXPECT_EQ(child.wait(), 0);
}

TEST(InstallFilter, SaysThatTheChainHasAListener) {
  Supervised child(getppid_only, [] {
    const auto program = build_filter(getppid_only);
    const auto second = install_filter(*program, {});
    return !second && second.error().code() == EBUSY ? 0 : 1;
  });
  ASSERT_TRUE(child.ready());
  child.go();
  EXPECT_EQ(child.wait(), 0);
}

TEST(InstallFilter, NeedsPrivilegeOrNoNewPrivs) {
  const auto program = build_filter(getppid_only);
  ASSERT_TRUE(program);
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::setresuid(65534, 65534, 65534) != 0) ::_exit(9);
    const auto refused = install_filter(*program, {});
    if (refused || refused.error().code() != EACCES) ::_exit(1);
    if (::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 0) ::_exit(2);
    if (!install_filter(*program, {.allow_no_new_privs = true})) ::_exit(3);
    if (::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1) ::_exit(4);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  if (WEXITSTATUS(status) == 9) GTEST_SKIP() << "needs root, to stop being root";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(InstallFilter, PrivilegeNeedsNoNoNewPrivs) {
  Supervised child(getppid_only, [] { return ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); });
  ASSERT_TRUE(child.ready()) << "needs CAP_SYS_ADMIN";
  child.go();
  EXPECT_EQ(child.wait(), 0);
}

TEST(IsListener, IsNotEveryDescriptor) {
  const Fd null(::open("/dev/null", O_RDONLY));
  EXPECT_FALSE(is_listener(null.get()));
  EXPECT_FALSE(is_listener(-1));
}

}  // namespace
}  // namespace swapd::sys
