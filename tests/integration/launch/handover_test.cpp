// What a swapd leaves to its guard, and what the next one takes over: calls it had received, and listeners.
#include "guard/guard_takeover.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/unix_address.h"
#include "guard/guard_messages.h"
#include "guard_fixture.h"
#include "sys/seccomp/seccomp.h"

namespace swapd::daemon {
namespace {

using test::eventually;
using test::state_of;
using test::Supervised;

// A call that has been received is received by nobody else. When swapd is killed with one in hand, the guard knows its
// id, or that of the one before.
TEST_F(GuardTest, ACallThatSwapdHadReceivedIsAnswered) {
  for (const bool written_down : {true, false}) {
    progress_.held.store(0);
    progress_.calls.store(0);
    progress_.stop.store(false);
    Supervised program(getppid_only, caller());
    ASSERT_TRUE(program.ready());
    Fd ours = program.take_listener();
    const pid_t swapd = start_story(ours.get(), [&](ListenerSlot& slot) {
      const auto first = sys::receive(ours.get());
      if (!first || !sys::answer_continue(ours.get(), first->id)) ::_exit(3);
      slot.last_id = first->id;
      const auto second = sys::receive(ours.get());
      if (!second) ::_exit(4);
      if (written_down) slot.open_id = second->id;
    });
    program.go();
    ASSERT_TRUE(eventually([&] { return progress_.held.load() == 2; }));
    ours.reset();
    EXPECT_EQ(progress_.calls.load(), 1);
    kill_and_reap(swapd);
    EXPECT_TRUE(calls_go_on());
    progress_.stop.store(true);
    EXPECT_EQ(program.wait(), 0);
    EXPECT_TRUE(guard_ended());
  }
}

// The very first call of a listener has no neighbour; the next one, of another thread, is one.
TEST_F(GuardTest, TheFirstCallIsFoundByTheNext) {
  Supervised program(getppid_only, [this] {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(caller()());
    int status = 0;
    const int own = caller()();
    ::waitpid(child, &status, 0);
    return own | status;
  });
  ASSERT_TRUE(program.ready());
  Fd ours = program.take_listener();
  const pid_t swapd = start_story(ours.get(), [&](ListenerSlot&) {
    if (!sys::receive(ours.get())) ::_exit(3);
  });
  program.go();
  ASSERT_TRUE(eventually([&] { return progress_.held.load() == 2; }));
  ours.reset();
  kill_and_reap(swapd);
  EXPECT_TRUE(calls_go_on());
  progress_.stop.store(true);
  EXPECT_EQ(program.wait(), 0);
}

// In the midst of calls: each time with another one in hand, or none.
TEST_F(GuardTest, WhereverTheKillComes) {
  for (int round = 0; round < 20; ++round) {
    ASSERT_NO_FATAL_FAILURE(begin(default_stale, 1, family()));
    go();
    ASSERT_TRUE(calls_go_on());
    kill_and_reap(swapd_);
    ASSERT_TRUE(calls_go_on()) << round;
    ASSERT_NO_FATAL_FAILURE(end()) << round;  // each of the four: none is left in a call
    ASSERT_TRUE(guard_ended());
  }
}

// The mode of its socket is the first defence; where it fails, the user is asked for.
TEST_F(GuardTest, AStrangerAtItsDoorIsGivenNothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  std::string dir = testing::TempDir() + "swapd-guard-XXXXXX";
  ASSERT_NE(::mkdtemp(dir.data()), nullptr);
  Supervised program(getppid_only, caller());
  ASSERT_TRUE(program.ready());
  Fd ours = program.take_listener();
  const pid_t swapd = ::fork();
  if (swapd == 0) {
    auto guard = Guard::start(guard_options(default_stale, dir));
    if (!guard || !guard->hold(ours.get(), 77)) ::_exit(1);
    progress_.guard.store(guard->pid());
    for (;;) ::pause();
  }
  ASSERT_TRUE(eventually([&] { return progress_.guard.load() != 0; }));
  const std::string door = guard_path(dir, progress_.guard.load());
  kill_and_reap(swapd);
  ours.reset();
  program.go();
  EXPECT_TRUE(calls_go_on());
  ASSERT_TRUE(eventually([&] { return ::access(door.c_str(), F_OK) == 0; }));
  ASSERT_EQ(::chmod(dir.c_str(), 0755), 0);
  ASSERT_EQ(::chmod(door.c_str(), 0666), 0);
  const pid_t stranger = ::fork();
  if (stranger == 0) {
    if (::setuid(65534) != 0) ::_exit(9);
    auto left = OrphanGuard::find(dir);
    ::_exit(left.size() == 1 && left.front().take() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(stranger, &status, 0), stranger);
  EXPECT_EQ(WEXITSTATUS(status), 0) << "1: it was given the listener; 9: it is still root";
  auto left = OrphanGuard::find(dir);
  ASSERT_EQ(left.size(), 1U);
  const auto taken = left.front().take();
  EXPECT_TRUE(taken && taken->size() == 1U) << "swapd's own user is let in";
  progress_.stop.store(true);
  EXPECT_EQ(program.wait(), 0);
  EXPECT_TRUE(guard_ended());
  std::filesystem::remove_all(dir);
}

// In the state directory there is a socket that is no guard's.
TEST_F(GuardTest, WhatGivesNoListenerIsNoGuard) {
  std::string dir = testing::TempDir() + "swapd-guard-XXXXXX";
  ASSERT_NE(::mkdtemp(dir.data()), nullptr);
  const auto address = unix_address(guard_path(dir, ::getpid()));
  const Fd door(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(door.get(), address->get(), address->size), 0);
  ASSERT_EQ(::listen(door.get(), 1), 0);
  std::thread impostor([&] {
    const Fd caller(::accept4(door.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const auto asked = await_message(caller.get(), std::chrono::seconds(10));
    GuardMessage answer;
    answer.kind = GuardMessage::Kind::answer;
    answer.sequence = asked ? asked->message.sequence : 0;
    const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    (void)send_message(caller.get(), answer, null.get());
  });
  auto left = OrphanGuard::find(dir);
  ASSERT_EQ(left.size(), 1U);
  const auto taken = left.front().take();
  impostor.join();
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().code(), EPROTO);
  std::filesystem::remove_all(dir);
}

// A swapd after another, each killed in the midst of calls: the next takes the listener over from the guard that was
// left, and that guard ends.
TEST_F(GuardTest, EachNextSwapdTakesOver) {
  std::string dir = testing::TempDir() + "swapd-guard-XXXXXX";
  ASSERT_NE(::mkdtemp(dir.data()), nullptr);
  Supervised program(getppid_only, caller());
  ASSERT_TRUE(program.ready());
  Fd ours = program.take_listener();
  const auto start = [&] {
    const pid_t pid = ::fork();
    if (pid != 0) return pid;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    auto guard = Guard::start(guard_options(default_stale, dir));
    if (!guard) ::_exit(1);
    std::vector<std::unique_ptr<observe::Receiver>> receivers;
    const auto receive = [&](Fd listener) {
      const auto slot = guard->hold(listener.get(), 77);
      if (!slot) ::_exit(2);
      receivers.push_back(
          std::make_unique<observe::Receiver>(std::move(listener), *slot, observe::Receiver::Callbacks{}));
      if (!receivers.back()->start()) ::_exit(3);
    };
    auto guards = OrphanGuard::find(dir);
    if (ours) receive(std::move(ours));
    for (OrphanGuard& left : guards) {
      auto taken = left.take();
      if (!taken || taken->size() != 1 || taken->front().launch != 77) ::_exit(4);
      receive(std::move(taken->front().listener));
      if (!left.done(0)) ::_exit(5);
    }
    if (receivers.size() != 1) ::_exit(6);
    progress_.held.store(guard->pid());
    for (;;) ::pause();
  };
  const auto door = [&](int guard) { return guard_path(dir, guard); };
  int before = 0;
  for (int round = 0; round < 10; ++round) {
    progress_.held.store(0);
    const pid_t swapd = start();
    ASSERT_TRUE(eventually([&] { return progress_.held.load() != 0; })) << round;
    const int guard = progress_.held.load();
    if (round == 0) {
      ours.reset();
      program.go();
    }
    EXPECT_TRUE(calls_go_on()) << round;
    EXPECT_TRUE(before == 0 || eventually([&] { return state_of(before) == '\0' || state_of(before) == 'Z'; }));
    kill_and_reap(swapd);
    EXPECT_TRUE(calls_go_on()) << round;
    EXPECT_TRUE(eventually([&] { return ::access(door(guard).c_str(), F_OK) == 0; })) << round;
    before = guard;
  }
  progress_.guard.store(before);
  progress_.stop.store(true);
  EXPECT_EQ(program.wait(), 0);
  EXPECT_TRUE(guard_ended());
  EXPECT_EQ(::rmdir(dir.c_str()), 0) << "nothing is left in it";
}

TEST_F(GuardTest, StandsInForASwapdThatIsStopped) {
  ASSERT_NO_FATAL_FAILURE(begin(std::chrono::milliseconds(40)));
  go();
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(calls_go_on());
    ::kill(swapd_, SIGSTOP);
    ASSERT_TRUE(eventually([&] { return state_of(swapd_) == 'T'; }));
    EXPECT_TRUE(calls_go_on()) << round;
    ::kill(swapd_, SIGCONT);
    EXPECT_TRUE(calls_go_on()) << round;
  }
  // Stopped again before it has written anything down: what it had received is far from the last that it knows of.
  for (int round = 0; round < 10; ++round) {
    ::kill(swapd_, SIGSTOP);
    ASSERT_TRUE(eventually([&] { return state_of(swapd_) == 'T'; }));
    EXPECT_TRUE(calls_go_on()) << round;
    EXPECT_TRUE(calls_go_on()) << round;
    ::kill(swapd_, SIGCONT);
  }
  // It has noticed that swapd is back: nothing wakes it but its own clock.
  EXPECT_TRUE(eventually([&] {
    const long switches = guard_switches();
    const long calls = progress_.calls.load();
    EXPECT_TRUE(calls_go_on());
    return guard_switches() - switches < (progress_.calls.load() - calls) / 10;
  }));
  ::kill(swapd_, SIGSTOP);
  kill_and_reap(swapd_);
  EXPECT_TRUE(calls_go_on());
  end();
}

}  // namespace
}  // namespace swapd::daemon
