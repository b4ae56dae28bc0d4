// Calls and filters in processes that run already.
#include "sys/seccomp/attach_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "supervised.h"
#include "sys/procfs/procfs.h"
#include "sys/sched/scheduler.h"
#include "sys/seccomp/seccomp.h"

namespace swapd::sys {
namespace {

using test::eventually;
using test::state_of;

constexpr auto soon = std::chrono::milliseconds(500);
#ifdef __SANITIZE_THREAD__
constexpr bool thread_sanitizer = true;
#else
constexpr bool thread_sanitizer = false;
#endif

std::vector<sock_filter> getppid_filter() {
  const TrapRule rule{.nr = SYS_getppid, .condition = {}};
  return build_filter(std::span(&rule, 1)).value();
}

// A child that says what it finds through memory.
class Attach : public testing::Test {
 protected:
  struct Shared {
    std::atomic<int> stage{0};
    std::atomic<long> count{0};
  };

  Attach()
      : shared_(*new (::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
                    Shared) {}
  ~Attach() override {
    // The last first: who is traced is not reaped before its tracer has ended.
    for (auto pid = pids_.rbegin(); pid != pids_.rend(); ++pid) {
      ::kill(*pid, SIGKILL);
      ::waitpid(*pid, nullptr, 0);
    }
    ::munmap(&shared_, sizeof(Shared));
  }

  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root, to trace";
  }

  pid_t start(const std::function<int()>& body) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::_exit(body());
    }
    pids_.push_back(pid);
    return pid;
  }

  // One that calls getppid() for ever; with a filter each waits for an answer.
  pid_t start_caller() {
    return start([this]() -> int {
      for (;;) {
        if (::syscall(SYS_getppid) <= 0) shared_.stage = -1;
        ++shared_.count;
        ::usleep(1000);
      }
    });
  }

  static Result<AttachedFilter> attach(pid_t pid, bool allow_no_new_privs = false) {
    return AttachedFilter::install(pid, getppid_filter(),
                                   {.flags = filter_flags(), .allow_no_new_privs = allow_no_new_privs, .within = soon});
  }

  // Answers until it has seen so many calls.
  static void serve(int listener, int calls) {
    for (int i = 0; i < calls; ++i) {
      pollfd entry{listener, POLLIN, 0};
      ASSERT_EQ(::poll(&entry, 1, 10000), 1) << "nothing is trapped";
      const auto notification = receive(listener);
      if (notification) (void)answer_continue(listener, notification->id);
    }
  }

  static std::string text(pid_t pid, const char* file) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/" + file);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
  }
  static std::string mask(pid_t pid) {
    const std::string status = text(pid, "status");
    return status.substr(status.find("SigBlk:"), 24);
  }
  void let_end(pid_t pid, int expected) {
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), expected);
    std::erase(pids_, pid);
  }

  Shared& shared_;
  std::vector<pid_t> pids_;
};

TEST_F(Attach, TheFilterIsInAndNothingElseHasChanged) {
  const pid_t pid = start_caller();
  ASSERT_TRUE(eventually([&] { return shared_.count > 3; }));
  const Procfs procfs;
  const auto fds = procfs.fds(pid);
  const std::string maps = text(pid, "maps");
  const std::string blocked = mask(pid);
  auto attached = attach(pid);
  ASSERT_TRUE(attached) << attached.error().text();
  const Fd listener = attached->resume();
  EXPECT_EQ(procfs.fds(pid).value(), fds.value());
  EXPECT_EQ(text(pid, "maps"), maps);
  EXPECT_EQ(mask(pid), blocked);
  serve(listener.get(), 20);
  EXPECT_EQ(shared_.stage, 0);
}

// Meanwhile it is real-time.
TEST_F(Attach, ItsClassIsItsOwnAgain) {
  const LinuxScheduler scheduler;
  const pid_t pid = start_caller();
  ASSERT_TRUE(eventually([&] { return shared_.count > 3; }));
  for (const SchedAttr& own :
       {SchedAttr{.nice = 7}, SchedAttr{.policy = SchedPolicy::batch, .nice = -3},
        SchedAttr{.policy = SchedPolicy::idle}, SchedAttr{.policy = SchedPolicy::rr, .rt_priority = 3}}) {
    ASSERT_TRUE(scheduler.set(pid, own));
    auto stopped = StoppedProcess::stop(pid, soon);
    ASSERT_TRUE(stopped);
    EXPECT_EQ((*stopped)->call(SYS_getpid, {}).value(), pid);
    EXPECT_EQ(scheduler.get(pid)->policy, SchedPolicy::fifo);
    stopped->reset();
    EXPECT_EQ(scheduler.get(pid).value(), own);
  }
}

TEST_F(Attach, AllThreadsGetItAndThoseMadeLater) {
  const pid_t pid = start([this]() -> int {
    std::vector<std::thread> threads;
    for (int i = 0; i < 20; ++i)
      threads.emplace_back([&] {
        ++shared_.count;
        while (shared_.stage == 0) ::usleep(500);
        std::thread([] { (void)::syscall(SYS_getppid); }).join();
      });
    for (std::thread& thread : threads) thread.join();
    return 7;
  });
  ASSERT_TRUE(eventually([&] { return shared_.count == 20; }));
  auto attached = attach(pid);
  ASSERT_TRUE(attached) << attached.error().text();
  EXPECT_GE(attached->threads(), 21U);  // a sanitizer has some of its own
  const Fd listener = attached->resume();
  shared_.stage = 1;
  serve(listener.get(), 20);
  let_end(pid, 7);
}

TEST_F(Attach, AStoppedProgramStaysStopped) {
  const pid_t pid = start_caller();
  ASSERT_TRUE(eventually([&] { return shared_.count > 3; }));
  ::kill(pid, SIGSTOP);
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, WUNTRACED), pid);
  auto attached = attach(pid);
  ASSERT_TRUE(attached) << attached.error().text();
  const Fd listener = attached->resume();
  ASSERT_TRUE(eventually([&] { return state_of(pid) == 'T'; }));
  EXPECT_EQ(::waitpid(pid, &status, WUNTRACED | WNOHANG), 0) << "its parent has seen it stop once";
  ::kill(pid, SIGCONT);
  serve(listener.get(), 5);
}

TEST_F(Attach, AStopThatComesMeanwhileIsNotLost) {
  const pid_t pid = start_caller();
  ASSERT_TRUE(eventually([&] { return shared_.count > 3; }));
  auto stopped = StoppedProcess::stop(pid, soon);
  ASSERT_TRUE(stopped) << stopped.error().text();
  ::kill(pid, SIGSTOP);
  EXPECT_EQ((*stopped)->call(SYS_getpid, {}).value(), pid);
  EXPECT_EQ((*stopped)->call(SYS_getpid, {}).value(), pid);
  stopped->reset();
  EXPECT_TRUE(eventually([&] { return state_of(pid) == 'T'; }));
  ::kill(pid, SIGCONT);
  const long count = shared_.count;
  EXPECT_TRUE(eventually([&] { return shared_.count > count; }));
}

TEST_F(Attach, AHandlerRunsOnceAndTheCallItInterruptsSaysSo) {
  if (thread_sanitizer) GTEST_SKIP() << "the sanitizer calls handlers itself, and later";
  const pid_t pid = start([this]() -> int {
    static std::atomic<long>* handled = nullptr;
    handled = &shared_.count;
    struct sigaction action {};
    action.sa_handler = [](int) { ++*handled; };
    ::sigaction(SIGUSR1, &action, nullptr);
    shared_.stage = 1;
    const int result = ::poll(nullptr, 0, -1);
    return result == -1 && errno == EINTR && shared_.count == 1 ? 3 : 4;
  });
  ASSERT_TRUE(eventually([&] { return shared_.stage == 1 && state_of(pid) == 'S'; }));
  auto attached = attach(pid);
  ASSERT_TRUE(attached) << attached.error().text();
  ::kill(pid, SIGUSR1);  // it stands still: the handler runs later
  const Fd listener = attached->resume();
  let_end(pid, 3);
}

TEST_F(Attach, WhoIsKilledMeanwhileIsGone) {
  const pid_t pid = start_caller();
  ASSERT_TRUE(eventually([&] { return shared_.count > 3; }));
  auto stopped = StoppedProcess::stop(pid, soon);
  ASSERT_TRUE(stopped);
  ::kill(pid, SIGKILL);
  ASSERT_TRUE(eventually([&] { return state_of(pid) == 'Z' || !(*stopped)->call(SYS_getpid, {}); }));
  EXPECT_EQ((*stopped)->call(SYS_getpid, {}).error().code(), ESRCH);
}

// The first thread's end is told only after the others', and those are ours to wait for.
TEST_F(Attach, WhoIsKilledWithAllItsThreadsIsGone) {
  for (int round = 0; round < 20; ++round) {
    shared_.count = 0;
    const pid_t pid = start([this]() -> int {
      for (int i = 0; i < 5; ++i) std::thread([] { ::pause(); }).detach();
      for (;;) {
        ++shared_.count;
        ::usleep(500);
      }
    });
    ASSERT_TRUE(eventually([&] { return shared_.count > 3; }));
    auto stopped = StoppedProcess::stop(pid, soon);
    ASSERT_TRUE(stopped);
    if (round % 2 == 0) {
      ASSERT_TRUE((*stopped)->call(SYS_getpid, {}));
    }
    ::kill(pid, SIGKILL);
    while ((*stopped)->call(SYS_getpid, {})) {
    }
    (*stopped)->release();
    EXPECT_TRUE(eventually([&] { return ::waitpid(pid, nullptr, WNOHANG) != 0; })) << "its parent hears of it";
  }
}

TEST_F(Attach, FiltersOfItsOwnDoNotSeeIt) {
  if (thread_sanitizer) GTEST_SKIP() << "the sanitizer's own thread does not have the filter";
  const pid_t pid = start([this]() -> int {
    // Whatever is called for it would kill it.
    std::vector<sock_filter> filter{{BPF_LD | BPF_W | BPF_ABS, 0, 0, 0}};
    for (const unsigned nr : {SYS_mmap, SYS_munmap, SYS_seccomp, SYS_close}) {
      filter.push_back({BPF_JMP | BPF_JEQ | BPF_K, 0, 1, nr});
      filter.push_back({BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS});
    }
    filter.push_back({BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW});
    const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
    ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
    shared_.stage = 1;
    while (shared_.stage == 1) ::usleep(500);
    return ::syscall(SYS_getppid) > 0 ? 5 : 6;
  });
  ASSERT_TRUE(eventually([&] { return shared_.stage == 1; }));
  auto attached = attach(pid);
  ASSERT_TRUE(attached) << attached.error().text();
  const Fd listener = attached->resume();
  shared_.stage = 2;
  serve(listener.get(), 1);
  let_end(pid, 5);
}

TEST_F(Attach, OneThatHasAListenerIsLeftAsItIs) {
  const pid_t pid = start_caller();
  ASSERT_TRUE(eventually([&] { return shared_.count > 3; }));
  auto first = attach(pid);
  ASSERT_TRUE(first);
  const Fd listener = first->resume();
  const std::string maps = text(pid, "maps");
  const auto second = attach(pid);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), EBUSY);
  EXPECT_EQ(second.error().context(), "process " + std::to_string(pid) + ": it has a seccomp listener already");
  EXPECT_EQ(text(pid, "maps"), maps);
  serve(listener.get(), 3);
}

TEST_F(Attach, OneThatIsTracedIsLeftAlone) {
  const pid_t pid = start_caller();
  ASSERT_TRUE(eventually([&] { return shared_.count > 3; }));
  const pid_t tracer = start([&]() -> int {
    if (::ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) != 0) return 1;
    shared_.stage = 1;
    for (;;) ::pause();
  });
  ASSERT_TRUE(eventually([&] { return shared_.stage == 1; }));
  const auto refused = attach(pid);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), EBUSY);
  EXPECT_EQ(refused.error().context(),
            "process " + std::to_string(pid) + " is traced by process " + std::to_string(tracer));
  const long count = shared_.count;
  EXPECT_TRUE(eventually([&] { return shared_.count > count; }));
}

TEST_F(Attach, WithoutPrivilegeItAsksFirst) {
  const pid_t pid = start([this]() -> int {
    if (::setresuid(65534, 65534, 65534) != 0) return 1;
    shared_.stage = 1;
    while (shared_.stage == 1) ::usleep(500);
    return ::syscall(SYS_getppid) > 0 && ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 8 : 9;
  });
  ASSERT_TRUE(eventually([&] { return shared_.stage == 1; }));
  const auto refused = attach(pid);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), EACCES);
  EXPECT_THAT(refused.error().context(), testing::HasSubstr("--allow-no-new-privs"));
  EXPECT_THAT(text(pid, "status"), testing::HasSubstr("NoNewPrivs:\t0"));
  auto attached = attach(pid, true);
  ASSERT_TRUE(attached) << attached.error().text();
  const Fd listener = attached->resume();
  shared_.stage = 2;
  serve(listener.get(), 1);
  let_end(pid, 8);
}

// Its mother sleeps where no signal reaches her, and the child has her memory.
TEST_F(Attach, WhoWaitsForAVforkIsLeftAlone) {
  if (thread_sanitizer) GTEST_SKIP() << "the sanitizer makes vfork(2) a fork";
  const pid_t pid = start([this]() -> int {
    const pid_t child = ::vfork();
    if (child == 0) {
      shared_.stage = 1;
      while (shared_.stage == 1) ::usleep(500);
      ::_exit(0);
    }
    return 11;
  });
  ASSERT_TRUE(eventually([&] { return shared_.stage == 1; }));
  // What has not stopped is let go with the end of the tracer.
  int code = 0;
  std::thread([&] {
    const auto refused = attach(pid);
    code = refused ? 0 : refused.error().code();
  }).join();
  EXPECT_EQ(code, ETIMEDOUT);
  shared_.stage = 2;
  let_end(pid, 11);
}

TEST_F(Attach, ThreadsWithDifferentFiltersAreRefused) {
  const pid_t pid = start([this]() -> int {
    std::thread other([this] {
      sock_filter allow{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
      const sock_fprog program{1, &allow};
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
      shared_.stage = 1;
      while (shared_.stage == 1) ::usleep(500);
    });
    other.join();
    return 12;
  });
  ASSERT_TRUE(eventually([&] { return shared_.stage == 1; }));
  const auto refused = attach(pid);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().context(),
            "process " + std::to_string(pid) + ": its threads have different seccomp filters");
  shared_.stage = 2;
  let_end(pid, 12);
}

TEST_F(Attach, WhoHasEndedIsGone) {
  const pid_t pid = start([] { return 0; });
  ASSERT_TRUE(eventually([&] { return state_of(pid) == 'Z'; }));
  EXPECT_TRUE(attach(pid).error().gone());
  EXPECT_TRUE(attach(4000000).error().gone());
}

}  // namespace
}  // namespace swapd::sys
