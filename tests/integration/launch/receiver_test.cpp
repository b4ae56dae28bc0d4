// Programs under a filter with a real receiver: what they do must be what they do without.
#include "observe/seccomp/receiver.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fstream>
#include <string>
#include <thread>

#include "supervised.h"

namespace swapd::observe {
namespace {

using test::call_rules;
using test::eventually;
using test::state_of;
using test::Supervised;

const std::vector<sys::TrapRule> getppid_only{{.nr = SYS_getppid, .condition = {}}};

// A child with a receiver that answers for it.
struct Answered {
  Answered(std::span<const sys::TrapRule> rules, std::function<int()> body, Receiver::Callbacks callbacks = {},
           bool poll_first = !sys::receive_ends_with_targets())
      : child(rules, std::move(body)) {
    if (!callbacks.finished) callbacks.finished = [this] { finished.store(true); };
    receiver = std::make_unique<Receiver>(child.take_listener(), &slot, std::move(callbacks), poll_first);
  }
  Supervised child;
  ListenerSlot slot{};
  std::atomic<bool> finished{false};
  std::unique_ptr<Receiver> receiver;
};

// One of each of the calls in call_rules() that a single process can make.
int make_calls() {
  std::array<int, 2> ends{};
  std::array<char, 4> text{};
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) != 0) return 1;
  if (::write(ends[0], "abc", 3) != 3 || ::read(ends[1], text.data(), 3) != 3) return 2;
  if (std::string_view(text.data()) != "abc") return 3;
  if (::send(ends[1], "de", 2, 0) != 2 || ::recv(ends[0], text.data(), 4, 0) != 2) return 4;
  errno = 0;
  if (::recv(ends[0], text.data(), 4, MSG_DONTWAIT) != -1 || errno != EAGAIN) return 5;
  errno = 0;
  if (::read(-1, text.data(), 1) != -1 || errno != EBADF) return 6;
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(42);
  int status = 0;
  if (::waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 42) return 7;
  errno = 0;
  if (::waitpid(-1, &status, 0) != -1 || errno != ECHILD) return 8;
  return 0;
}

TEST(Receiver, AnswersAndKeepsARecordOfEachCall) {
  Answered run(getppid_only, [] {
    for (int i = 0; i < 100; ++i)
      if (::syscall(SYS_getppid, 1, 2, i) <= 0) return 1;
    return 0;
  });
  ASSERT_TRUE(run.receiver->start());
  const Time before = std::chrono::steady_clock::now();
  run.child.go();
  EXPECT_EQ(run.child.wait(), 0);
  EXPECT_TRUE(eventually([&] { return run.finished.load(); }));
  EXPECT_EQ(run.receiver->received(), 100U);
  EXPECT_EQ(run.receiver->lost(), 0U);
  EXPECT_EQ(run.slot.open_id.load(), 0U);
  std::array<RawCall, 64> calls;
  EXPECT_EQ(run.receiver->drain(calls.data(), calls.size()), 64U);
  EXPECT_EQ(calls[5].tid, run.child.pid());
  EXPECT_EQ(calls[5].nr, SYS_getppid);
  EXPECT_EQ(calls[5].args[2], 5U);
  EXPECT_LE(before, calls[0].time);
  EXPECT_LE(calls[0].time, calls[63].time);
  EXPECT_EQ(run.receiver->drain(calls.data(), calls.size()), 36U);
  EXPECT_EQ(run.receiver->drain(calls.data(), calls.size()), 0U);
}

TEST(Receiver, CountsWhatFindsTheRingFull) {
  Answered run(getppid_only, [] {
    for (int i = 0; i < 5000; ++i) ::syscall(SYS_getppid);
    return 0;
  });
  ASSERT_TRUE(run.receiver->start());
  run.child.go();
  EXPECT_EQ(run.child.wait(), 0);
  EXPECT_TRUE(eventually([&] { return run.finished.load(); }));
  EXPECT_EQ(run.receiver->received(), 5000U);
  EXPECT_EQ(run.receiver->lost(), 5000U - 4096U);
}

TEST(Receiver, WakesItsReaderOnlyWhenUrgentAndOnceForABatch) {
  std::atomic<int> wakes{0};
  Answered run(getppid_only,
               [] {
                 for (int i = 0; i < 10; ++i) ::syscall(SYS_getppid);
                 ::raise(SIGSTOP);
                 for (int i = 0; i < 10; ++i) ::syscall(SYS_getppid);
                 return 0;
               },
               {.wake = [&] { ++wakes; }, .finished = {}});
  ASSERT_TRUE(run.receiver->start());
  run.child.go();
  ASSERT_TRUE(eventually([&] { return state_of(run.child.pid()) == 'T' && run.receiver->received() == 10; }));
  EXPECT_EQ(wakes.load(), 0);
  run.receiver->set_urgent(true);
  std::array<RawCall, 64> calls;
  EXPECT_EQ(run.receiver->drain(calls.data(), calls.size()), 10U);
  ::kill(run.child.pid(), SIGCONT);
  EXPECT_EQ(run.child.wait(), 0);
  EXPECT_TRUE(eventually([&] { return run.finished.load(); }));
  EXPECT_EQ(wakes.load(), 1);  // nobody drained, so the nine others found the ring not empty
}

class EveryKernel : public testing::TestWithParam<bool> {};  // poll_first: as on kernels before 6.11

TEST_P(EveryKernel, AllCallsHaveTheirOwnResults) {
  Answered run(call_rules(), make_calls, {}, GetParam());
  ASSERT_TRUE(run.receiver->start());
  run.child.go();
  EXPECT_EQ(run.child.wait(), 0);
  EXPECT_TRUE(eventually([&] { return run.finished.load(); }));
  EXPECT_EQ(run.receiver->received(), 8U);
}

TEST_P(EveryKernel, EndsWhenAskedToAlthoughTargetsLive) {
  Answered run(
      getppid_only, [] { return ::pause(); }, {}, GetParam());
  ASSERT_TRUE(run.receiver->start());
  run.child.go();
  ASSERT_TRUE(eventually([&] { return state_of(run.child.pid()) == 'S'; }));
  run.receiver.reset();
  EXPECT_FALSE(run.finished.load());  // that was no hang-up
}

TEST_P(EveryKernel, EndsWithTheLastOfAForkTree) {
  Answered run(
      call_rules(),
      [] {
        for (int depth = 0; depth < 3; ++depth)
          if (::fork() != 0) break;
        int status = 0;
        while (::wait(&status) > 0)
          if (status != 0) return 1;
        return ::syscall(SYS_getppid) > 0 ? 0 : 1;
      },
      {}, GetParam());
  ASSERT_TRUE(run.receiver->start());
  run.child.go();
  EXPECT_EQ(run.child.wait(), 0);
  EXPECT_TRUE(eventually([&] { return run.finished.load(); }));
}

INSTANTIATE_TEST_SUITE_P(Receive, EveryKernel, testing::Values(false, true),
                         [](const auto& param) { return std::string(param.param ? "PollFirst" : "Blocking"); });

TEST(Receiver, AThousandShortChildren) {
  constexpr int children = 1000;
  Answered run(call_rules(), [] {
    for (int i = 0; i < children; ++i) {
      const pid_t pid = ::fork();
      if (pid < 0) return 1;
      if (pid == 0) {
        std::array<int, 2> ends{};
        char byte = 'x';
        if (::pipe(ends.data()) != 0) ::_exit(1);
        ::_exit(::write(ends[1], &byte, 1) == 1 && ::read(ends[0], &byte, 1) == 1 ? 0 : 1);
      }
      int status = 0;
      if (::waitpid(pid, &status, 0) != pid || status != 0) return 2;
    }
    return 0;
  });
  ASSERT_TRUE(run.receiver->start());
  run.child.go();
  EXPECT_EQ(run.child.wait(), 0);
  EXPECT_TRUE(eventually([&] { return run.finished.load(); }));
  EXPECT_GE(run.receiver->received(), 3U * children);
}

TEST(Receiver, ATargetKilledAtAnyMomentLeavesTheOthersBe) {
  Answered run(getppid_only, [] {
    for (int round = 0; round < 100; ++round) {
      const pid_t victim = ::fork();
      if (victim == 0)
        for (;;) ::syscall(SYS_getppid);  // in mid-notification most of the time
      for (int i = 0; i < round; ++i) ::syscall(SYS_getppid);
      ::kill(victim, SIGKILL);
      int status = 0;
      if (::waitpid(victim, &status, 0) != victim || WTERMSIG(status) != SIGKILL) return 1;
      if (::syscall(SYS_getppid) <= 0) return 2;
    }
    return 0;
  });
  ASSERT_TRUE(run.receiver->start());
  run.child.go();
  EXPECT_EQ(run.child.wait(), 0);
  EXPECT_TRUE(eventually([&] { return run.finished.load(); }));
  EXPECT_EQ(run.slot.open_id.load(), 0U);
}

// signal(7): a read on a pipe that a handler without SA_RESTART interrupts gives EINTR, with it goes on.
TEST(Receiver, SignalsInterruptAndRestartAsEver) {
  static std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  Answered run(call_rules(), [] {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    ::sigaction(SIGUSR1, &action, nullptr);
    char byte = 0;
    if (::read(ends[0], &byte, 1) != -1 || errno != EINTR) return 1;
    action.sa_flags = SA_RESTART;
    ::sigaction(SIGUSR2, &action, nullptr);
    return ::read(ends[0], &byte, 1) == 1 && byte == 'z' ? 0 : 2;
  });
  ASSERT_TRUE(run.receiver->start());
  // It sleeps in the call itself, not in the notification, once that has been answered.
  const auto blocked_after = [&](std::uint64_t calls) {
    return eventually([&] { return run.receiver->received() == calls && state_of(run.child.pid()) == 'S'; });
  };
  run.child.go();
  ASSERT_TRUE(blocked_after(1));
  ::kill(run.child.pid(), SIGUSR1);
  ASSERT_TRUE(blocked_after(2));
  ::kill(run.child.pid(), SIGUSR2);
  ASSERT_TRUE(blocked_after(3));  // the restarted call is notified of anew
  EXPECT_EQ(::write(ends[1], "z", 1), 1);
  EXPECT_EQ(run.child.wait(), 0);
  ::close(ends[0]);
  ::close(ends[1]);
}

// Many signals against many calls: nothing is lost, and a call that SA_RESTART covers never gives EINTR.
TEST(Receiver, AStormOfSignalsWithRestart) {
  constexpr int rounds = 2000;
  Answered run(call_rules(), [] {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    action.sa_flags = SA_RESTART;
    ::sigaction(SIGALRM, &action, nullptr);
    const itimerval timer{{0, 200}, {0, 200}};
    std::array<int, 2> pair{};
    if (::pipe(pair.data()) != 0 || ::setitimer(ITIMER_REAL, &timer, nullptr) != 0) return 1;
    for (int i = 0; i < rounds; ++i) {
      const char out = static_cast<char>(i);
      char in = 0;
      if (::write(pair[1], &out, 1) != 1 || ::read(pair[0], &in, 1) != 1 || in != out) return 2;
    }
    return 0;
  });
  ASSERT_TRUE(run.receiver->start());
  run.child.go();
  EXPECT_EQ(run.child.wait(), 0);
}

TEST(Receiver, TheShellDoesWhatItDoes) {
  static std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  Answered run(call_rules(), [] {
    ::dup2(ends[1], 1);
    ::execl("/bin/sh", "sh", "-c", "for i in 3 1 2; do echo $i; done | sort | (read a; read b; echo $a-$b); exit 7",
            nullptr);
    return 127;
  });
  ::close(ends[1]);
  ASSERT_TRUE(run.receiver->start());
  run.child.go();
  std::string out;
  std::array<char, 64> chunk;
  for (ssize_t n = 0; (n = ::read(ends[0], chunk.data(), chunk.size())) > 0;)
    out.append(chunk.data(), static_cast<std::size_t>(n));
  ::close(ends[0]);
  EXPECT_EQ(out, "1-2\n");
  EXPECT_EQ(run.child.wait(), 7);
}

TEST(Receiver, IsOrdinaryAtItsBestNice) {
  Answered run(getppid_only, [] { return 0; });
  ASSERT_TRUE(run.receiver->start());
  EXPECT_EQ(::sched_getscheduler(run.receiver->tid()), SCHED_OTHER);
  EXPECT_EQ(::getpriority(PRIO_PROCESS, static_cast<id_t>(run.receiver->tid())), -20);
  std::ifstream comm("/proc/self/task/" + std::to_string(run.receiver->tid()) + "/comm");
  std::string name;
  std::getline(comm, name);
  EXPECT_EQ(name, "swapd-recv");
}

TEST(Receiver, FollowsAMemberAndComesBack) {
  Answered run(getppid_only, [] {
    for (int i = 0; i < 100; ++i)
      if (::syscall(SYS_getppid) <= 0) return 1;
    return 0;
  });
  ASSERT_TRUE(run.receiver->start());
  const pid_t tid = run.receiver->tid();
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(tid, sizeof before, &before), 0);
  std::size_t cpu = 0;
  while (!CPU_ISSET(cpu, &before)) ++cpu;

  const Status followed = run.receiver->follow(static_cast<int>(cpu), 60);
  ASSERT_TRUE(followed) << followed.error().text();
  sched_param parameters{};
  ::sched_getparam(tid, &parameters);
  EXPECT_EQ(::sched_getscheduler(tid) & ~SCHED_RESET_ON_FORK, SCHED_FIFO);
  EXPECT_EQ(parameters.sched_priority, 60);
  cpu_set_t now;
  ::sched_getaffinity(tid, sizeof now, &now);
  EXPECT_EQ(CPU_COUNT(&now), 1);
  EXPECT_TRUE(CPU_ISSET(cpu, &now));

  const Status back = run.receiver->follow(-1, 0);
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(::sched_getscheduler(tid), SCHED_OTHER);
  EXPECT_EQ(::getpriority(PRIO_PROCESS, static_cast<id_t>(tid)), -20);
  ::sched_getaffinity(tid, sizeof now, &now);
  EXPECT_TRUE(CPU_EQUAL(&before, &now));

  EXPECT_FALSE(run.receiver->follow(100'000, 60));  // no such CPU
  run.child.go();
  EXPECT_EQ(run.child.wait(), 0);
  EXPECT_TRUE(eventually([&] { return run.finished.load(); }));
  EXPECT_TRUE(eventually([&] {
    const Status gone = run.receiver->follow(-1, 0);
    return !gone && gone.error().gone();
  }));
}

}  // namespace
}  // namespace swapd::observe
