// swapctl run becomes the program, and the program cannot tell; what is refused is refused with nothing run.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <csignal>
#include <regex>

#include "fakes/bus_fixture.h"
#include "observe/seccomp/launch_accept.h"
#include "started.h"
#include "sys/seccomp/launcher.h"
#include "sys/seccomp/seccomp.h"

namespace swapd::cli {
namespace {

using fakes::BusThread;
using testing::HasSubstr;

// Answers a launch as swapd does: takes the listener, receives, lets the launcher go on; until the last user is gone.
class Supervisor {
 public:
  explicit Supervisor(BusThread& bus) : bus_(bus) {
    const std::vector<sys::TrapRule> rules = {{SYS_write, {}}, {SYS_read, {}}, {SYS_wait4, {}}};
    Result<std::vector<sock_filter>> filter = sys::build_filter(rules);
    EXPECT_TRUE(filter.ok());
    program_ = *filter;
    bus.call([&] {
      bus.backend().on_launch = [this](bus::LaunchRequest& request) {
        thread_ = std::jthread([this, pidfd = std::move(request.pidfd), memory = std::move(request.memory)](
                                   const std::stop_token& stop) { supervise(pidfd, memory, stop); });
        return bus::LaunchAnswer{true, program_};
      };
    });
  }
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;
  ~Supervisor() {
    bus_.call([&] { bus_.backend().on_launch = nullptr; });
  }
  [[nodiscard]] int notifications() const { return notifications_; }
  // The error of accept_launch; 0 where there was none.
  int outcome() {
    std::jthread started;
    bus_.call([&] { started = std::move(thread_); });  // the bus thread has made it
    if (started.joinable()) started.join();
    return outcome_;
  }

 private:
  void supervise(const Fd& pidfd, const Fd& memory, const std::stop_token& stop) {
    const Result<sys::launch::Shared*> shared = sys::launch::map_shared(memory.get());
    if (!shared) {
      outcome_ = shared.error().code();
      return;
    }
    const Result<Fd> listener = observe::accept_launch(pidfd.get(), *shared, std::chrono::seconds(10), stop);
    outcome_ = listener ? 0 : listener.error().code();
    if (listener) {
      observe::complete_launch(*shared, true);
      receive_until_gone(*listener);
    }
    sys::launch::unmap_shared(*shared);
  }
  void receive_until_gone(const Fd& listener) {
    for (;;) {
      pollfd waiting{listener.get(), POLLIN, 0};
      if (::poll(&waiting, 1, 10'000) <= 0 || (waiting.revents & POLLIN) == 0) return;
      const Result<sys::Notification> notification = sys::receive(listener.get());
      if (!notification) continue;
      ++notifications_;
      static_cast<void>(sys::answer_continue(listener.get(), notification->id));
    }
  }

  BusThread& bus_;
  std::vector<sock_filter> program_;
  std::atomic<int> notifications_{0};
  std::atomic<int> outcome_{-1};
  std::jthread thread_;
};

class Run : public testing::Test {
 protected:
  // What cli_reporter says under this command line; its pid is that of the process that was started.
  std::string report(std::vector<std::string> before, const std::function<void()>& prepare = {}) {
    const std::string file = directory_.path() + "/report";
    before.insert(before.end(), {reporter_, file, "--socket", "an argument"});
    Started program(before, directory_.path(), prepare);
    const pid_t pid = program.pid();
    EXPECT_EQ(program.wait(), 42) << program.err();
    EXPECT_EQ(program.out() + program.err(), "");
    std::string text = content(file);
    const std::string own = "pid " + std::to_string(pid) + "\n";
    EXPECT_NE(text.find(own), std::string::npos) << "the program has another pid";
    // Names of the files that the test itself made for this run, and the pid, differ.
    text = std::regex_replace(text, std::regex("/(out|err)[0-9]+ "), "/$1 ");
    return std::regex_replace(text, std::regex("pid [0-9]+\n"), "pid\n");
  }
  std::vector<std::string> run(std::vector<std::string> options = {}) {
    options.insert(options.begin(), {swapctl_, "--socket", bus_.path(), "run"});
    options.emplace_back("--");
    return options;
  }
  // Status and error line of a run that must not happen.
  std::pair<int, std::string> refused(std::vector<std::string> words, const std::function<void()>& prepare = {}) {
    const std::string file = directory_.path() + "/never";
    words.insert(words.end(), {reporter_, file});
    Started program(words, directory_.path(), prepare);
    const int status = program.wait();
    EXPECT_EQ(content(file), "") << "the program was run";
    EXPECT_THAT(program.err(), testing::StartsWith("swapctl: "));
    return {status, program.err()};
  }
  static void become_nobody() {
    if (::setgid(65534) < 0 || ::setuid(65534) < 0) ::_exit(98);
  }
  void let_nobody_in() {
    ASSERT_EQ(::chmod(bus_.directory().c_str(), 0755), 0);
    ASSERT_EQ(::chown(bus_.path().c_str(), 65534, 65534), 0);
    swapctl_ = directory_.for_all(SWAPCTL);
    reporter_ = directory_.for_all(REPORTER);
  }

  TemporaryDirectory directory_;
  std::string swapctl_ = SWAPCTL;
  std::string reporter_ = REPORTER;
  BusThread bus_;
};

// Peculiar things to inherit: a blocked SIGCHLD, an ignored SIGPIPE, a descriptor, a umask, a nice value.
void peculiar() {
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGCHLD);
  sigaddset(&blocked, SIGUSR1);
  ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);
  ::umask(027);
  ::dup2(::open("/dev/null", O_RDONLY | O_CLOEXEC), 9);
  ::setpriority(PRIO_PROCESS, 0, 3);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

void without_standard_descriptors() {
  for (int fd = 0; fd <= 2; ++fd) ::close(fd);
}

TEST_F(Run, TheProgramCannotTell) {
  EXPECT_EQ(report(run()), report({}));
  EXPECT_EQ(report(run(), peculiar), report({}, peculiar));
  EXPECT_EQ(report(run(), without_standard_descriptors), report({}, without_standard_descriptors));
  bus_.call([&] { EXPECT_EQ(bus_.backend().launched.size(), 3U); });
}

TEST_F(Run, NorUnderTheFilter) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to install a filter without no_new_privs";
  for (void (*prepare)() : {+[] {}, peculiar, without_standard_descriptors}) {
    Supervisor supervisor(bus_);
    EXPECT_EQ(report(run(), prepare), report({}, prepare));
    EXPECT_EQ(supervisor.outcome(), 0);
    EXPECT_GT(supervisor.notifications(), 0);
  }
}

TEST_F(Run, HandsOverClassObserverAndPid) {
  Started program({SWAPCTL, "--socket", bus_.path(), "run", "--class", "batch", "--observe=seccomp", "true"},
                  directory_.path());
  const pid_t pid = program.pid();
  EXPECT_EQ(program.wait(), 0) << program.err();
  bus_.call([&] {
    ASSERT_EQ(bus_.backend().launched.size(), 1U);
    EXPECT_EQ(bus_.backend().launched[0].pid, pid);
    EXPECT_EQ(bus_.backend().launched[0].class_name, "batch");
    EXPECT_EQ(bus_.backend().launched[0].observe, "seccomp");
  });
}

TEST_F(Run, TakesThePriorityAskedForFirst) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root for real-time priorities";
  EXPECT_THAT(report(run({"--fifo", "7"})), HasSubstr("policy 1 7 nice 0\n"));
  EXPECT_THAT(report(run({"--rr", "3"})), HasSubstr("policy 2 3 nice 0\n"));
  EXPECT_THAT(report(run({"--nice", "-4"})), HasSubstr("policy 0 0 nice -4\n"));
}

TEST_F(Run, ExitStatusAndSignalsAreTheProgramsOwn) {
  Started seven({SWAPCTL, "--socket", bus_.path(), "run", "sh", "-c", "exit 7"}, directory_.path());
  EXPECT_EQ(seven.wait(), 7);
  Started killed({SWAPCTL, "--socket", bus_.path(), "run", "sh", "-c", "kill -TERM $$"}, directory_.path());
  EXPECT_EQ(killed.wait(), -SIGTERM);
}

TEST_F(Run, NotFoundAndNotExecutable) {
  Started missing({SWAPCTL, "--socket", bus_.path(), "run", "no-such-program"}, directory_.path());
  EXPECT_EQ(missing.wait(), 127);
  EXPECT_EQ(missing.err(), "swapctl: no program no-such-program in PATH\n");
  Started data({SWAPCTL, "--socket", bus_.path(), "run", "/etc/passwd"}, directory_.path());
  EXPECT_EQ(data.wait(), 126);
  bus_.call([&] { EXPECT_TRUE(bus_.backend().launched.empty()); });
}

TEST_F(Run, AnUnknownClassIsTheUsersMistake) {
  const auto [status, line] = refused(run({"--class", "nosuch"}));
  EXPECT_EQ(status, 2);
  EXPECT_EQ(line, "swapctl: there is no class nosuch\n");
}

TEST_F(Run, AForeignListenerIsRespected) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to install a filter without no_new_privs";
  const std::vector<sys::TrapRule> rules = {{SYS_mq_getsetattr, {}}};
  const Result<std::vector<sock_filter>> program = sys::build_filter(rules);
  ASSERT_TRUE(program.ok());
  Supervisor supervisor(bus_);
  const auto [status, line] = refused(run(), [&] {
    Result<Fd> listener = sys::install_filter(*program, {});
    if (!listener) ::_exit(97);
    ::fcntl(listener->get(), F_SETFD, 0);
    static_cast<void>(listener->release());  // stays open in swapctl: the listener lives
  });
  EXPECT_EQ(status, 1);
  EXPECT_THAT(line, HasSubstr("has a seccomp listener already"));
  EXPECT_THAT(line, HasSubstr("nothing was run"));
  EXPECT_NE(supervisor.outcome(), 0);
}

TEST_F(Run, WithoutPrivilegeItAsksFirst) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give root up";
  let_nobody_in();
  {
    Supervisor supervisor(bus_);
    const auto [status, line] = refused(run(), become_nobody);
    EXPECT_EQ(status, 1);
    EXPECT_THAT(line, HasSubstr("sudo, setuid programs and file capabilities will not work"));
    EXPECT_THAT(line, HasSubstr("--allow-no-new-privs"));
    EXPECT_EQ(supervisor.outcome(), ECANCELED);  // swapd is told at once
  }
  Supervisor supervisor(bus_);
  EXPECT_THAT(report(run({"--allow-no-new-privs"}), become_nobody), HasSubstr("NoNewPrivs:\t1\n"));
}

TEST_F(Run, APriorityThatIsNotAllowedIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give root up";
  let_nobody_in();
  const auto [status, line] = refused(run({"--fifo", "50"}), become_nobody);
  EXPECT_EQ(status, 1);
  EXPECT_THAT(line, HasSubstr("cannot take the priority"));
  bus_.call([&] { EXPECT_TRUE(bus_.backend().launched.empty()); });
}

}  // namespace
}  // namespace swapd::cli
