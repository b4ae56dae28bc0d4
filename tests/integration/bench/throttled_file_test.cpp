#include "shaping/throttled_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>

#include "harness/process.h"
#include "shaping/shape.h"

namespace swapd::bench {
namespace {

constexpr std::size_t half = 512 << 10;

// Never faster than it is told, both ways together; and what is written is there.
TEST(ThrottledFile, ReadingAndWritingShareItsSpeed) {
  if (::access("/dev/fuse", R_OK | W_OK) != 0) GTEST_SKIP() << "/dev/fuse cannot be opened";
  auto dir = TempDir::create();
  ASSERT_TRUE(dir.ok());
  const std::string backing = dir->path() + "/backing";
  ASSERT_TRUE(make_file(backing, 4 << 20).ok());
  std::unique_ptr<char, void (*)(void*)> block(static_cast<char*>(std::aligned_alloc(4096, half)), &std::free);
  {
    auto file = ThrottledFile::make(backing, dir->path() + "/at");
    if (!file && file.error().code() == EPERM) GTEST_SKIP() << file.error().text();
    ASSERT_TRUE(file.ok()) << file.error().text();
    const Fd fd(::open((*file)->path().c_str(), O_RDWR | O_DIRECT | O_CLOEXEC));
    ASSERT_TRUE(fd.valid());
    (*file)->set_rate(4 << 20);
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(::pread(fd.get(), block.get(), half, 0), static_cast<ssize_t>(half));
    EXPECT_EQ(block.get()[half - 1], 'x');
    std::fill_n(block.get(), half, 'y');
    EXPECT_EQ(::pwrite(fd.get(), block.get(), half, half), static_cast<ssize_t>(half));
    EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(249));
    (*file)->set_rate(0);
    EXPECT_EQ(::pread(fd.get(), block.get(), 8192, half - 4096), 8192);
    EXPECT_EQ(std::string(block.get(), 8192), std::string(4096, 'x') + std::string(4096, 'y'));
    EXPECT_EQ(::pread(fd.get(), block.get(), half, 4 << 20), 0) << "it ends";
  }
  EXPECT_NE(::access((dir->path() + "/at/file").c_str(), F_OK), 0) << "it is no longer mounted";
}

}  // namespace
}  // namespace swapd::bench
