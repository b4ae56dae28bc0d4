// Calls of 32-bit programs, by the numbers of asm/unistd_32.h.
#include "observe/resolve/compat_calls.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include "observe/resolve/syscall_table.h"

namespace swapd::observe {
namespace {

TEST(CompatCalls, HaveOtherNumbers) {
  EXPECT_EQ(native_call(3), SYS_read);
  EXPECT_EQ(native_call(4), SYS_write);
  EXPECT_EQ(native_call(7), SYS_wait4) << "waitpid";
  EXPECT_EQ(native_call(168), SYS_poll);
  EXPECT_EQ(native_call(240), SYS_futex);
  EXPECT_EQ(native_call(422), SYS_futex) << "futex_time64";
}

TEST(CompatCalls, NewOnesHaveOneNumberInBothTables) {
  for (const std::int32_t nr : {SYS_pidfd_send_signal, SYS_io_uring_enter, SYS_epoll_pwait2, SYS_futex_waitv})
    EXPECT_EQ(native_call(nr), nr);
}

TEST(CompatCalls, WhatCannotBeToldIsUnknown) {
  for (const std::int32_t nr : {102 /* socketcall */, 117 /* ipc */, 0, -1, 9999})
    EXPECT_EQ(call_entry(native_call(nr)).kind, CallKind::unknown) << nr;
}

}  // namespace
}  // namespace swapd::observe
