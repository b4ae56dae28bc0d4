#include "observe/resolve/syscall_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <map>

namespace swapd::observe {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;
using testing::UnorderedElementsAre;

std::vector<int> numbers(const std::vector<sys::TrapRule>& rules) {
  std::vector<int> out;
  for (const auto& rule : rules) out.push_back(rule.nr);
  return out;
}

TEST(SyscallTable, HoldersTrapsOnlyWhatHasNoDescriptor) {
  EXPECT_THAT(numbers(observe_rules(History::holders, false)),
              UnorderedElementsAre(SYS_msgsnd, SYS_msgrcv, SYS_semop, SYS_semtimedop));
}

TEST(SyscallTable, CallsTrapsTheWholeList) {
  EXPECT_THAT(numbers(observe_rules(History::calls, false)),
              UnorderedElementsAre(SYS_read, SYS_readv, SYS_pread64, SYS_preadv, SYS_preadv2, SYS_write, SYS_writev,
                                   SYS_pwrite64, SYS_pwritev, SYS_pwritev2, SYS_sendfile, SYS_splice, SYS_sendto,
                                   SYS_sendmsg, SYS_sendmmsg, SYS_recvfrom, SYS_recvmsg, SYS_recvmmsg, SYS_accept,
                                   SYS_accept4, SYS_connect, SYS_select, SYS_pselect6, SYS_poll, SYS_ppoll,
                                   SYS_epoll_wait, SYS_epoll_pwait, SYS_epoll_pwait2, SYS_msgsnd, SYS_msgrcv, SYS_semop,
                                   SYS_semtimedop, SYS_mq_timedsend, SYS_mq_timedreceive, SYS_flock, SYS_fcntl,
                                   SYS_rt_sigsuspend, SYS_rt_sigtimedwait, SYS_pause, SYS_wait4, SYS_waitid));
}

// docs/design.md, Trapped calls: these cannot give EINTR by themselves.
TEST(SyscallTable, NeverTrapped) {
  for (const bool kill : {false, true}) {
    for (const History history : {History::holders, History::calls}) {
      const auto trapped = numbers(observe_rules(history, kill));
      for (const int nr : {SYS_close, SYS_dup, SYS_dup2, SYS_dup3, SYS_fork, SYS_vfork, SYS_clone, SYS_clone3, SYS_exit,
                           SYS_exit_group, SYS_execve, SYS_mmap, SYS_rt_sigreturn, SYS_restart_syscall, SYS_seccomp,
                           SYS_futex, SYS_openat, SYS_ioctl}) {
        EXPECT_THAT(trapped, Not(Contains(nr)));
        EXPECT_FALSE(is_trapped(nr, history, kill));
      }
    }
  }
}

TEST(SyscallTable, TheKillFamilyIsASetting) {
  for (const int nr :
       {SYS_kill, SYS_tkill, SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_pidfd_send_signal}) {
    EXPECT_FALSE(is_trapped(nr, History::calls, false));
    EXPECT_TRUE(is_trapped(nr, History::holders, true));
  }
}

TEST(SyscallTable, FormsThatCannotBlockAreLeftAlone) {
  std::map<int, sys::TrapRule::Condition> conditions;
  for (const auto& rule : observe_rules(History::calls, false)) {
    if (rule.condition) conditions[rule.nr] = *rule.condition;
  }
  const auto traps = [&](int nr, std::uint64_t argument) {
    const auto& condition = conditions.at(nr);
    return std::find(condition.values.begin(), condition.values.end(), argument & condition.mask) !=
           condition.values.end();
  };
  EXPECT_EQ(conditions.at(SYS_flock).arg, 1U);
  EXPECT_TRUE(traps(SYS_flock, 1));               // LOCK_SH
  EXPECT_TRUE(traps(SYS_flock, 2));               // LOCK_EX
  EXPECT_FALSE(traps(SYS_flock, 2 | 4));          // LOCK_EX | LOCK_NB
  EXPECT_FALSE(traps(SYS_flock, 8));              // LOCK_UN
  EXPECT_TRUE(traps(SYS_flock, 2 | 1ULL << 40));  // the kernel takes an int
  EXPECT_TRUE(traps(SYS_fcntl, 7));               // F_SETLKW
  EXPECT_TRUE(traps(SYS_fcntl, 38));              // F_OFD_SETLKW
  EXPECT_FALSE(traps(SYS_fcntl, 6));              // F_SETLK
  EXPECT_FALSE(traps(SYS_fcntl, 3));              // F_GETFL
  EXPECT_TRUE(traps(SYS_wait4, 2));               // WUNTRACED
  EXPECT_FALSE(traps(SYS_wait4, 1));              // WNOHANG
  EXPECT_FALSE(traps(SYS_recvfrom, 0x40));        // MSG_DONTWAIT
  EXPECT_TRUE(traps(SYS_recvfrom, 0x100));        // MSG_WAITALL
  EXPECT_FALSE(traps(SYS_msgrcv, 04000));         // IPC_NOWAIT
}

TEST(SyscallTable, Names) {
  EXPECT_EQ(call_name(SYS_read), "read");
  EXPECT_EQ(call_name(SYS_epoll_pwait2), "epoll_pwait2");
  EXPECT_EQ(call_name(-1), "none");
  EXPECT_EQ(call_name(100000), "");
  EXPECT_EQ(call_entry(SYS_splice).in_arg, 0);
  EXPECT_EQ(call_entry(SYS_splice).fd_arg, 2);
  EXPECT_EQ(call_entry(-5).kind, CallKind::unknown);
}

}  // namespace
}  // namespace swapd::observe
