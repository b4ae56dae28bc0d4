// The launch protocol, both sides against each other, and each against one that fails (docs/design.md, Launch).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>

#include "observe/seccomp/launch_accept.h"
#include "observe/seccomp/receiver.h"
#include "supervised.h"
#include "sys/process/futex.h"
#include "sys/process/pidfd.h"
#include "sys/seccomp/launcher.h"

namespace swapd::observe {
namespace {

using std::chrono::milliseconds;
using sys::launch::Shared;
using test::call_rules;
using test::eventually;

// A process that launches `sh -c "echo ran"`; what it and the program write is kept.
class Launcher {
 public:
  explicit Launcher(milliseconds timeout, std::function<void()> before = {}) {
    memory_.reset(::memfd_create("swapd-launch", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (::ftruncate(memory_.get(), sizeof(Shared)) != 0) std::abort();
    ::fcntl(memory_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    shared_ = new (::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0)) Shared;
    const auto program = sys::build_filter(call_rules());
    std::array<int, 2> ends{};
    if (!program || ::pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
    output_.reset(ends[0]);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(ends[1], 1);
      ::dup2(ends[1], 2);
      if (before) before();
      const Status installed =
          sys::launch::install_and_wait({.program = *program, .shared = shared_, .timeout = timeout});
      if (!installed) {
        const std::string line = installed.error().text() + "\n";
        (void)!::write(2, line.data(), line.size());
        ::_exit(1);
      }
      ::execl("/bin/sh", "sh", "-c", "echo ran; exit 5", nullptr);
      ::_exit(126);
    }
    ::close(ends[1]);
    if (auto opened = sys::open_pidfd(pid_)) pidfd_ = std::move(opened).value();
  }
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;
  ~Launcher() {
    if (!reaped_) {
      kill();
      (void)wait();
    }
    ::munmap(shared_, sizeof(Shared));
  }

  [[nodiscard]] Shared* shared() const { return shared_; }
  [[nodiscard]] int memory() const { return memory_.get(); }
  [[nodiscard]] int pidfd() const { return pidfd_.get(); }
  [[nodiscard]] pid_t pid() const { return pid_; }
  void kill() const { ::kill(pid_, SIGKILL); }
  [[nodiscard]] bool wait_for_listener() const {
    return eventually([&] { return shared_->listener.load() >= 0; });
  }
  // The exit status; 128 + the signal.
  [[nodiscard]] int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    reaped_ = true;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  [[nodiscard]] std::string output() const {
    std::string out;
    std::array<char, 256> chunk;
    for (ssize_t n = 0; (n = ::read(output_.get(), chunk.data(), chunk.size())) > 0;)
      out.append(chunk.data(), static_cast<std::size_t>(n));
    return out;
  }

 private:
  Fd memory_, output_, pidfd_;
  Shared* shared_ = nullptr;
  pid_t pid_ = -1;
  bool reaped_ = false;
};

TEST(Launch, RunsTheProgramOnceSomebodyReceives) {
  Launcher launcher(milliseconds(5000));
  auto listener = accept_launch(launcher.pidfd(), launcher.shared(), milliseconds(5000), {});
  ASSERT_TRUE(listener) << listener.error().text();
  ListenerSlot slot{};
  Receiver receiver(std::move(listener).value(), &slot, {});
  ASSERT_TRUE(receiver.start());
  EXPECT_TRUE(complete_launch(launcher.shared(), true));
  EXPECT_EQ(launcher.output(), "ran\n");
  EXPECT_EQ(launcher.wait(), 5);
  EXPECT_GT(receiver.received(), 0U);
}

// The process is single-threaded before and after, and the program inherits no listener.
TEST(Launch, LeavesNothingInTheProgram) {
  Launcher launcher(milliseconds(5000), [] {
    // Standard input from a pipe that never ends keeps the program there until it has been looked at.
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) == 0) ::dup2(ends[0], 0);
  });
  auto listener = accept_launch(launcher.pidfd(), launcher.shared(), milliseconds(5000), {});
  ASSERT_TRUE(listener);
  ListenerSlot slot{};
  const int number = launcher.shared()->listener.load();
  Receiver receiver(std::move(listener).value(), &slot, {});
  ASSERT_TRUE(receiver.start());
  ASSERT_TRUE(complete_launch(launcher.shared(), true));
  EXPECT_EQ(launcher.output(), "ran\n");
  const auto again = sys::take_fd(launcher.pidfd(), number);
  EXPECT_FALSE(again && sys::is_listener(again->get()));
  EXPECT_EQ(launcher.wait(), 5);
}

TEST(Launch, NobodyAnswers) {
  Launcher launcher(milliseconds(50));
  EXPECT_EQ(launcher.output(), "swapctl: swapd did not answer within 50 ms; nothing was run\n");
  EXPECT_EQ(launcher.wait(), 1);
  EXPECT_EQ(launcher.shared()->answer.load(), sys::launch::gave_up);
  EXPECT_FALSE(complete_launch(launcher.shared(), true));  // too late
}

TEST(Launch, SwapdTakesTheListenerAndDies) {
  Launcher launcher(milliseconds(100));
  {
    const auto listener = accept_launch(launcher.pidfd(), launcher.shared(), milliseconds(5000), {});
    ASSERT_TRUE(listener);
  }
  EXPECT_EQ(launcher.output(), "swapctl: swapd did not answer within 100 ms; nothing was run\n");
  EXPECT_EQ(launcher.wait(), 1);
}

TEST(Launch, SwapdTakesTheListenerAndHangs) {
  Launcher launcher(milliseconds(100));
  const auto listener = accept_launch(launcher.pidfd(), launcher.shared(), milliseconds(5000), {});
  ASSERT_TRUE(listener);  // held, and nobody answers for the launcher's calls
  EXPECT_EQ(launcher.output(), "swapctl: swapd did not answer within 100 ms; nothing was run\n");
  EXPECT_EQ(launcher.wait(), 1);
}

TEST(Launch, SwapdRefuses) {
  Launcher launcher(milliseconds(5000));
  const auto listener = accept_launch(launcher.pidfd(), launcher.shared(), milliseconds(5000), {});
  ASSERT_TRUE(listener);
  EXPECT_TRUE(complete_launch(launcher.shared(), false));
  EXPECT_EQ(launcher.output(), "swapctl: swapd refused the launch (its log tells why); nothing was run\n");
  EXPECT_EQ(launcher.wait(), 1);
}

TEST(Launch, AListenerIsThereAlready) {
  Launcher launcher(milliseconds(5000), [] {
    const auto program = sys::build_filter({});
    auto first = sys::install_filter(*program, {});
    if (!first) std::abort();
    (void)first->release();
  });
  const auto listener = accept_launch(launcher.pidfd(), launcher.shared(), milliseconds(5000), {});
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code(), ECANCELED);
  EXPECT_NE(launcher.output().find("already has a listener"), std::string::npos);
  EXPECT_EQ(launcher.wait(), 1);
}

TEST(Launch, LauncherKilledBeforeItInstalls) {
  Launcher launcher(milliseconds(5000), [] { ::pause(); });
  launcher.kill();
  const auto listener = accept_launch(launcher.pidfd(), launcher.shared(), milliseconds(5000), {});
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code(), ESRCH);
}

TEST(Launch, LauncherKilledBeforeItsListenerIsTaken) {
  Launcher launcher(milliseconds(5000));
  ASSERT_TRUE(launcher.wait_for_listener());
  launcher.kill();
  EXPECT_EQ(launcher.wait(), 128 + SIGKILL);
  const auto listener = accept_launch(launcher.pidfd(), launcher.shared(), milliseconds(5000), {});
  ASSERT_FALSE(listener);
  EXPECT_TRUE(listener.error().gone());
}

TEST(Launch, LauncherKilledBeforeItIsLetGo) {
  Launcher launcher(milliseconds(5000));
  auto listener = accept_launch(launcher.pidfd(), launcher.shared(), milliseconds(5000), {});
  ASSERT_TRUE(listener);
  launcher.kill();
  EXPECT_EQ(launcher.wait(), 128 + SIGKILL);
  ListenerSlot slot{};
  std::atomic<bool> finished{false};
  Receiver receiver(std::move(listener).value(), &slot, {.wake = {}, .finished = [&] { finished = true; }});
  ASSERT_TRUE(receiver.start());
  EXPECT_TRUE(complete_launch(launcher.shared(), true));  // nobody is there to hear it
  EXPECT_TRUE(eventually([&] { return finished.load(); }));
}

TEST(Launch, LauncherLiesAboutItsListener) {
  Launcher launcher(milliseconds(5000), [] { ::pause(); });
  launcher.shared()->listener.store(2);
  auto listener = accept_launch(launcher.pidfd(), launcher.shared(), milliseconds(5000), {});
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code(), EBADF);
  launcher.shared()->listener.store(1'000'000);
  listener = accept_launch(launcher.pidfd(), launcher.shared(), milliseconds(5000), {});
  EXPECT_FALSE(listener);
}

TEST(Launch, SwapdStopsOrRunsOutOfPatienceMeanwhile) {
  Launcher launcher(milliseconds(5000), [] { ::pause(); });
  auto listener = accept_launch(launcher.pidfd(), launcher.shared(), milliseconds(30), {});
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code(), ETIMEDOUT);
  std::stop_source stop;
  stop.request_stop();
  listener = accept_launch(launcher.pidfd(), launcher.shared(), milliseconds(5000), stop.get_token());
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code(), ECANCELED);
}

TEST(LaunchMemory, IsMappedWhereItIsWhatItShallBe) {
  const Launcher launcher(milliseconds(1), [] { ::pause(); });
  const auto mapped = sys::launch::map_shared(launcher.memory());
  ASSERT_TRUE(mapped) << mapped.error().text();
  EXPECT_EQ((*mapped)->answer.load(), sys::launch::no_answer);
  sys::launch::unmap_shared(*mapped);
}

TEST(LaunchMemory, IsRefusedWhereItCouldShrinkOrIsSomethingElse) {
  const Fd unsealed(::memfd_create("t", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(unsealed.get(), 4096), 0);
  EXPECT_FALSE(sys::launch::map_shared(unsealed.get()));
  ASSERT_EQ(::fcntl(unsealed.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_FALSE(sys::launch::map_shared(unsealed.get()));  // no magic
  const Fd small(::memfd_create("t", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::fcntl(small.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_FALSE(sys::launch::map_shared(small.get()));
  const Fd null(::open("/dev/null", O_RDWR));
  EXPECT_FALSE(sys::launch::map_shared(null.get()));
}

}  // namespace
}  // namespace swapd::observe
