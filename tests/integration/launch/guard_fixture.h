// What the tests of the guard share: a swapd that is one process with a guard and a receiver, killed at any moment.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "guard.h"
#include "observe/receiver.h"
#include "supervised.h"

namespace swapd::daemon {

inline const std::vector<sys::TrapRule> getppid_only{{.nr = SYS_getppid, .condition = {}}};

inline GuardOptions guard_options(Duration stale = default_stale, const std::string& state_dir = "") {
  return {.program = SWAPD_GUARD_BINARY, .stale = stale, .state_dir = state_dir};
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
    auto guard = Guard::start(guard_options(stale));
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

  // One program that calls, and a swapd that receives its calls.
  void begin(Duration stale = default_stale) {
    program_.emplace(getppid_only, caller());
    ASSERT_TRUE(program_->ready());
    Fd ours = program_->take_listener();
    swapd_ = start_swapd({ours.get()}, true, stale);
    ASSERT_TRUE(test::eventually([&] { return progress_.held.load() != 0; }));
    ASSERT_EQ(progress_.held.load(), 1);  // and from here on swapd and its guard alone hold the listener
  }

  void end() {
    progress_.stop.store(true);
    EXPECT_EQ(program_->wait(), 0);
  }

  Progress& progress_;
  std::optional<test::Supervised> program_;
  pid_t swapd_ = -1;
};

}  // namespace swapd::daemon
