#include "observe/resolve/fd_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>

namespace swapd::observe {
namespace {

// The descriptors are this process's own.
class FdCacheTest : public testing::Test {
 protected:
  struct Pipe {
    Fd reading, writing;
    std::uint64_t inode = 0;
  };
  static Pipe make_pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    struct stat st {};
    EXPECT_EQ(::fstat(ends[0], &st), 0);
    return {Fd(ends[0]), Fd(ends[1]), st.st_ino};
  }
  std::size_t count(std::uint64_t inode) {
    return cache_
        .find(::getpid(), std::chrono::milliseconds(50),
              [&](const sys::FdIdentity& i) { return S_ISFIFO(i.mode) && i.ino == inode; })
        .size();
  }

  sys::Procfs procfs_;
  ManualClock clock_;
  FdCache cache_{procfs_, clock_};
};

TEST_F(FdCacheTest, AClosedDescriptorIsNotFoundThoughRemembered) {
  Pipe pipe = make_pipe();
  EXPECT_EQ(count(pipe.inode), 2U);
  pipe.writing.reset();
  EXPECT_EQ(count(pipe.inode), 1U);
}

TEST_F(FdCacheTest, ANumberThatIsAnotherFileNow) {
  const Pipe first = make_pipe();
  const Pipe second = make_pipe();
  EXPECT_EQ(count(first.inode), 2U);
  ASSERT_GE(::dup3(second.reading.get(), first.reading.get(), O_CLOEXEC), 0);
  EXPECT_EQ(count(first.inode), 1U);
  EXPECT_EQ(count(second.inode), 3U);  // the failure had the table read anew
}

TEST_F(FdCacheTest, ANewDescriptorIsSeenWhenTheTableIsOld) {
  const Pipe old = make_pipe();
  EXPECT_EQ(count(old.inode), 2U);
  const Fd copy(::dup(old.reading.get()));
  EXPECT_EQ(count(old.inode), 2U);
  clock_.advance(std::chrono::milliseconds(50));
  EXPECT_EQ(count(old.inode), 3U);
}

// A /proc of our own, in which more processes have descriptors than are remembered.
TEST_F(FdCacheTest, ProcessesWithoutEndAreNotAllRemembered) {
  const std::string root = testing::TempDir() + "swapd-fd-cache-" + std::to_string(::getpid());
  const sys::Procfs many(root);
  FdCache cache(many, clock_);
  std::size_t most = 0;
  for (pid_t pid = 1; pid <= 8300; ++pid) {
    const std::string process = root + "/" + std::to_string(pid);
    std::filesystem::create_directories(process + "/fd");
    (void)cache.find(pid, Duration::zero(), [](const auto&) { return false; });
    most = std::max(most, cache.size());
    std::filesystem::remove_all(process);
  }
  std::filesystem::remove_all(root);
  EXPECT_LE(most, 8192U);
  EXPECT_GE(most, 4096U);
}

TEST_F(FdCacheTest, AProcessThatNobodyAsksForIsForgotten) {
  const auto ask = [&](pid_t pid) { (void)cache_.find(pid, Duration::zero(), [](const auto&) { return false; }); };
  ask(::getppid());
  for (int second = 0; second < 11; ++second) {
    clock_.advance(std::chrono::seconds(1));
    ask(::getpid());
  }
  EXPECT_EQ(cache_.size(), 1U);
}

TEST_F(FdCacheTest, AProcessThatIsGoneIsForgotten) {
  EXPECT_TRUE(cache_.find(::getpid(), Duration::zero(), [](const auto&) { return false; }).empty());
  EXPECT_EQ(cache_.size(), 1U);
  EXPECT_TRUE(cache_.find(0x3fffffff, Duration::zero(), [](const auto&) { return true; }).empty());
  EXPECT_EQ(cache_.size(), 1U);
}

}  // namespace
}  // namespace swapd::observe
