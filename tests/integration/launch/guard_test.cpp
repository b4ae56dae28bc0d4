// The guard takes over when swapd is gone, however it went.
#include "guard.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <fstream>
#include <string>

#include "guard_messages.h"
#include "guard_process.h"
#include "handover.h"
#include "observe/receiver.h"
#include "supervised.h"
#include "sys/pidfd.h"

namespace swapd::daemon {
namespace {

using test::call_rules;
using test::eventually;
using test::state_of;
using test::Supervised;

const std::vector<sys::TrapRule> getppid_only{{.nr = SYS_getppid, .condition = {}}};

struct Progress {
  std::atomic<int> guard{0};
  std::atomic<int> held{0};  // listeners that the guard has; -errno
  std::atomic<long> calls{0};
  std::atomic<bool> stop{false};
};

// What a test and its processes share.
class GuardTest : public testing::Test {
 protected:
  GuardTest()
      : progress_(*new (::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
                      Progress) {}
  ~GuardTest() override {
    progress_.stop.store(true);
    // The guard of a test is nobody's child once its swapd is dead, so it is looked for by its number.
    EXPECT_TRUE(guard_ended());
    ::munmap(&progress_, sizeof(Progress));
  }

  [[nodiscard]] bool guard_ended() const {
    const int guard = progress_.guard.load();
    return guard == 0 || eventually([&] { return state_of(guard) == '\0' || state_of(guard) == 'Z'; });
  }

  // A swapd: a guard, and a receiver on the listener. It goes on until it is killed.
  pid_t start_swapd(const std::vector<int>& listeners, bool receive, Duration stale = default_stale) {
    const pid_t pid = ::fork();
    if (pid != 0) return pid;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    auto guard = Guard::start(stale);
    if (!guard) ::_exit(1);
    progress_.guard.store(guard->pid());
    std::vector<std::unique_ptr<observe::Receiver>> receivers;
    for (const int listener : listeners) {
      const auto held = guard->hold(listener);
      if (!held) {
        progress_.held.store(-held.error().code());
        ::_exit(2);
      }
      if (receive) {
        receivers.push_back(std::make_unique<observe::Receiver>(Fd(listener), *held, observe::Receiver::Callbacks{}));
        if (!receivers.back()->start()) ::_exit(3);
      }
      ++progress_.held;
    }
    for (;;) ::pause();
  }

  // Makes trapped calls until it is told to stop; 0 if each was right.
  std::function<int()> caller() {
    return [this] {
      while (!progress_.stop.load()) {
        if (::syscall(SYS_getppid) <= 0) return 1;  // ENOSYS where nobody holds the listener
        ++progress_.calls;
      }
      return 0;
    };
  }

  static void kill_and_reap(pid_t pid) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }

  // How often the guard has been woken.
  [[nodiscard]] long guard_switches() const {
    std::ifstream file("/proc/" + std::to_string(progress_.guard.load()) + "/status");
    for (std::string word; file >> word;)
      if (word == "voluntary_ctxt_switches:") {
        long count = -1;
        file >> count;
        return count;
      }
    return -1L;
  }

  // A swapd that receives calls itself, as the story has it, and is killed then.
  template <typename Story>
  pid_t start_story(int listener, const Story& story) {
    const pid_t pid = ::fork();
    if (pid != 0) return pid;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    auto guard = Guard::start();
    if (!guard) ::_exit(1);
    progress_.guard.store(guard->pid());
    const auto slot = guard->hold(listener);
    if (!slot) ::_exit(2);
    progress_.held.store(1);
    story(**slot);
    progress_.held.store(2);
    for (;;) ::pause();
  }

  [[nodiscard]] bool calls_go_on() const {
    const long now = progress_.calls.load();
    return eventually([&] { return progress_.calls.load() > now + 1000; });
  }

  Progress& progress_;
};

TEST_F(GuardTest, KeepsAProgramAliveWhenSwapdIsKilled) {
  Supervised program(getppid_only, caller());
  ASSERT_TRUE(program.ready());
  Fd ours = program.take_listener();
  const pid_t swapd = start_swapd({ours.get()}, true);
  ASSERT_TRUE(eventually([&] { return progress_.held.load() != 0; }));
  ASSERT_EQ(progress_.held.load(), 1);
  ours.reset();  // swapd and its guard alone hold it now
  program.go();
  ASSERT_TRUE(calls_go_on());
  kill_and_reap(swapd);
  EXPECT_TRUE(calls_go_on());
  EXPECT_NE(state_of(progress_.guard.load()), '\0');
  progress_.stop.store(true);
  EXPECT_EQ(program.wait(), 0);
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
    const pid_t swapd = start_story(ours.get(), [&](observe::ListenerSlot& slot) {
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
  const pid_t swapd = start_story(ours.get(), [&](observe::ListenerSlot&) {
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
    progress_.held.store(0);
    progress_.stop.store(false);
    Supervised program(getppid_only, [this] {
      for (int i = 0; i < 3; ++i)
        if (::fork() == 0) ::_exit(caller()());
      int failed = caller()();
      for (int status = 0; ::wait(&status) > 0;) failed |= status;
      return failed;
    });
    ASSERT_TRUE(program.ready());
    Fd ours = program.take_listener();
    const pid_t swapd = start_swapd({ours.get()}, true);
    ASSERT_TRUE(eventually([&] { return progress_.held.load() == 1; }));
    ours.reset();
    program.go();
    ASSERT_TRUE(calls_go_on());
    kill_and_reap(swapd);
    ASSERT_TRUE(calls_go_on()) << round;
    progress_.stop.store(true);
    ASSERT_EQ(program.wait(), 0) << round;  // each of the four: none is left in a call
    ASSERT_TRUE(guard_ended());
  }
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
    auto guard = Guard::start(default_stale, dir);
    if (!guard) ::_exit(1);
    std::vector<std::unique_ptr<observe::Receiver>> receivers;
    const auto receive = [&](Fd listener) {
      const auto slot = guard->hold(listener.get(), 77);
      if (!slot) ::_exit(2);
      receivers.push_back(
          std::make_unique<observe::Receiver>(std::move(listener), *slot, observe::Receiver::Callbacks{}));
      if (!receivers.back()->start()) ::_exit(3);
    };
    auto guards = LeftGuard::find(dir);
    if (ours) receive(std::move(ours));
    for (LeftGuard& left : guards) {
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
  Supervised program(getppid_only, caller());
  ASSERT_TRUE(program.ready());
  Fd ours = program.take_listener();
  const pid_t swapd = start_swapd({ours.get()}, true, std::chrono::milliseconds(40));
  ASSERT_TRUE(eventually([&] { return progress_.held.load() == 1; }));
  ours.reset();
  program.go();
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(calls_go_on());
    ::kill(swapd, SIGSTOP);
    ASSERT_TRUE(eventually([&] { return state_of(swapd) == 'T'; }));
    EXPECT_TRUE(calls_go_on()) << round;
    ::kill(swapd, SIGCONT);
    EXPECT_TRUE(calls_go_on()) << round;
  }
  // Stopped again before it has written anything down: what it had received is far from the last that it knows of.
  for (int round = 0; round < 10; ++round) {
    ::kill(swapd, SIGSTOP);
    ASSERT_TRUE(eventually([&] { return state_of(swapd) == 'T'; }));
    EXPECT_TRUE(calls_go_on()) << round;
    EXPECT_TRUE(calls_go_on()) << round;
    ::kill(swapd, SIGCONT);
  }
  // It has noticed that swapd is back: nothing wakes it but its own clock.
  EXPECT_TRUE(eventually([&] {
    const long switches = guard_switches();
    const long calls = progress_.calls.load();
    EXPECT_TRUE(calls_go_on());
    return guard_switches() - switches < (progress_.calls.load() - calls) / 10;
  }));
  ::kill(swapd, SIGSTOP);
  kill_and_reap(swapd);
  EXPECT_TRUE(calls_go_on());
  progress_.stop.store(true);
  EXPECT_EQ(program.wait(), 0);
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
  Supervised program(getppid_only, caller());
  ASSERT_TRUE(program.ready());
  Fd ours = program.take_listener();
  const pid_t swapd = start_swapd({ours.get()}, true, std::chrono::hours(1));
  ASSERT_TRUE(eventually([&] { return progress_.held.load() == 1; }));
  ours.reset();
  ASSERT_TRUE(eventually([&] { return state_of(progress_.guard.load()) == 'S'; }));
  const long before = guard_switches();
  program.go();
  ASSERT_TRUE(calls_go_on());
  EXPECT_EQ(guard_switches(), before);
  progress_.stop.store(true);
  EXPECT_EQ(program.wait(), 0);
  kill_and_reap(swapd);
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
    auto guard = Guard::start();
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

TEST_F(GuardTest, HoldFailsWhenTheGuardIsDead) {
  Supervised program(getppid_only, [] { return 0; });
  ASSERT_TRUE(program.ready());
  auto guard = Guard::start();
  ASSERT_TRUE(guard);
  ASSERT_TRUE(guard->hold(program.listener()));
  kill_and_reap(guard->pid());
  const auto held = guard->hold(program.listener());
  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().code(), EPIPE);
}

TEST_F(GuardTest, ForgetsAListenerWhoseProgramsHaveEnded) {
  auto guard = Guard::start();
  ASSERT_TRUE(guard);
  const auto listeners = [&] {
    int count = 0;
    for (int fd = 0; fd < 64; ++fd) {
      std::array<char, 64> target{};
      const std::string link = "/proc/" + std::to_string(guard->pid()) + "/fd/" + std::to_string(fd);
      if (::readlink(link.c_str(), target.data(), target.size() - 1) > 0)
        count += std::string_view(target.data()) == "anon_inode:seccomp notify" ? 1 : 0;
    }
    return count;
  };
  {
    Supervised program(getppid_only, [] { return 0; });
    ASSERT_TRUE(program.ready());
    ASSERT_TRUE(guard->hold(program.listener()));
    EXPECT_EQ(listeners(), 1);
    program.go();
    EXPECT_EQ(program.wait(), 0);
    // While we still have ours: one file, two descriptors.
    EXPECT_TRUE(eventually([&] { return listeners() == 0; }));
  }
  Supervised another(getppid_only, [] { return 0; });
  ASSERT_TRUE(another.ready());
  EXPECT_TRUE(guard->hold(another.listener()));
  EXPECT_EQ(listeners(), 1);
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
