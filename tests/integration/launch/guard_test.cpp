// The guard takes over when swapd is gone, however it went.
#include "guard.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "guard_fixture.h"
#include "guard_messages.h"
#include "guard_process.h"
#include "sys/pidfd.h"

namespace swapd::daemon {
namespace {

using test::eventually;
using test::state_of;
using test::Supervised;

// How many a guard holds.
int listeners(const Guard& guard) {
  int count = 0;
  for (int fd = 0; fd < 128; ++fd) {
    std::array<char, 64> target{};
    const std::string link = "/proc/" + std::to_string(guard.pid()) + "/fd/" + std::to_string(fd);
    if (::readlink(link.c_str(), target.data(), target.size() - 1) > 0)
      count += std::string_view(target.data()) == "anon_inode:seccomp notify" ? 1 : 0;
  }
  return count;
}

TEST_F(GuardTest, KeepsAProgramAliveWhenSwapdIsKilled) {
  ASSERT_NO_FATAL_FAILURE(begin());
  program_->go();
  ASSERT_TRUE(calls_go_on());
  kill_and_reap(swapd_);
  EXPECT_TRUE(calls_go_on());
  EXPECT_NE(state_of(progress_.guard.load()), '\0');
  end();
  EXPECT_TRUE(guard_ended());
}

TEST_F(GuardTest, SeveralProgramsAndTheirChildren) {
  const auto family = [this] {
    for (int i = 0; i < 3; ++i)
      if (::fork() == 0) ::_exit(caller()());
    int failed = caller()();
    for (int status = 0; ::wait(&status) > 0;) failed |= status;
    return failed;
  };
  Supervised first(getppid_only, family);
  Supervised second(getppid_only, family);
  ASSERT_TRUE(first.ready() && second.ready());
  Fd one = first.take_listener();
  Fd two = second.take_listener();
  const pid_t swapd = start_swapd({one.get(), two.get()}, true);
  ASSERT_TRUE(eventually([&] { return progress_.held.load() == 2; }));
  one.reset();
  two.reset();
  first.go();
  second.go();
  ASSERT_TRUE(calls_go_on());
  kill_and_reap(swapd);
  EXPECT_TRUE(calls_go_on());
  progress_.stop.store(true);
  EXPECT_EQ(first.wait(), 0);
  EXPECT_EQ(second.wait(), 0);
}

TEST_F(GuardTest, LeavesTheAnsweringToALivingSwapd) {
  Supervised program(getppid_only, caller());
  ASSERT_TRUE(program.ready());
  Fd ours = program.take_listener();
  const pid_t swapd = start_swapd({ours.get()}, false, std::chrono::hours(1));  // alive, and does not answer
  ASSERT_TRUE(eventually([&] { return progress_.held.load() == 1; }));
  program.go();
  const auto notification = sys::receive(ours.get());  // nobody has taken it
  ASSERT_TRUE(notification);
  EXPECT_EQ(progress_.calls.load(), 0);
  EXPECT_TRUE(sys::answer_continue(ours.get(), notification->id));
  ours.reset();
  kill_and_reap(swapd);
  EXPECT_TRUE(calls_go_on());
  progress_.stop.store(true);
  EXPECT_EQ(program.wait(), 0);
}

TEST_F(GuardTest, IsNotWokenByNotifications) {
  ASSERT_NO_FATAL_FAILURE(begin(std::chrono::hours(1)));
  ASSERT_TRUE(eventually([&] { return state_of(progress_.guard.load()) == 'S'; }));
  const long before = guard_switches();
  program_->go();
  ASSERT_TRUE(calls_go_on());
  EXPECT_EQ(guard_switches(), before);
  end();
  kill_and_reap(swapd_);
}

TEST_F(GuardTest, EndsAtOnceWhenThereIsNothingToGuard) {
  const pid_t swapd = start_swapd({}, false);
  ASSERT_TRUE(eventually([&] { return progress_.guard.load() != 0; }));
  kill_and_reap(swapd);
  EXPECT_TRUE(guard_ended());
}

TEST_F(GuardTest, StandsApartFromTheTerminalAndIsNamed) {
  const pid_t swapd = start_swapd({}, false);
  ASSERT_TRUE(eventually([&] { return progress_.guard.load() != 0; }));
  const pid_t guard = progress_.guard.load();
  EXPECT_TRUE(eventually([&] { return ::getsid(guard) == guard; }));
  EXPECT_TRUE(eventually([&] {
    std::ifstream comm("/proc/" + std::to_string(guard) + "/comm");
    std::string name;
    std::getline(comm, name);
    return name == "swapd-guard";
  }));
  EXPECT_TRUE(eventually([&] { return ::getpriority(PRIO_PROCESS, static_cast<id_t>(guard)) == -20; }));
  ASSERT_TRUE(eventually([&] { return state_of(guard) == 'S'; }));
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::kill(guard, signal);
  EXPECT_EQ(state_of(guard), 'S');
  kill_and_reap(swapd);
}

TEST_F(GuardTest, SaysThatItIsFull) {
  Supervised program(getppid_only, [] { return 0; });
  ASSERT_TRUE(program.ready());
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit few{40, 40};
    ::setrlimit(RLIMIT_NOFILE, &few);
    auto guard = Guard::start(guard_options());
    if (!guard) ::_exit(1);
    progress_.guard.store(guard->pid());
    int held = 0;
    for (;;) {
      const auto status = guard->hold(program.listener());
      if (!status) ::_exit(status.error().code() == EMFILE && held > 20 ? 0 : 2);
      ++held;
    }
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  program.go();
  EXPECT_EQ(program.wait(), 0);
}

// Swapd lives, and has lost its guard.
TEST_F(GuardTest, AnotherTakesItsPlace) {
  ASSERT_NO_FATAL_FAILURE(begin());
  program_->go();
  for (int round = 0; round < 5; ++round) {
    const int before = progress_.guard.load();
    ::kill(before, SIGKILL);
    ASSERT_TRUE(calls_go_on());
    ASSERT_TRUE(eventually([&] { return progress_.guard.load() != before; })) << round;
  }
  kill_and_reap(swapd_);
  EXPECT_TRUE(calls_go_on());
  end();
  EXPECT_TRUE(guard_ended());
}

TEST_F(GuardTest, AnotherHoldsEveryListener) {
  Supervised first(getppid_only, caller());
  Supervised second(getppid_only, caller());
  ASSERT_TRUE(first.ready() && second.ready());
  Fd one = first.take_listener();
  Fd two = second.take_listener();
  const pid_t swapd = start_swapd({one.get(), two.get()}, true);
  ASSERT_TRUE(eventually([&] { return progress_.held.load() == 2; }));
  const int before = progress_.guard.load();
  ::kill(before, SIGKILL);
  ASSERT_TRUE(eventually([&] { return progress_.guard.load() != before; }));
  one.reset();
  two.reset();
  kill_and_reap(swapd);
  first.go();
  second.go();
  ASSERT_TRUE(calls_go_on());
  progress_.stop.store(true);
  EXPECT_EQ(first.wait(), 0);
  EXPECT_EQ(second.wait(), 0);
}

// A launch need not wait until somebody has noticed.
TEST_F(GuardTest, HoldStartsAnotherWhereTheGuardIsDead) {
  Supervised program(getppid_only, [] { return 0; });
  ASSERT_TRUE(program.ready());
  auto guard = Guard::start(guard_options());
  ASSERT_TRUE(guard);
  ASSERT_TRUE(guard->hold(program.listener()));
  const pid_t before = guard->pid();
  ::kill(before, SIGKILL);
  EXPECT_TRUE(guard->hold(program.listener()));
  EXPECT_NE(guard->pid(), before);
  EXPECT_EQ(state_of(before), '\0') << "reaped";
  program.go();
  EXPECT_EQ(program.wait(), 0);
}

// It holds what it held, and nobody else does: it is not ended for being slow.
TEST_F(GuardTest, OneThatIsStoppedIsLeftAlone) {
  Supervised program(getppid_only, [] { return 0; });
  ASSERT_TRUE(program.ready());
  auto guard = Guard::start(guard_options());
  ASSERT_TRUE(guard);
  const pid_t before = guard->pid();
  ::kill(before, SIGSTOP);
  ASSERT_TRUE(eventually([&] { return state_of(before) == 'T'; }));
  const auto late = guard->hold(program.listener());
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), ETIMEDOUT);
  EXPECT_TRUE(guard->look_after());
  EXPECT_EQ(guard->pid(), before);
  ::kill(before, SIGCONT);
  EXPECT_TRUE(guard->hold(program.listener()));
  program.go();
  EXPECT_EQ(program.wait(), 0);
}

// No place for another process's ends: it is tried again, and nobody is killed for it.
TEST_F(GuardTest, WhereNoneCanBeStartedItIsTriedAgain) {
  Supervised program(getppid_only, [] { return 0; });
  ASSERT_TRUE(program.ready());
  auto guard = Guard::start(guard_options());
  ASSERT_TRUE(guard);
  ASSERT_TRUE(guard->hold(program.listener()));
  const pid_t before = guard->pid();
  ::kill(before, SIGKILL);
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const int next = Fd(::dup(0)).get();
  const rlimit full{static_cast<rlim_t>(next), limit.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &full);
  EXPECT_TRUE(eventually([&] { return !guard->look_after(); }));
  EXPECT_FALSE(guard->look_after());
  EXPECT_EQ(guard->pid(), before);
  ::setrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_TRUE(guard->look_after());
  EXPECT_NE(guard->pid(), before);
  EXPECT_EQ(listeners(*guard), 1);
  program.go();
  EXPECT_EQ(program.wait(), 0);
}

// In a child, whose limit cannot be raised again.
TEST_F(GuardTest, WhatTheNextOneCannotHoldItHoldsLater) {
  Supervised first(getppid_only, [] { return 0; });
  Supervised second(getppid_only, [] { return 0; });
  ASSERT_TRUE(first.ready() && second.ready());
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    auto guard = Guard::start(guard_options());
    // Ours have high numbers, so that a low limit, which the next guard inherits, is no hindrance to us.
    std::vector<Fd> low;
    for (int i = 0; i < 64; ++i) low.emplace_back(::dup(0));
    for (int i = 0; i < 20; ++i)
      for (const Supervised* program : {&first, &second})
        if (!guard->hold(program->listener())) ::_exit(1);
    low.clear();
    const rlimit few{40, 40};
    ::setrlimit(RLIMIT_NOFILE, &few);
    ::kill(guard->pid(), SIGKILL);
    int code = 0;
    if (!eventually([&] {
          const Status looked = guard->look_after();
          if (!looked) code = looked.error().code();
          return !looked;
        }))
      ::_exit(2);
    if (code != EMFILE || listeners(*guard) == 40) ::_exit(3);
    first.go();  // it ends, and there is room
    ::_exit(eventually([&] { return guard->look_after() && listeners(*guard) == 20; }) ? 0 : 4);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(first.wait(), 0);
  second.go();
  EXPECT_EQ(second.wait(), 0);
}

TEST_F(GuardTest, NoProgramIsAnErrorThatNamesIt) {
  const auto guard = Guard::start({.program = "/nowhere/swapd-guard", .stale = default_stale, .state_dir = ""});
  ASSERT_FALSE(guard);
  EXPECT_EQ(guard.error().text(), "starting the guard /nowhere/swapd-guard: No such file or directory");
}

TEST_F(GuardTest, StartedByHandItSaysSo) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(2);
    ::execl(SWAPD_GUARD_BINARY, "swapd-guard", nullptr);
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 2);
}

TEST_F(GuardTest, ForgetsAListenerWhoseProgramsHaveEnded) {
  auto guard = Guard::start(guard_options());
  ASSERT_TRUE(guard);
  {
    Supervised program(getppid_only, [] { return 0; });
    ASSERT_TRUE(program.ready());
    ASSERT_TRUE(guard->hold(program.listener()));
    EXPECT_EQ(listeners(*guard), 1);
    program.go();
    EXPECT_EQ(program.wait(), 0);
    // While we still have ours: one file, two descriptors.
    EXPECT_TRUE(eventually([&] { return listeners(*guard) == 0; }));
  }
  Supervised another(getppid_only, [] { return 0; });
  ASSERT_TRUE(another.ready());
  EXPECT_TRUE(guard->hold(another.listener()));
  EXPECT_EQ(listeners(*guard), 1);
  another.go();
  EXPECT_EQ(another.wait(), 0);
  const pid_t pid = guard->pid();
  {
    const Guard ended = std::move(guard).value();  // and its socket
  }
  int status = -1;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
}

// An alignment leaves room for two where there is room for one.
TEST_F(GuardTest, OneDescriptorIsTakenAndTheOthersAreClosed) {
  std::array<int, 2> pair{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()), 0);
  const Fd ours(pair[0]);
  const Fd theirs(pair[1]);
  GuardMessage message;
  iovec part{&message, sizeof message};
  const std::array<int, 2> riding{0, 0};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof riding)> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  cmsghdr* rights = CMSG_FIRSTHDR(&header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof riding);
  std::memcpy(CMSG_DATA(rights), riding.data(), sizeof riding);
  ASSERT_GT(::sendmsg(ours.get(), &header, 0), 0);
  const int next = Fd(::dup(0)).get();  // the lowest number that is free
  {
    const auto received = receive_message(theirs.get());
    ASSERT_TRUE(received);
    EXPECT_EQ(received->fd.get(), next);
  }
  EXPECT_EQ(Fd(::dup(0)).get(), next);
  EXPECT_EQ(::fcntl(next + 1, F_GETFD), -1) << "closed as well";
}

// Another version's messages, and what is no message, do not disturb it.
TEST_F(GuardTest, SurvivesStrangeMessages) {
  std::array<observe::ListenerSlot, 1> slots{};
  std::array<int, 2> pair{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()), 0);
  Fd ours(pair[0]);
  const pid_t pid = ::fork();
  if (pid == 0)
    run_guard(Fd(pair[1]), std::move(sys::open_pidfd(::getppid())).value(),
              {.slots = slots, .stale = default_stale, .state_dir = {}});
  ::close(pair[1]);
  GuardMessage future;
  future.version = 9;
  ASSERT_TRUE(send_message(ours.get(), future));
  ASSERT_EQ(::write(ours.get(), "?", 1), 1);
  const GuardMessage empty{.sequence = 7};  // a hold without a descriptor
  ASSERT_TRUE(send_message(ours.get(), empty));
  ASSERT_TRUE(eventually([&] {
    const auto answer = receive_message(ours.get());
    return answer && answer->message.sequence == 7 && answer->message.error == EBADF;
  }));
  ours.reset();  // nothing held, nobody to talk to
  int status = -1;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace swapd::daemon
