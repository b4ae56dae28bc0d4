// The CPU time of swapd itself, as `status` says it, against what the kernel counts; and the policy's budget for it.
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "session.h"

namespace swapd::test {
namespace {

// proc_pid_stat(5): fields 14 and 15, utime and stime.
double kernel_cpu_s(pid_t pid) {
  std::ostringstream text;
  text << std::ifstream("/proc/" + std::to_string(pid) + "/stat").rdbuf();
  std::istringstream rest(text.str().substr(text.str().rfind(')') + 1));
  std::string skipped;
  for (int field = 3; field < 14; ++field) rest >> skipped;
  double user = 0, system = 0;
  rest >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

class Budget : public ::testing::TestWithParam<const char*> {
 protected:
  void start(const std::string& policy) {
    session.emplace(std::vector<std::string>{"--observe", GetParam()}, policy);
    if (!session->failure().empty()) GTEST_SKIP() << session->failure();
  }
  void forks(const char* n) {
    EXPECT_EQ(session->wait(session->start({"--nice", "-5"}, {session->pair(), "forks", n})), 0);
  }
  std::optional<Session> session;
};

TEST_P(Budget, all_cpu_time_of_swapd_is_told_as_the_kernel_counts_it) {
  start("");
  if (!session) return;
  forks("300");
  const pid_t swapd = session->daemon_pid();
  const double tick = 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  const double before = kernel_cpu_s(swapd);
  const auto cpu = session->json({"status"})["cpu"];
  const double after = kernel_cpu_s(swapd);
  EXPECT_GE(cpu["total_s"].get<double>(), before - 2 * tick);
  EXPECT_LE(cpu["total_s"].get<double>(), after + 2 * tick);
  double sum = 0;
  for (const char* part : {"engine_s", "worker_s", "receivers_s", "jobs_s", "memory_s", "control_s"})
    sum += cpu[part].get<double>();
  EXPECT_NEAR(sum, cpu["total_s"].get<double>(), 1e-6);
  EXPECT_GT(cpu["engine_s"].get<double>(), 0);
  EXPECT_GT(cpu["control_s"].get<double>(), 0) << "it has started all the others, and answers";
  EXPECT_GE(cpu["guard_s"].get<double>(), 0);
}

TEST_P(Budget, is_the_policys_and_lower_while_there_is_nothing_to_help) {
  start("[observe]\nbudget = 0.1\n");
  if (!session) return;
  const auto budget = session->json({"status"})["budget"];
  EXPECT_DOUBLE_EQ(budget["share"], 0.1);
  EXPECT_DOUBLE_EQ(budget["share_now"], 0.02);
  EXPECT_DOUBLE_EQ(budget["patience_ms"], 1);
  EXPECT_GE(budget["used"].get<double>(), 0);
}

TEST_P(Budget, that_is_small_makes_swapd_patient) {
  start("[observe]\nbudget = 0.005\n");
  if (!session) return;
  const pid_t storm = session->start({"--nice", "-5"}, {session->pair(), "forks", "20000"});
  EXPECT_TRUE(eventually([&] { return session->json({"status"})["budget"]["patience_ms"] > 2; }))
      << session->json({"status"});
  EXPECT_GT(session->json({"status"})["budget"]["used"].get<double>(), 0.005);
  session->kill(storm, SIGTERM);
}

INSTANTIATE_TEST_SUITE_P(observers, Budget, ::testing::Values("bpf", "seccomp"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace swapd::test
