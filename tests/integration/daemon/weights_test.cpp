// Importance that a cgroup's weight says, and providers in groups that are idle: real groups of the v1 cpu controller,
// a client that waits for a server, and hogs.
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "session.h"
#include "sys/sched/groups.h"

namespace swapd::test {
namespace {

class CpuGroup {
 public:
  explicit CpuGroup(const std::string& name) {
    const sys::LinuxGroups groups;
    if (groups.mount().version != sys::GroupMount::Version::v1) return;
    const std::string dir = groups.mount().point + "/swapd-weights-" + std::to_string(::getpid()) + "-" + name;
    if (::mkdir(dir.c_str(), 0755) == 0) dir_ = dir;
  }
  ~CpuGroup() {
    if (valid()) {
      EXPECT_TRUE(eventually([&] { return ::rmdir(dir_.c_str()) == 0; })) << dir_;
    }
  }
  CpuGroup(const CpuGroup&) = delete;
  CpuGroup& operator=(const CpuGroup&) = delete;
  [[nodiscard]] bool valid() const { return !dir_.empty(); }
  [[nodiscard]] std::string read(const std::string& file) const {
    std::ifstream in(dir_ + "/" + file);
    std::string text;
    std::getline(in, text);
    return text;
  }
  [[nodiscard]] bool write(const std::string& file, const std::string& text) const {
    std::ofstream out(dir_ + "/" + file);
    out << text << std::flush;
    return out.good();
  }
  // With all of its threads.
  [[nodiscard]] bool take(pid_t pid) const { return write("cgroup.procs", std::to_string(pid)); }

 private:
  std::string dir_;
};

const std::string by_weight = "[donation]\nceiling_share = 1\nweight_above = 100\n";

class Weights : public ::testing::TestWithParam<std::string> {
 protected:
  // The client is in a group of ten times the usual weight, the server in one of its own. Hogs are in `hogs_in`.
  void begin(const std::string& config, const CpuGroup& hogs_in, std::vector<std::string> server_options = {}) {
    ASSERT_TRUE(important.write("cpu.shares", "10240"));
    session.emplace(std::vector<std::string>{"--observe", GetParam()}, config);
    if (!session->failure().empty()) GTEST_SKIP() << session->failure();
    server = session->start(std::move(server_options),
                            {session->pair(), "server", session->path("sock"), session->path("flag")});
    // An idle group would leave it hardly any CPU time to get there.
    ASSERT_TRUE(eventually([&] { return blocked_in(server, SYS_accept); })) << "the server never listened";
    ASSERT_TRUE(provider.take(server));
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(hogs_in.take(session->start_plain({session->pair(), "spin", "60"})));
    client = session->start({}, {session->pair(), "client", session->path("sock")});
    ASSERT_TRUE(important.take(client));
    ASSERT_TRUE(eventually([&] { return blocked_in(client, SYS_read); })) << "the client never waited";
  }
  void SetUp() override {
    if (!important.valid() || !provider.valid() || !others.valid()) GTEST_SKIP() << "needs a v1 cpu controller";
  }
  void make_idle(const CpuGroup& group) {
    if (!group.write("cpu.idle", "1")) GTEST_SKIP() << "needs cpu.idle (Linux 5.15)";
  }
  [[nodiscard]] nlohmann::json why(pid_t tid) const { return thread_in({"why", std::to_string(tid)}, tid); }
  [[nodiscard]] nlohmann::json ps(pid_t tid) const { return thread_in({"ps"}, tid); }
  [[nodiscard]] nlohmann::json thread_in(std::vector<std::string> command, pid_t tid) const {
    const nlohmann::json answer = session->json(std::move(command));
    for (const auto& thread : answer["threads"])
      if (thread["tid"] == tid) return thread;
    return nlohmann::json::object();
  }
  ::testing::AssertionResult server_has(const std::string& policy, int nice) const {
    const bool seen = eventually([&] {
      const KernelAttr attr = kernel_attr(server);
      return attr.policy == policy && attr.nice == nice;
    });
    if (seen) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "it is " << kernel_attr(server).policy << ", nice "
                                         << kernel_attr(server).nice << "\n"
                                         << session->ctl({"why"}).out << session->ctl({"ps"}).out;
  }
  void deliver() {
    session->raise("flag");
    EXPECT_EQ(session->wait(client), 0);
  }

  const CpuGroup important{"important"};
  const CpuGroup provider{"provider"};
  const CpuGroup others{"others"};
  std::optional<Session> session;
  pid_t server = -1;
  pid_t client = -1;
};

TEST_P(Weights, a_waiter_of_a_heavy_group_lends_a_nice_value_of_that_worth) {
  begin(by_weight, provider);
  ASSERT_TRUE(server_has("other", -10));
  EXPECT_TRUE(eventually([&] { return why(client)["donation"]["effective"] == true; })) << why(client);
  const auto waiting = why(client);
  EXPECT_EQ(waiting["importance_from"], "weight");
  EXPECT_EQ(waiting["importance"]["nice"], -10);
  EXPECT_EQ(waiting["base"]["nice"], 0);
  EXPECT_EQ(waiting["group_weight"], 1000);
  EXPECT_EQ(ps(server)["importance_from"], "base");
  deliver();
  EXPECT_TRUE(server_has("other", 0));
}

TEST_P(Weights, where_hogs_are_in_other_groups_the_providers_group_is_lent_the_weight) {
  begin(by_weight, others);
  ASSERT_TRUE(server_has("other", -10));
  EXPECT_TRUE(eventually([&] { return provider.read("cpu.shares") == "9548"; })) << provider.read("cpu.shares");
  // The engine looks at all weights once a second; the client's, changed twice, tells that it has.
  for (const auto& [shares, weight] : {std::pair("20480", 2000), std::pair("10240", 1000)}) {
    ASSERT_TRUE(important.write("cpu.shares", shares));
    ASSERT_TRUE(eventually([&] { return ps(client)["group_weight"] == weight; })) << ps(client);
    EXPECT_EQ(ps(server)["group_weight"], 100) << "a weight that is on loan makes no thread important";
    EXPECT_EQ(ps(server)["importance_from"], "base");
  }
  deliver();
  EXPECT_TRUE(eventually([&] { return provider.read("cpu.shares") == "1024"; })) << provider.read("cpu.shares");
}

TEST_P(Weights, without_the_key_they_say_nothing) {
  begin("", provider);
  EXPECT_EQ(ps(client)["importance_from"], "base");
  EXPECT_EQ(session->json({"status"})["donations_total"], 0);
  deliver();
}

TEST_P(Weights, a_weight_that_changes_and_a_move_are_followed) {
  begin(by_weight, provider);
  ASSERT_TRUE(server_has("other", -10));
  ASSERT_TRUE(important.write("cpu.shares", "1024"));
  EXPECT_TRUE(server_has("other", 0)) << "its group weighs what others do";
  ASSERT_TRUE(important.write("cpu.shares", "2048"));
  EXPECT_TRUE(server_has("other", -3));
  ASSERT_TRUE(provider.take(client));
  EXPECT_TRUE(server_has("other", 0)) << "both are in one group";
  deliver();
}

TEST_P(Weights, an_idle_group_is_ordinary_while_the_loan_lasts) {
  make_idle(provider);
  begin(by_weight, others);
  ASSERT_TRUE(server_has("other", -10));
  EXPECT_TRUE(eventually([&] { return provider.read("cpu.idle") == "0" && provider.read("cpu.shares") == "9548"; }))
      << provider.read("cpu.idle") << " " << provider.read("cpu.shares");
  EXPECT_TRUE(eventually([&] { return why(client)["donation"]["effective"] == true; })) << why(client);
  deliver();
  EXPECT_TRUE(eventually([&] { return provider.read("cpu.idle") == "1"; }));
}

TEST_P(Weights, a_nice_waiter_too_has_an_idle_group_put_aside) {
  make_idle(provider);
  begin("", others);
  session->start({"--nice", "-5"}, {session->pair(), "client", session->path("sock")});
  EXPECT_TRUE(eventually([&] { return provider.read("cpu.idle") == "0"; })) << session->ctl({"why"}).out;
  session->raise("flag");
  EXPECT_EQ(session->wait(client), 0);
}

TEST_P(Weights, after_a_crash_an_idle_group_is_idle_again) {
  make_idle(provider);
  begin(by_weight, others);
  ASSERT_TRUE(eventually([&] { return provider.read("cpu.idle") == "0"; })) << session->ctl({"why"}).out;
  session->kill(session->daemon_pid(), SIGKILL);
  session->kill(client, SIGKILL);
  session->kill(server, SIGKILL);
  EXPECT_TRUE(eventually([&] { return provider.read("cpu.idle") == "1"; })) << "its guard has it given back";
  session->start_again();
  ASSERT_EQ(session->failure(), "");
  EXPECT_EQ(provider.read("cpu.idle"), "1");
}

TEST_P(Weights, where_the_policy_forbids_it_an_idle_group_is_the_reason) {
  make_idle(provider);
  begin(by_weight + "group_action = false\n", others);
  EXPECT_TRUE(eventually([&] { return why(client)["donation"]["reason"] == "cgroup-idle"; })) << why(client);
  EXPECT_NE(session->ctl({"why", std::to_string(client)}).out.find("cpu.idle"), std::string::npos);
  EXPECT_EQ(provider.read("cpu.idle"), "1");
  deliver();
}

TEST_P(Weights, an_idle_thread_is_an_ordinary_one_while_the_loan_lasts) {
  begin(by_weight, provider);
  sched_param none{};
  ASSERT_EQ(::sched_setscheduler(server, SCHED_IDLE, &none), 0);
  EXPECT_TRUE(server_has("other", -10));
  deliver();
}

INSTANTIATE_TEST_SUITE_P(observers, Weights, ::testing::Values("seccomp", "bpf"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace swapd::test
