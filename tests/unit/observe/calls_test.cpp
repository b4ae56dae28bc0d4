// What calls ask for, as far as numbers alone tell: lock ranges, futex owners, ends of descriptors.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/syscall.h>

#include "observe/resolve/descriptor.h"
#include "observe/resolve/futex_owner.h"
#include "observe/resolve/lock_calls.h"
#include "observe/resolve/resolver.h"

namespace swapd::observe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct flock request(short whence, off_t start, off_t length, short type = F_WRLCK) {
  struct flock out {};
  out.l_type = type;
  out.l_whence = whence;
  out.l_start = start;
  out.l_len = length;
  return out;
}

void expect_range(const struct flock& lock, std::uint64_t first, std::uint64_t last) {
  const auto out = requested_range(lock, 100, 1000);
  ASSERT_TRUE(out);
  EXPECT_EQ(out->first, first);
  EXPECT_EQ(out->last, last);
}

TEST(RequestedRange, AsFcntlDescribesIt) {
  expect_range(request(SEEK_SET, 10, 5), 10, 14);
  expect_range(request(SEEK_SET, 10, 0), 10, UINT64_MAX);
  expect_range(request(SEEK_CUR, -10, 5), 90, 94);
  expect_range(request(SEEK_END, 0, 1), 1000, 1000);
  expect_range(request(SEEK_SET, 10, -4), 6, 9);
  expect_range(request(SEEK_SET, 0, INT64_MAX), 0, INT64_MAX - 1);
  expect_range(request(SEEK_SET, 1, INT64_MAX), 1, UINT64_MAX);
  EXPECT_TRUE(requested_range(request(SEEK_SET, 0, 0), 0, 0)->write);
  EXPECT_FALSE(requested_range(request(SEEK_SET, 0, 0, F_RDLCK), 0, 0)->write);
}

TEST(RequestedRange, WhatTheKernelRefuses) {
  EXPECT_FALSE(requested_range(request(SEEK_SET, -1, 1), 0, 0));
  EXPECT_FALSE(requested_range(request(SEEK_CUR, -101, 1), 100, 0));
  EXPECT_FALSE(requested_range(request(SEEK_SET, 3, -4), 0, 0));
  EXPECT_FALSE(requested_range(request(SEEK_SET, 0, -1), 0, 0));
  EXPECT_FALSE(requested_range(request(SEEK_CUR, INT64_MAX, 1), 100, 0));
  EXPECT_FALSE(requested_range(request(SEEK_SET, 2, INT64_MAX), 0, 0));
  EXPECT_FALSE(requested_range(request(SEEK_END, 0, 1), 0, UINT64_MAX));
  EXPECT_FALSE(requested_range(request(9, 0, 1), 0, 0));
  EXPECT_FALSE(requested_range(request(SEEK_SET, INT64_MIN, INT64_MIN), 0, 0));
}

// A process whose start is known is not looked up: there is no /proc here.
TEST(PrivateFutex, IsOfTheProcessThatTheCallerKnows) {
  const sys::Procfs nothing("/nowhere");
  EXPECT_EQ(private_futex(nothing, {10, 77}, 4096), futex_of({10, 77}, 4096));
  EXPECT_EQ(private_futex(nothing, {10, 0}, 4096), std::nullopt);
}

TEST(FutexOwner, Operations) {
  EXPECT_EQ(futex_op(FUTEX_WAIT_PRIVATE), FutexOp::wait);
  EXPECT_EQ(futex_op(FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME), FutexOp::wait);
  EXPECT_EQ(futex_op(FUTEX_LOCK_PI_PRIVATE), FutexOp::lock_pi);
  EXPECT_EQ(futex_op(FUTEX_WAKE), FutexOp::none);
  EXPECT_EQ(futex_op(FUTEX_WAIT | 1ULL << 40), FutexOp::wait);  // the kernel takes an int
}

TEST(FutexOwner, WhoTheMemoryNames) {
  EXPECT_THAT(owner_candidates(FutexOp::wait, {.word = 2, .owner_field = 77, .expected = 2}), ElementsAre(77));
  EXPECT_THAT(owner_candidates(FutexOp::lock_pi, {.word = 77 | FUTEX_WAITERS}), ElementsAre(77));
  EXPECT_THAT(owner_candidates(FutexOp::wait, {.word = 77 | FUTEX_WAITERS, .expected = 77 | FUTEX_WAITERS}),
              ElementsAre(77));
  EXPECT_THAT(owner_candidates(FutexOp::wait, {.word = 77, .expected = 77}), ElementsAre(77));  // pthread_join
  EXPECT_THAT(owner_candidates(FutexOp::wait, {.word = 0, .owner_field = 77, .expected = 0}), IsEmpty());
  EXPECT_THAT(owner_candidates(FutexOp::wait, {.word = 5, .owner_field = 77, .expected = 4}), IsEmpty());
  EXPECT_THAT(owner_candidates(FutexOp::wait, {.word = 2, .owner_field = 0xffffffff, .expected = 2}), IsEmpty());
  EXPECT_THAT(owner_candidates(FutexOp::lock_pi, {.word = 0}), IsEmpty());
}

using Type = Descriptor::Type;

TEST(Ends, AReaderAwaitsTheWritingEnd) {
  const Descriptor pipe{Type::pipe, 15, 77, 0};
  EXPECT_EQ(other_end(pipe, Direction::in), (Resource{ResourceKind::pipe, {77, 1}}));
  EXPECT_EQ(other_end(pipe, Direction::out), (Resource{ResourceKind::pipe, {77, 0}}));
  EXPECT_EQ(own_end(pipe, Direction::in), (Resource{ResourceKind::pipe, {77, 0}}));
  EXPECT_EQ(own_end(pipe, Direction::out), (Resource{ResourceKind::pipe, {77, 1}}));
  EXPECT_EQ(other_end({Type::fifo, 5, 77, 0}, Direction::in), (Resource{ResourceKind::fifo, {77, 1, 5}}));
}

TEST(Ends, TheSidesOfATerminal) {
  const Descriptor slave{Type::pty_slave, 26, 3, 4};
  const Descriptor master{Type::pty_master, 26, 91, 4};
  EXPECT_EQ(other_end(slave, Direction::in), own_end(master, Direction::out));
  EXPECT_EQ(other_end(master, Direction::out), own_end(slave, Direction::in));
  EXPECT_EQ(own_end(master, Direction::in), (Resource{ResourceKind::pty, {4, 1, 26}}));
}

TEST(Ends, AnEventfdHasOne) {
  const Descriptor event{Type::eventfd, 16, 1030, 9};
  EXPECT_EQ(other_end(event, Direction::in), own_end(event, Direction::out));
}

TEST(Ends, WhatADescriptorAloneDoesNotTell) {
  for (const Type type :
       {Type::socket, Type::epoll, Type::signalfd, Type::pidfd, Type::timerfd, Type::disk, Type::other})
    EXPECT_FALSE(other_end({type, 1, 2, 3}, Direction::in));
  EXPECT_EQ(own_end({Type::socket, 1, 2, 0}, Direction::in), (Resource{ResourceKind::socket, {2}}));
}

CallSite call_of(std::int32_t nr, std::array<std::uint64_t, 6> args, pid_t tid = 7) {
  return {.tid = tid, .tgid = 7, .nr = nr, .args = args};
}

TEST(SameAccess, WhateverIsInTheBuffers) {
  EXPECT_TRUE(same_access(call_of(SYS_write, {3, 0x1000, 5}), call_of(SYS_write, {3, 0x2000, 9})));
  EXPECT_TRUE(same_access(call_of(SYS_semtimedop, {1, 0x1000, 1}), call_of(SYS_semtimedop, {1, 0x2000, 2})));
}

TEST(SameAccess, AnotherObjectThreadOrCallIsAnother) {
  EXPECT_FALSE(same_access(call_of(SYS_write, {3}), call_of(SYS_write, {4})));
  EXPECT_FALSE(same_access(call_of(SYS_semtimedop, {1}), call_of(SYS_semtimedop, {2})));
  EXPECT_FALSE(same_access(call_of(SYS_write, {3}), call_of(SYS_read, {3})));
  EXPECT_FALSE(same_access(call_of(SYS_write, {3}), call_of(SYS_write, {3}, 8)));
}

TEST(SameAccess, WhatTheOtherArgumentsNameCounts) {
  EXPECT_FALSE(same_access(call_of(SYS_flock, {3, LOCK_EX}), call_of(SYS_flock, {3, LOCK_UN})));
  EXPECT_FALSE(same_access(call_of(SYS_sendto, {3, 0, 0, 0, 0x1000}), call_of(SYS_sendto, {3, 0, 0, 0, 0x2000})));
  EXPECT_FALSE(same_access(call_of(SYS_sendfile, {3, 4}), call_of(SYS_sendfile, {3, 5})));
}

}  // namespace
}  // namespace swapd::observe
