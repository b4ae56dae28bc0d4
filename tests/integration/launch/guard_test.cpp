// The guard takes over when swapd is gone, however it went.
#include "guard/guard.h"

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
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fakes/send_descriptors.h"
#include "guard/guard_messages.h"
#include "guard/guard_process.h"
#include "guard_fixture.h"
#include "sys/process/pidfd.h"

namespace swapd::daemon {
namespace {

using test::eventually;
using test::state_of;
using test::Supervised;

TEST_F(GuardTest, KeepsAProgramAliveWhenSwapdIsKilled) {
  ASSERT_NO_FATAL_FAILURE(begin());
  go();
  ASSERT_TRUE(calls_go_on());
  kill_and_reap(swapd_);
  EXPECT_TRUE(calls_go_on());
  EXPECT_NE(state_of(progress_.guard.load()), '\0');
  end();
  EXPECT_TRUE(guard_ended());
}

TEST_F(GuardTest, SeveralProgramsAndTheirChildren) {
  ASSERT_NO_FATAL_FAILURE(begin(default_stale, 2, family()));
  go();
  ASSERT_TRUE(calls_go_on());
  kill_and_reap(swapd_);
  EXPECT_TRUE(calls_go_on());
  end();
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
  go();
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

TEST_F(GuardTest, NoProgramIsAnErrorThatNamesIt) {
  const auto guard = Guard::start({.program = "/nowhere/swapd-guard", .stale = default_stale, .state_dir = ""});
  ASSERT_FALSE(guard);
  EXPECT_EQ(guard.error().text(), "starting /nowhere/swapd-guard: No such file or directory");
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
  const std::array<int, 2> riding{0, 0};
  ASSERT_GT(fakes::send_descriptors(ours.get(), std::as_bytes(std::span(&message, 1)), riding), 0);
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
  std::array<ListenerSlot, 1> slots{};
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
  // A place that there is not, and what only a guard says.
  const GuardMessage outside{.slot = 1, .sequence = 8};
  const GuardMessage not_for_it{.kind = GuardMessage::Kind::give, .sequence = 9};
  for (const GuardMessage& message : {outside, not_for_it}) {
    ASSERT_TRUE(send_message(ours.get(), message, ours.get()));
    const auto answer = await_message(ours.get(), std::chrono::seconds(5));
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->message.sequence, message.sequence);
    EXPECT_EQ(answer->message.error, EINVAL);
  }
  ours.reset();  // nothing held, nobody to talk to
  int status = -1;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace swapd::daemon
