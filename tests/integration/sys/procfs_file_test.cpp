// What a thread does, from a file that stays open.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "supervised.h"
#include "sys/procfs/procfs.h"

namespace swapd::sys {
namespace {

TEST(ProcfsFile, KeptOpenSaysWhatTheThreadDoesNow) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const Fd reading(ends[0]), writing(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = 0;
    (void)!::syscall(SYS_read, reading.get(), &byte, 1);
    for (;;) ::syscall(SYS_pause);
  }
  const auto file = Procfs().open_syscall(child);
  ASSERT_TRUE(file.ok());
  const auto is_in = [&](int call) {
    return test::eventually([&] {
      const auto state = Procfs::syscall(*file);
      return state.ok() && state->in_call && state->nr == call;
    });
  };
  EXPECT_TRUE(is_in(SYS_read));
  EXPECT_EQ(::write(writing.get(), "x", 1), 1);
  EXPECT_TRUE(is_in(SYS_pause));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(Procfs::syscall(*file).ok());
}

}  // namespace
}  // namespace swapd::sys
