// A tracer, and processes with a part to play: each waits for a word of the test before it goes on.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <functional>
#include <memory>
#include <vector>

#include "base/fd.h"
#include "supervised.h"
#include "sys/bpf/bpf_tracer.h"

namespace swapd::test {

// tid 0: the calling thread.
inline void pin_to_first_cpu(pid_t tid = 0) {
  cpu_set_t first;
  CPU_ZERO(&first);
  CPU_SET(0, &first);
  ::sched_setaffinity(tid, sizeof first, &first);
}

inline void read_byte(int fd) {
  char byte = 0;
  while (::read(fd, &byte, 1) < 0) {
  }
}

inline void write_byte(int fd) { (void)!::write(fd, "x", 1); }

// A child of one thread: a sanitizer's fork(3) starts one of its own there. Such a child makes system calls only.
inline pid_t bare_fork() { return static_cast<pid_t>(::syscall(SYS_fork)); }

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) std::abort();
    in.reset(ends[0]);
    out.reset(ends[1]);
  }
  // From a thread of another process: who it is.
  void tell_tid() const {
    const auto tid = static_cast<pid_t>(::syscall(SYS_gettid));
    (void)!::write(out.get(), &tid, sizeof tid);
  }
  [[nodiscard]] pid_t told_tid() const {
    pid_t tid = 0;
    while (::read(in.get(), &tid, sizeof tid) < 0) {
    }
    return tid;
  }
  Fd in, out;
};

class Role {
 public:
  // `play` runs in a child process once go() has been called.
  explicit Role(const std::function<void(Role&)>& play) {
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    word();
    play(*this);
    ::_exit(0);
  }
  Role(const Role&) = delete;
  Role& operator=(const Role&) = delete;
  ~Role() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  void go() const { write_byte(words_.out.get()); }
  void heard() const { read_byte(answers_.in.get()); }  // until the child has answered
  // In the child.
  void word() const { read_byte(words_.in.get()); }
  void answer() const { write_byte(answers_.out.get()); }
  // It has ended by itself.
  int end() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }

 private:
  Pipe words_, answers_;
  pid_t pid_ = -1;
};

// A child that waits for a word and ends, and its parent that waits for that.
inline void await_child(const Role& role) {
  const pid_t child = bare_fork();
  if (child == 0) {
    role.word();
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
}

class BpfTest : public testing::Test {
 protected:
  using What = sys::BpfRecord::What;
  using Phase = sys::ThreadSlot::Phase;

  void SetUp() override { open({}); }

  void open(const sys::BpfOptions& options) {
    tracer_.reset();
    auto opened = sys::BpfTracer::open(options);
    if (!opened && (opened.error().code() == EPERM || opened.error().code() == ENOTSUP))
      GTEST_SKIP() << opened.error().text();
    ASSERT_TRUE(opened) << opened.error().text();
    tracer_ = std::move(opened).value();
  }

  // Waits in its first word(): managed and watched there, it has not begun.
  void watch(const Role& role) const {
    ASSERT_TRUE(eventually([&] { return state_of(role.pid()) == 'S'; }));
    const Status managed = tracer_->manage(role.pid());
    ASSERT_TRUE(managed) << managed.error().text();
    ASSERT_TRUE(tracer_->watch(role.pid(), true, true));
  }

  // Its slot says so; for threads that nobody watches, too.
  [[nodiscard]] bool rests_in(pid_t tid, int call) const {
    return eventually([&] {
      const auto slot = tracer_->slot(tid);
      return slot && slot->phase == Phase::blocked && slot->call == call;
    });
  }

  // The next record for which `wanted` holds; those before it are dropped.
  bool find(const std::function<bool(const sys::BpfRecord&)>& wanted) {
    const Time deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (std::chrono::steady_clock::now() < deadline) {
      if (tracer_->read(&record_, 1) == 0) {
        pollfd ready{tracer_->fd(), POLLIN, 0};
        ::poll(&ready, 1, 20);
      } else if (wanted(record_)) {
        return true;
      }
    }
    return false;
  }
  bool find(What what, pid_t tid) {
    return find([&](const auto& r) { return r.what == what && r.tid == tid; });
  }
  bool find_block(pid_t tid, int call) {
    return find([&](const auto& r) { return r.what == What::blocked && r.tid == tid && r.call == call; });
  }
  std::vector<sys::BpfRecord> all() const {
    std::vector<sys::BpfRecord> found;
    for (sys::BpfRecord record; tracer_->read(&record, 1) == 1;) found.push_back(record);
    return found;
  }

  // The waiter blocks in one call, the provider ends that with another.
  void expect_waker(Role& waiter, int blocked_in, Role& provider, int woken_by) {
    watch(waiter);
    waiter.go();
    ASSERT_TRUE(find_block(waiter.pid(), blocked_in));
    blocked_ = record_;
    provider.go();
    ASSERT_TRUE(find(What::woken, waiter.pid()));
    EXPECT_EQ(record_.waker.tid, provider.pid());
    EXPECT_EQ(record_.waker.tgid, provider.pid());
    EXPECT_EQ(record_.waker.call, woken_by);
    EXPECT_EQ(record_.blocked_at, blocked_.time);
    EXPECT_GE(record_.time, blocked_.time);
    EXPECT_FALSE(record_.waker.interrupt);
  }

  std::unique_ptr<sys::BpfTracer> tracer_;
  sys::BpfRecord record_;   // the last one found
  sys::BpfRecord blocked_;  // of expect_waker
};

}  // namespace swapd::test
