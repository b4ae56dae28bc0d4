// What the tests of the guard share: a swapd that is one process with a guard and a receiver, killed at any moment.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <fstream>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "guard/guard.h"
#include "observe/seccomp/receiver.h"
#include "supervised.h"

namespace swapd::daemon {

inline const std::vector<sys::TrapRule> getppid_only{{.nr = SYS_getppid, .condition = {}}};

inline GuardOptions guard_options(Duration stale = default_stale, const std::string& state_dir = "",
                                  const std::string& socket = "") {
  return {.program = SWAPD_GUARD_BINARY, .stale = stale, .state_dir = state_dir, .socket = socket};
}

// How many a guard holds.
inline int listeners(const Guard& guard) {
  int count = 0;
  for (int fd = 0; fd < 128; ++fd) {
    std::array<char, 64> target{};
    const std::string link = "/proc/" + std::to_string(guard.pid()) + "/fd/" + std::to_string(fd);
    if (::readlink(link.c_str(), target.data(), target.size() - 1) > 0)
      count += std::string_view(target.data()) == "anon_inode:seccomp notify" ? 1 : 0;
  }
  return count;
}

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
    return guard == 0 ||
           test::eventually([&] { return test::state_of(guard) == '\0' || test::state_of(guard) == 'Z'; });
  }

  // A swapd: a guard, and a receiver on the listener. It goes on until it is killed.
  pid_t start_swapd(const std::vector<int>& listeners, bool receive, Duration stale = default_stale) {
    const pid_t pid = ::fork();
    if (pid != 0) return pid;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    auto guard = Guard::start(guard_options(stale, "", socket_));
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
    for (;;) {
      const auto process = guard->watch();
      pollfd end{process ? process->get() : -1, POLLIN, 0};
      ::poll(&end, 1, -1);
      if (!guard->look_after()) ::_exit(4);
      progress_.guard.store(guard->pid());
    }
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
    auto guard = Guard::start(guard_options());
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
    return test::eventually([&] { return progress_.calls.load() > now + 1000; });
  }

  // Programs that call, and a swapd that receives their calls; from here on it and its guard alone hold the listeners.
  void begin(Duration stale = default_stale, int programs = 1, const std::function<int()>& body = {}) {
    progress_.held.store(0);
    progress_.calls.store(0);
    progress_.stop.store(false);
    programs_.clear();
    std::vector<Fd> ours;
    std::vector<int> listeners;
    for (int i = 0; i < programs; ++i) {
      test::Supervised& program = programs_.emplace_back(getppid_only, body ? body : caller());
      ASSERT_TRUE(program.ready());
      listeners.push_back(ours.emplace_back(program.take_listener()).get());
    }
    swapd_ = start_swapd(listeners, true, stale);
    ASSERT_TRUE(test::eventually([&] { return progress_.held.load() == programs || progress_.held.load() < 0; }));
    ASSERT_EQ(progress_.held.load(), programs);
  }

  void go() {
    for (test::Supervised& program : programs_) program.go();
  }

  // Each of them comes to its end, and every call was right.
  void end() {
    progress_.stop.store(true);
    for (test::Supervised& program : programs_) EXPECT_EQ(program.wait(), 0);
  }

  // Calls of a program and of three children.
  std::function<int()> family() {
    return [this] {
      for (int i = 0; i < 3; ++i)
        if (::fork() == 0) ::_exit(caller()());
      int failed = caller()();
      for (int status = 0; ::wait(&status) > 0;) failed |= status;
      return failed;
    };
  }

  Progress& progress_;
  std::string socket_;  // where its guards are started; empty: they are its children
  std::list<test::Supervised> programs_;
  pid_t swapd_ = -1;
};

}  // namespace swapd::daemon
