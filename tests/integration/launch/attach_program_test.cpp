// swapd-attach where swapd does not do its part: the program that stands still goes on, and its calls are answered.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <string>

#include "enroll/attach_messages.h"
#include "guard/guard_messages.h"
#include "guard/guard_takeover.h"
#include "guard/helper_program.h"
#include "supervised.h"
#include "sys/process/pidfd.h"
#include "sys/procfs/procfs.h"
#include "sys/seccomp/seccomp.h"

namespace swapd::daemon {
namespace {

using test::eventually;
using test::state_of;

class AttachProgram : public testing::Test {
 protected:
  struct Shared {
    std::atomic<long> calls{0};
    std::atomic<bool> wrong{false};
    std::atomic<int> helper{0};
  };

  AttachProgram()
      : shared_(*new (::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
                    Shared) {}
  ~AttachProgram() override { ::munmap(&shared_, sizeof(Shared)); }

  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root, to trace";
    std::string pattern = (std::filesystem::temp_directory_path() / "swapd-attach-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    state_dir_ = pattern;
    target_ = ::fork();
    if (target_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
      if (::syscall(SYS_getppid) <= 0) shared_.wrong = true;
      ++shared_.calls;
      ::usleep(1000);
    }
  }
  void TearDown() override {
    if (target_ <= 0) return;
    ::kill(target_, SIGKILL);
    ::waitpid(target_, nullptr, 0);
    const int helper = shared_.helper;
    EXPECT_TRUE(eventually([&] { return state_of(helper) == '\0' || state_of(helper) == 'Z'; })) << "it ends with them";
    EXPECT_FALSE(shared_.wrong);
    std::filesystem::remove_all(state_dir_);
  }

  // The helper, as swapd starts it; below 0: it does not start.
  pid_t start(Fd& socket) {
    int pair[2] = {-1, -1};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return -1;
    socket.reset(pair[0]);
    const Fd theirs(pair[1]);
    const auto program = OwnProgram::open(SWAPD_ATTACH_BINARY);
    if (!program) return -1;
    const auto child = program->start({"swapd-attach"}, {{theirs.get(), attach_fd::socket}});
    return child ? *child : -1;
  }

  // What swapd does, up to the listener; 0: well.
  int begin(Fd& socket, Fd& listener) {
    const pid_t helper = start(socket);
    if (helper < 0) return 3;
    shared_.helper = helper;
    const sys::TrapRule rule{.nr = SYS_getppid, .condition = {}};
    const auto filter = sys::build_filter(std::span(&rule, 1));
    AttachRequest request;
    request.pid = target_;
    request.start_time = sys::Procfs().thread_id(target_)->start_time;
    request.flags = sys::filter_flags();
    request.within = Duration(std::chrono::seconds(1)).count();
    request.instructions = static_cast<std::uint16_t>(filter->size());
    std::ranges::copy(*filter, request.program.begin());
    request.stale = Duration(std::chrono::milliseconds(50)).count();
    std::ranges::copy(state_dir_, request.state_dir.begin());
    const auto self = sys::open_pidfd(::getpid());
    if (!self || !send_with_fd(socket.get(), &request, sizeof request, self->get())) return 4;
    AttachAnswer answer;
    if (!await_readable(socket.get(), std::chrono::seconds(5))) return 5;
    auto received = receive_with_fd(socket.get(), &answer, sizeof answer);
    if (!received || answer.error != 0) return 6;
    listener = std::move(received->fd);
    return 0;
  }

  bool calls_go_on() {
    const long now = shared_.calls;
    return eventually([&] { return shared_.calls > now + 20; });
  }

  Shared& shared_;
  std::string state_dir_;
  pid_t target_ = -1;
};

TEST_F(AttachProgram, WhereSwapdEndsInTheMiddleTheNextOneFindsTheListener) {
  ASSERT_TRUE(calls_go_on());
  const pid_t swapd = ::fork();
  if (swapd == 0) {
    Fd socket;
    Fd listener;
    ::_exit(begin(socket, listener));
  }
  int status = 0;
  ASSERT_EQ(::waitpid(swapd, &status, 0), swapd);
  ASSERT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(calls_go_on()) << "a guard answers";
  auto left = OrphanGuard::find(state_dir_);
  ASSERT_EQ(left.size(), 1U);
  auto listeners = left.front().take();
  ASSERT_TRUE(listeners);
  ASSERT_EQ(listeners->size(), 1U);
  EXPECT_EQ(listeners->front().launch, target_);
  EXPECT_TRUE(sys::is_listener(listeners->front().listener.get()));
}

TEST_F(AttachProgram, WhereSwapdHangsTheProgramGoesOn) {
  ASSERT_TRUE(calls_go_on());
  Fd socket;
  Fd listener;
  ASSERT_EQ(begin(socket, listener), 0);
  EXPECT_TRUE(calls_go_on());
  // swapd is back, and says so: nobody else answers any more.
  ASSERT_TRUE(send_message(socket.get(), {.kind = GuardMessage::Kind::done}));
  const int helper = shared_.helper;
  EXPECT_TRUE(eventually([&] { return state_of(helper) == '\0' || state_of(helper) == 'Z'; }));
  const long answered = shared_.calls;
  for (int i = 0; i < 20; ++i) {
    pollfd entry{listener.get(), POLLIN, 0};
    ASSERT_EQ(::poll(&entry, 1, 10000), 1);
    if (const auto notification = sys::receive(listener.get()))
      (void)sys::answer_continue(listener.get(), notification->id);
  }
  EXPECT_TRUE(eventually([&] { return shared_.calls >= answered + 19; }));
}

// It lives, but has no use for the listener (no descriptor, no thread for it); after `swapctl restart` it may.
TEST_F(AttachProgram, WhereSwapdGivesUpTheNextOneFindsTheListener) {
  ASSERT_TRUE(calls_go_on());
  Fd socket;
  Fd listener;
  ASSERT_EQ(begin(socket, listener), 0);
  listener.reset();
  socket.reset();
  EXPECT_TRUE(calls_go_on());
  std::vector<OrphanGuard> left;
  ASSERT_TRUE(eventually([&] { return !(left = OrphanGuard::find(state_dir_)).empty(); }));
  const auto listeners = left.front().take();
  ASSERT_TRUE(listeners);
  EXPECT_EQ(listeners->size(), 1U);
  EXPECT_TRUE(calls_go_on());
}

TEST_F(AttachProgram, OfAnotherVersionIsRefused) {
  Fd socket;
  const pid_t helper = start(socket);
  ASSERT_GT(helper, 0);
  AttachRequest request;
  request.version = 99;
  ASSERT_TRUE(send_with_fd(socket.get(), &request, sizeof request, -1));
  AttachAnswer answer;
  ASSERT_TRUE(await_readable(socket.get(), std::chrono::seconds(5)));
  ASSERT_TRUE(receive_with_fd(socket.get(), &answer, sizeof answer));
  EXPECT_EQ(answer.error, EPROTO);
  int status = 0;
  ASSERT_EQ(::waitpid(helper, &status, 0), helper);
  EXPECT_TRUE(calls_go_on());
}

}  // namespace
}  // namespace swapd::daemon
