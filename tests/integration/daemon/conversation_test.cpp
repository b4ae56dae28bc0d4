// Two threads that keep waiting for each other beside busy loops, on one CPU.
#include <unistd.h>

#include <array>
#include <csignal>

#include "session.h"
#include "sys/sched/scheduler.h"

namespace swapd::test {
namespace {

class Conversation : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!session.failure().empty()) GTEST_SKIP() << session.failure();
    server = session.start({}, {session.pair(), "echo", session.path("sock")});
    for (pid_t& hog : hogs) hog = session.start_plain({session.pair(), "spin", "40"});
    client = session.start({"--nice", "-10"}, {session.pair(), "talk", session.path("sock"), session.path("flag")});
  }
  // As only a conversation has it: a donation's slice is half of the kernel's own.
  [[nodiscard]] bool has_short_slice(pid_t pid) const {
    return sys::LinuxScheduler().default_slice_ns() == 0 || kernel_attr(pid).slice_ns == 100'000;
  }
  Session session{{"--observe", "bpf"}};
  // Twice a second: swapctl wants a CPU itself.
  [[nodiscard]] double budget() const {
    ::usleep(500'000);
    return session.json({"status"})["budget"]["share_now"].get<double>();
  }
  pid_t server = -1, client = -1;
  std::array<pid_t, 2> hogs{-1, -1};
};

TEST_F(Conversation, KeepsTheServerAtTheClientsNiceValueAndBothAtShortSlices) {
  EXPECT_TRUE(eventually([&] { return kernel_attr(server).nice == -10 && has_short_slice(server); }))
      << session.ctl({"why"}).out;
  EXPECT_TRUE(eventually([&] { return kernel_attr(client).nice == -10 && has_short_slice(client); }));
  session.raise("flag");
  EXPECT_EQ(session.wait(client), 0);
  EXPECT_TRUE(eventually([&] { return kernel_attr(server).nice == 0 && kernel_attr(server).slice_ns == 0; }));
}

TEST_F(Conversation, HasTheIdleBudgetOnceNoThreadCompetesForTheCpu) {
  ASSERT_TRUE(eventually([&] { return kernel_attr(server).nice == -10; }));
  EXPECT_TRUE(eventually([&] { return budget() == 0.05; })) << session.json({"status"});
  for (const pid_t hog : hogs) session.kill(hog, SIGTERM);
  EXPECT_TRUE(eventually([&] { return budget() == 0.02; })) << session.json({"status"});
  EXPECT_EQ(kernel_attr(server).nice, -10) << "it still answers";
}

TEST_F(Conversation, EndsWithSwapd) {
  ASSERT_TRUE(eventually([&] { return kernel_attr(server).nice == -10 && has_short_slice(client); }));
  EXPECT_EQ(session.stop(SIGINT), 0);
  EXPECT_EQ(kernel_attr(server).nice, 0);
  EXPECT_EQ(kernel_attr(server).slice_ns, 0U);
  EXPECT_EQ(kernel_attr(client).nice, -10);
  EXPECT_EQ(kernel_attr(client).slice_ns, 0U);
}

}  // namespace
}  // namespace swapd::test
