#include "observe/seccomp/interruptible_thread.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <thread>

#include "base/fd.h"

namespace swapd::observe {
namespace {

// A pipe that stays empty.
struct EmptyPipe {
  EmptyPipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    from.reset(ends[0]);
    to.reset(ends[1]);
  }
  Fd from, to;
};

TEST(InterruptibleThread, StopBringsItOutOfACall) {
  const EmptyPipe pipe;
  InterruptibleThread thread;
  int error = 0;
  ASSERT_TRUE(thread.start("test", 0, [&] {
    while (!thread.stopping()) {
      char byte = 0;
      error = ::read(pipe.from.get(), &byte, 1) < 0 ? errno : 0;
    }
  }));
  EXPECT_GT(thread.tid(), 0);
  EXPECT_NE(thread.tid(), ::gettid());
  EXPECT_TRUE(thread.running());
  thread.stop();
  EXPECT_TRUE(error == 0 || error == EINTR);
  EXPECT_FALSE(thread.running());
  thread.stop();  // again: nothing
}

TEST(InterruptibleThread, ItsEndIsNotAStop) {
  InterruptibleThread thread;
  bool was_stopping = true;
  ASSERT_TRUE(thread.start("test", 0, [&] { was_stopping = thread.stopping(); }));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (thread.running() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_FALSE(thread.running());
  thread.stop();
  EXPECT_FALSE(was_stopping);
}

TEST(InterruptibleThread, OneThatWasNeverStartedHasNothingToStop) {
  InterruptibleThread thread;
  thread.stop();
  EXPECT_EQ(thread.tid(), 0);
  EXPECT_FALSE(thread.running());
}

}  // namespace
}  // namespace swapd::observe
