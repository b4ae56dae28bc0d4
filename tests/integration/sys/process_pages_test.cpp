// The memory of a real process goes to swap and comes back, and is what it was.
#include "sys/memory/process_pages.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "swap_device.h"

namespace swapd::test {
namespace {

constexpr std::int64_t mib = 1 << 20;
constexpr std::size_t size = 48 * mib;

class ProcessPagesTest : public testing::Test {
 protected:
  void SetUp() override {
    swap.emplace(512 * mib);
    if (!swap->failure().empty()) GTEST_SKIP() << swap->failure();
    if (::geteuid() != 0) GTEST_SKIP() << "not root";
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) live(ends);
    char ready = 0;
    ASSERT_EQ(::read(ends[0], &ready, 1), 1);
    answers = ends[0];
  }
  void TearDown() override {
    if (child > 0) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
    if (answers >= 0) ::close(answers);
  }
  // A child with a number of its own in each page; it says whether it still has when it is told to.
  [[noreturn]] static void live(int ends[2]) {
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGUSR1);
    ::sigprocmask(SIG_BLOCK, &wanted, nullptr);
    auto* memory =
        static_cast<std::uint64_t*>(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    constexpr std::size_t each = 4096 / sizeof(std::uint64_t);
    for (std::size_t i = 0; i < size / sizeof(std::uint64_t); i += each) memory[i] = i * 7 + 1;
    (void)!::write(ends[1], "r", 1);
    for (;;) {
      int signal = 0;
      ::sigwait(&wanted, &signal);
      bool good = true;
      for (std::size_t i = 0; i < size / sizeof(std::uint64_t); i += each) good = good && memory[i] == i * 7 + 1;
      (void)!::write(ends[1], good ? "y" : "n", 1);
    }
  }
  std::int64_t swapped() const {
    const auto now = sys::anonymous_size(child);
    return now.ok() ? now->swapped : -1;
  }
  static void all(sys::ProcessPages& pages, Result<bool> (sys::ProcessPages::*step)()) {
    for (int i = 0; i < 1000; ++i) {
      const auto more = (pages.*step)();
      ASSERT_TRUE(more.ok()) << more.error().text();
      if (!*more) return;
    }
    FAIL() << "it never ends";
  }
  std::optional<SwapDevice> swap;
  pid_t child = -1;
  int answers = -1;
};

TEST_F(ProcessPagesTest, AllOfItGoesOutAndComesBack) {
  auto pages = sys::ProcessPages::open(child);
  ASSERT_TRUE(pages.ok()) << pages.error().text();
  const auto before = sys::anonymous_size(child);
  ASSERT_TRUE(before.ok());
  EXPECT_GE(before->resident, static_cast<std::int64_t>(size));
  all(*pages, &sys::ProcessPages::put_out);
  EXPECT_GE(swapped(), static_cast<std::int64_t>(size) * 9 / 10);
  ASSERT_TRUE(pages->look().ok());
  all(*pages, &sys::ProcessPages::bring_back);
  EXPECT_LE(swapped(), static_cast<std::int64_t>(size) / 20);
  ::kill(child, SIGUSR1);
  char answer = 0;
  ASSERT_EQ(::read(answers, &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
}

TEST_F(ProcessPagesTest, ItIsDoneStepByStep) {
  auto pages = sys::ProcessPages::open(child);
  ASSERT_TRUE(pages.ok());
  const auto more = pages->put_out();
  ASSERT_TRUE(more.ok());
  EXPECT_TRUE(*more);
  EXPECT_LE(swapped(), static_cast<std::int64_t>(sys::ProcessPages::step) + mib);
}

TEST_F(ProcessPagesTest, OneThatIsGoneIsAnError) {
  auto pages = sys::ProcessPages::open(child);
  ASSERT_TRUE(pages.ok());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  const pid_t gone = std::exchange(child, -1);
  EXPECT_FALSE(pages->look().ok());
  EXPECT_FALSE(sys::anonymous_size(gone).ok());
  EXPECT_FALSE(sys::ProcessPages::open(gone).ok());
}

}  // namespace
}  // namespace swapd::test
