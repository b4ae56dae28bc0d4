// Programs that together need more than a control group may have, under a policy that keeps memory for what matters.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "session.h"
#include "swap_device.h"

namespace swapd::test {
namespace {

namespace fs = std::filesystem;
constexpr std::int64_t mib = 1 << 20;

// A memory control group with a limit; its processes leave it at the end.
class LimitedGroup {
 public:
  explicit LimitedGroup(std::int64_t bytes) {
    const std::string name = "swapd-test-" + std::to_string(::getpid());
    v1_ = fs::exists("/sys/fs/cgroup/memory/memory.limit_in_bytes");
    parent_ = v1_ ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup";
    directory_ = parent_ + "/" + name;
    if (!v1_) std::ofstream(parent_ + "/cgroup.subtree_control") << "+memory";
    ::mkdir(directory_.c_str(), 0755);
    std::ofstream(directory_ + (v1_ ? "/memory.limit_in_bytes" : "/memory.max")) << bytes;
    std::ifstream limit(directory_ + (v1_ ? "/memory.limit_in_bytes" : "/memory.max"));
    std::int64_t is = 0;
    there_ = (limit >> is) && is == bytes;
  }
  ~LimitedGroup() {
    std::ifstream in(directory_ + "/cgroup.procs");
    for (std::string pid; in >> pid;) std::ofstream(parent_ + "/cgroup.procs") << pid;
    ::rmdir(directory_.c_str());
  }
  LimitedGroup(const LimitedGroup&) = delete;
  LimitedGroup& operator=(const LimitedGroup&) = delete;
  [[nodiscard]] bool there() const { return there_; }
  void take(pid_t pid) const { std::ofstream(directory_ + "/cgroup.procs") << pid; }

 private:
  std::string parent_, directory_;
  bool v1_ = false, there_ = false;
};

class MemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    swap.emplace(2048 * mib);
    if (!swap->failure().empty()) GTEST_SKIP() << swap->failure();
    group.emplace(256 * mib);
    if (!group->there()) GTEST_SKIP() << "no memory controller";
    session.emplace(std::vector<std::string>{}, "[memory]\non = true\nquantum_ms = 60000\n");
    if (!session->failure().empty()) GTEST_SKIP() << session->failure();
  }
  void TearDown() override { session.reset(); }
  // In the group before it has any memory: it begins stopped.
  pid_t start_hog(int name, const std::vector<std::string>& options = {}) {
    const pid_t pid = session->start(
        options, {"/bin/sh", "-c", "kill -STOP $$; exec " MEMORY_HOG_PROGRAM " 100 " + rounds_file(name)});
    EXPECT_TRUE(eventually([&] { return status_field(pid, "State").starts_with("T"); }));
    group->take(pid);
    ::kill(pid, SIGCONT);
    return pid;
  }
  std::string rounds_file(int name) const { return session->path("rounds-" + std::to_string(name)); }
  long rounds(int name) const {
    long done = 0;
    std::ifstream(rounds_file(name)) >> done;
    return done;
  }
  nlohmann::json away() const { return session->json({"status"})["memory"]["away"]; }
  static bool stands_still(pid_t pid) {
    std::ifstream cgroup("/proc/" + std::to_string(pid) + "/cgroup");
    for (std::string line; std::getline(cgroup, line);)
      if (line.find("swapd-freeze-") != std::string::npos) return true;
    return false;
  }
  std::string report() const { return session->ctl({"status"}).out + session->ctl({"ps"}).out; }

  std::optional<SwapDevice> swap;
  std::optional<LimitedGroup> group;
  std::optional<Session> session;
};

TEST_F(MemoryTest, the_one_that_matters_least_leaves_and_the_others_get_on) {
  std::vector<pid_t> hogs;
  for (int i = 0; i < 3; ++i)
    hogs.push_back(start_hog(i, i == 2 ? std::vector<std::string>{"--nice", "1"} : std::vector<std::string>{}));
  ASSERT_TRUE(eventually([&] { return away().size() == 1 && away()[0]["state"] == "away"; }, std::chrono::seconds(60)))
      << report();
  EXPECT_EQ(away()[0]["pid"], hogs[2]);
  EXPECT_GT(away()[0]["swapped_out_bytes"], 50 * mib);
  EXPECT_TRUE(stands_still(hogs[2]));
  const long before = rounds(0);
  EXPECT_TRUE(eventually([&] { return rounds(0) > before + 20; }, std::chrono::seconds(30))) << report();
  EXPECT_NE(session->ctl({"status"}).out.find("swapctl thaw"), std::string::npos);

  ASSERT_EQ(session->ctl({"thaw", std::to_string(hogs[2])}).status, 0);
  EXPECT_TRUE(eventually([&] { return !stands_still(hogs[2]); }));
  EXPECT_EQ(session->ctl({"thaw", std::to_string(hogs[2])}).status, 2) << "it is not away";
}

TEST_F(MemoryTest, all_run_when_swapd_ends) {
  std::vector<pid_t> hogs;
  for (int i = 0; i < 3; ++i) hogs.push_back(start_hog(i));
  ASSERT_TRUE(eventually([&] { return !away().empty() && away()[0]["state"] == "away"; }, std::chrono::seconds(60)))
      << report();
  EXPECT_EQ(session->stop(SIGTERM), 0);
  for (const pid_t hog : hogs) EXPECT_FALSE(stands_still(hog));
}

TEST_F(MemoryTest, all_run_soon_after_swapd_was_killed) {
  std::vector<pid_t> hogs;
  for (int i = 0; i < 3; ++i) hogs.push_back(start_hog(i));
  ASSERT_TRUE(eventually([&] { return !away().empty() && away()[0]["state"] == "away"; }, std::chrono::seconds(60)))
      << report();
  const pid_t out = away()[0]["pid"];
  const int name = static_cast<int>(std::ranges::find(hogs, out) - hogs.begin());
  const long before = rounds(name);
  ::kill(session->daemon_pid(), SIGKILL);
  EXPECT_TRUE(eventually([&] { return rounds(name) > before; }, std::chrono::seconds(20)))
      << "the guard has not thawed it";
}

}  // namespace
}  // namespace swapd::test
