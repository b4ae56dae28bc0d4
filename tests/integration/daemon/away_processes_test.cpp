// Processes whose memory goes to swap and comes back, one in the place of another.
#include "memory/away_processes.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <thread>

#include "fakes/fake_groups.h"
#include "fakes/fake_scheduler.h"
#include "supervised.h"
#include "swap_device.h"

namespace swapd::daemon {
namespace {

using Phase = AwayProcesses::Phase;
constexpr std::size_t mib = 1 << 20;

// A child that has so much memory of its own, and does nothing.
class Holder {
 public:
  explicit Holder(std::size_t bytes) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::alarm(60);
      auto* memory =
          static_cast<char*>(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
      for (std::size_t at = 0; memory != MAP_FAILED && at < bytes; at += 4096) memory[at] = static_cast<char>(at >> 12);
      (void)!::write(ends[1], "", 1);
      for (;;) ::pause();
    }
    char ready = 0;
    (void)!::read(ends[0], &ready, 1);
    for (const int end : ends) ::close(end);
  }
  ~Holder() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

class AwayProcessesTest : public testing::Test {
 protected:
  void SetUp() override {
    swap_.emplace(1024 * std::int64_t{mib});
    if (!swap_->failure().empty()) GTEST_SKIP() << swap_->failure();
    if (::geteuid() != 0) GTEST_SKIP() << "not root";
    away_.start();
  }
  static std::optional<Phase> phase_in(const std::vector<AwayProcesses::View>& views, const Holder& one) {
    const auto found = std::ranges::find(views, one.pid(), &AwayProcesses::View::tgid);
    return found == views.end() ? std::nullopt : std::optional(found->phase);
  }
  [[nodiscard]] std::optional<Phase> phase(const Holder& one) const { return phase_in(away_.views(), one); }
  [[nodiscard]] bool is_put_away(const Holder& one) {
    away_.set({one.pid()});
    return test::eventually([&] { return phase(one) == Phase::away; });
  }

  std::optional<test::SwapDevice> swap_;
  Holder one_{16 * mib}, other_{256 * mib};
  const sys::Procfs procfs_;
  fakes::FakeScheduler scheduler_;
  fakes::FakeGroups groups_;
  SteadyClock clock_;
  std::array<FrozenGroup, 4> frozen_{};
  AwayProcesses away_{{procfs_, scheduler_, groups_, clock_}, {.memory = frozen_}, [] {}};
};

TEST_F(AwayProcessesTest, OneComesBackOnceTheOneThatLeavesForItIsOut) {
  ASSERT_TRUE(is_put_away(one_));
  away_.set({other_.pid()});
  const Time until = clock_.now() + std::chrono::seconds(20);
  std::optional<Phase> others = Phase::enters;
  for (bool there = true; there && clock_.now() < until; std::this_thread::yield()) {
    const auto views = away_.views();  // both as of one moment
    there = phase_in(views, one_).has_value();
    others = phase_in(views, other_);
  }
  EXPECT_EQ(phase(one_), std::nullopt);
  EXPECT_EQ(others, Phase::away);
}

TEST_F(AwayProcessesTest, OneComesBackWhereNoneLeavesForIt) {
  ASSERT_TRUE(is_put_away(one_));
  away_.set({});
  EXPECT_TRUE(test::eventually([&] { return !phase(one_); }));
}

}  // namespace
}  // namespace swapd::daemon
