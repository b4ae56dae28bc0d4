#include "base/fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>

namespace swapd {
namespace {

bool is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }

std::array<int, 2> two_ends() {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  return ends;
}

TEST(Fd, ClosesOnce) {
  const auto [read_end, write_end] = two_ends();
  {
    const Fd owner(read_end);
    const Fd other(write_end);
    EXPECT_TRUE(owner);
  }
  EXPECT_FALSE(is_open(read_end));
  EXPECT_FALSE(is_open(write_end));
}

TEST(Fd, MovesItsDescriptor) {
  const auto [read_end, write_end] = two_ends();
  Fd first(read_end);
  Fd second(std::move(first));
  EXPECT_FALSE(first.valid());  // NOLINT(bugprone-use-after-move): what a moved-from Fd is, is part of its contract
  EXPECT_EQ(second.get(), read_end);
  Fd third(write_end);
  third = std::move(second);
  EXPECT_FALSE(is_open(write_end)) << "the one it held is closed";
  EXPECT_TRUE(is_open(read_end));
}

TEST(Fd, ReleasesAndResets) {
  const auto [read_end, write_end] = two_ends();
  Fd fd(read_end);
  EXPECT_EQ(fd.release(), read_end);
  EXPECT_FALSE(fd);
  EXPECT_TRUE(is_open(read_end));
  fd.reset(read_end);
  fd.reset(write_end);
  EXPECT_FALSE(is_open(read_end));
  fd.reset();
  EXPECT_FALSE(is_open(write_end));
}

}  // namespace
}  // namespace swapd
