// Sets that change while threads wait in them, and what the engine is told without a look.
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <future>
#include <thread>

#include "blocked_program.h"

namespace swapd::observe {
namespace {

using std::chrono::milliseconds;

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    in.reset(ends[0]);
    out.reset(ends[1]);
  }
  [[nodiscard]] Resource writers() const {
    struct stat st {};
    EXPECT_EQ(::fstat(in.get(), &st), 0);
    return pipe_end(st.st_ino, PipeEnd::write);
  }
  Fd in, out;
};

// A thread of this process, whose descriptors the test can change.
class Waiter {
 public:
  explicit Waiter(const std::function<void()>& wait) {
    std::promise<pid_t> tid;
    auto known = tid.get_future();
    thread_ = std::thread([&tid, wait] {
      tid.set_value(::gettid());
      wait();
    });
    tid_ = known.get();
  }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;
  ~Waiter() { thread_.join(); }
  [[nodiscard]] pid_t tid() const { return tid_; }

 private:
  std::thread thread_;
  pid_t tid_ = -1;
};

class Sets : public ResolverTest {
 protected:
  // Looks, as the worker does when the engine asks, until the engine need not ask for a while.
  void settle(const CallSite& site) {
    for (int i = 0; i < 10; ++i) {
      (void)resolver_.full(site);
      const Wait wait = resolver_.quick(site);
      if (wait.complete) clock_.set(wait.believed_until);
    }
    (void)resolver_.full(site);
    ASSERT_TRUE(resolver_.quick(site).complete);
  }
  // What the thread is said to wait for by the time that the engine has had to ask.
  [[nodiscard]] std::vector<Resource> told_in_time(const CallSite& site) {
    Wait wait = resolver_.quick(site);
    if (wait.complete) {
      clock_.set(wait.believed_until);
      wait = resolver_.quick(site);
    }
    EXPECT_FALSE(wait.complete);
    return resolver_.full(site).awaited;
  }

  ManualClock clock_;
  Resolver resolver_{procfs_, diag_, &clock_};
};

class EpollSets : public Sets {
 protected:
  void SetUp() override {
    clock_.advance(std::chrono::seconds(1000));
    add(end_);
    add(one_);
    waiter_.emplace([this] {
      epoll_event event{};
      ::epoll_wait(set_.get(), &event, 1, -1);
    });
    site_ = blocked(waiter_->tid(), {SYS_epoll_wait});
    settle(site_);
  }
  void TearDown() override { EXPECT_EQ(::write(end_.out.get(), "x", 1), 1); }
  void add(const Pipe& pipe) const {
    epoll_event event{};
    event.events = EPOLLIN;
    ASSERT_EQ(::epoll_ctl(set_.get(), EPOLL_CTL_ADD, pipe.in.get(), &event), 0);
  }

  const Fd set_{::epoll_create1(EPOLL_CLOEXEC)};
  const Pipe end_;
  Pipe one_;
  std::optional<Waiter> waiter_;
  CallSite site_;
};

TEST_F(EpollSets, AreToldWithoutTheWorkerWhileTheyAreBelieved) {
  const Wait wait = resolver_.quick(site_);
  EXPECT_TRUE(wait.complete);
  EXPECT_THAT(wait.awaited, testing::UnorderedElementsAre(end_.writers(), one_.writers()));
  EXPECT_GT(wait.believed_until, clock_.now());
}

TEST_F(EpollSets, AMemberMore) {
  const Pipe more;
  add(more);
  EXPECT_THAT(told_in_time(site_), testing::UnorderedElementsAre(end_.writers(), one_.writers(), more.writers()));
}

TEST_F(EpollSets, AMemberLess) {
  ASSERT_EQ(::epoll_ctl(set_.get(), EPOLL_CTL_DEL, one_.in.get(), nullptr), 0);
  EXPECT_THAT(told_in_time(site_), testing::ElementsAre(end_.writers()));
}

TEST_F(EpollSets, AMemberThatWasClosed) {
  one_.in.reset();
  EXPECT_THAT(told_in_time(site_), testing::ElementsAre(end_.writers()));
}

TEST_F(EpollSets, AMemberWhoseNumberIsAnotherFileNow) {
  const Pipe other;
  const Resource before = one_.writers();
  const Fd copy(::dup(one_.in.get()));  // keeps it in the set
  ASSERT_GE(::dup3(other.in.get(), one_.in.get(), O_CLOEXEC), 0);
  EXPECT_THAT(told_in_time(site_), testing::UnorderedElementsAre(end_.writers(), before));
  add(one_);
  clock_.advance(std::chrono::seconds(1));
  EXPECT_THAT(told_in_time(site_), testing::UnorderedElementsAre(end_.writers(), before, other.writers()));
}

TEST_F(EpollSets, AProcessThatEndsOrExecutesAnotherProgramIsForgotten) {
  resolver_.forget(site_.tgid);
  const Wait wait = resolver_.quick(site_);
  EXPECT_FALSE(wait.complete);
  EXPECT_THAT(wait.awaited, testing::IsEmpty());
}

TEST_F(Sets, APollArrayWhoseDescriptorIsAnotherFileNow) {
  const Pipe end, other;
  const Pipe one;
  std::array<pollfd, 2> fds{{{end.in.get(), POLLIN, 0}, {one.in.get(), POLLIN, 0}}};
  const Waiter waiter([&] { ::poll(fds.data(), fds.size(), -1); });
  const CallSite site = blocked(waiter.tid(), {SYS_poll, SYS_ppoll});
  settle(site);
  EXPECT_THAT(resolver_.quick(site).awaited, testing::UnorderedElementsAre(end.writers(), one.writers()));
  EXPECT_GE(::dup3(other.in.get(), one.in.get(), O_CLOEXEC), 0);
  EXPECT_THAT(told_in_time(site), testing::UnorderedElementsAre(end.writers(), other.writers()));
  EXPECT_EQ(::write(end.out.get(), "x", 1), 1);
}

}  // namespace
}  // namespace swapd::observe
