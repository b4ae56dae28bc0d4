// Containers that a real crun and a real runc start under a profile with a listenerPath: managed and limited from their
// first instruction, whatever becomes of swapd.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>

#include "session.h"

namespace swapd::test {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr const char* policy =
    "[class.slow.io]\nmapped = \"freeze\"\n[class.slow.io.disk]\nwrite = \"2MiB\"\n[class.web]\n";

class Containers : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "root is needed";
    if (::access(("/usr/bin/" + GetParam()).c_str(), X_OK) != 0 &&
        ::access(("/usr/sbin/" + GetParam()).c_str(), X_OK) != 0)
      GTEST_SKIP() << GetParam() << " is not installed (Debian: crun, runc)";
    char name[] = "/tmp/swapd-bundle-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    bundle = name;
    for (const char* dir : {"/rootfs", "/data"}) fs::create_directory(bundle + dir);
    for (const char* dir : {"bin", "sbin", "lib", "lib64"})
      fs::create_symlink(std::string("usr/") + dir, bundle + "/rootfs/" + dir);
    session.emplace(std::vector<std::string>{"--oci-socket", agent(), "--respawn"}, policy);
    if (!session->failure().empty()) GTEST_SKIP() << session->failure();
    if (const Output can = run_container("/bin/true", profile({})); can.status != 0)
      GTEST_SKIP() << GetParam() << " starts no container here: " << can.err << can.out;
  }
  void TearDown() override {
    for (int i = 1; i <= containers; ++i)
      (void)run({"/usr/bin/env", GetParam(), "delete", "--force", id_of(i)});  // of a test that has failed
    if (session && session->failure().empty() && session->ctl({"status"}).status == 0)
      if (const pid_t running = session->daemon_pid(); running > 1 && running != session->pid()) {
        ::kill(running, SIGTERM);
        EXPECT_TRUE(eventually([&] { return ::kill(running, 0) != 0; }));
      }
    session.reset();
    std::error_code ignored;
    if (!bundle.empty()) fs::remove_all(bundle, ignored);
  }
  [[nodiscard]] std::string agent() const { return bundle + "/agent.sock"; }
  [[nodiscard]] static std::string id_of(int container) {
    return "swapd-test-" + std::to_string(::getpid()) + "-" + std::to_string(container);
  }
  [[nodiscard]] nlohmann::json profile(std::vector<std::string> options) const {
    options.insert(options.begin(), {SWAPD_BINARY, "--config", session->path("config.toml"), "--oci-socket", agent(),
                                     "--oci-profile", "--oci-runtime", GetParam()});
    const Output made = run(options);
    EXPECT_EQ(made.status, 0) << made.err;
    return nlohmann::json::parse(made.out, nullptr, false);
  }
  // The words that run a shell's command in a container of its own.
  std::vector<std::string> words(const std::string& command, const nlohmann::json& seccomp,
                                 const nlohmann::json& annotations = nlohmann::json::object()) {
    using nlohmann::json;
    const json none = json::array();
    const auto bind = [](const std::string& from, const std::string& to, const char* how) {
      return json{{"destination", to}, {"type", "bind"}, {"source", from}, {"options", {"rbind", how}}};
    };
    json config = {{"ociVersion", "1.0.2"},
                   {"process",
                    {{"terminal", false},
                     {"user", {{"uid", 0}, {"gid", 0}}},
                     {"args", {"/bin/sh", "-c", command}},
                     {"env", {"PATH=/usr/bin:/bin"}},
                     {"cwd", "/"},
                     {"noNewPrivileges", true},
                     {"capabilities", {{"bounding", none}, {"effective", none}, {"permitted", none}}}}},
                   {"root", {{"path", "rootfs"}}},
                   {"annotations", annotations},
                   {"mounts",
                    {{{"destination", "/proc"}, {"type", "proc"}, {"source", "proc"}},
                     bind("/usr", "/usr", "ro"),
                     {{"destination", "/dev"}, {"type", "tmpfs"}, {"source", "tmpfs"}},
                     bind(bundle + "/data", "/data", "rw")}},
                   {"linux",
                    {{"namespaces", {{{"type", "pid"}}, {{"type", "mount"}}, {{"type", "ipc"}}, {{"type", "uts"}}}},
                     {"seccomp", seccomp}}}};
    std::ofstream(bundle + "/config.json") << config;
    const std::string id = id_of(++containers);
    const std::string runtime = GetParam() == "crun" ? "crun --cgroup-manager=disabled" : GetParam();
    // crun takes no machine with both versions of control groups.
    return {"/usr/bin/unshare", "--mount", "/bin/sh", "-c",
            "umount -l /sys/fs/cgroup/unified 2>/dev/null; exec " + runtime + " run -b " + bundle + " " + id};
  }
  Output run_container(const std::string& command, const nlohmann::json& seccomp,
                       const nlohmann::json& annotations = nlohmann::json::object()) {
    return run(words(command, seccomp, annotations));
  }
  // A thread of the class that is called so, of the container's own programs; 0: none.
  [[nodiscard]] pid_t member(const std::string& class_name, const std::string& comm) const {
    const nlohmann::json ps = session->json({"ps"});
    for (const auto& thread : ps["threads"])
      if (thread["class"] == class_name && thread["comm"] == comm) return thread["tid"];
    return 0;
  }
  [[nodiscard]] bool has_member(const std::string& class_name, const std::string& comm) const {
    return member(class_name, comm) > 0;
  }

  std::string bundle;
  std::optional<Session> session;
  int containers = 0;
};

TEST_P(Containers, AreLimitedFromTheFirstInstruction) {
  const auto begun = std::chrono::steady_clock::now();
  const Output ran = run_container("dd if=/dev/zero of=/data/x bs=64k count=64 conv=fsync",
                                   profile({"--oci-class", "slow", "--oci-limits"}));
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 1500ms) << "4 MiB at 2 MiB/s, less what may come at once";
  EXPECT_EQ(fs::file_size(bundle + "/data/x"), 4U << 20);
}

TEST_P(Containers, ComeIntoTheClassThatTheirAnnotationNames) {
  const pid_t started = session->start_plain(words("while [ ! -e /data/done ]; do sleep 0.1; done",
                                                   profile({"--oci-class", "slow"}), {{"org.swapd1.class", "web"}}));
  EXPECT_TRUE(eventually([&] { return has_member("web", "sh"); })) << session->ctl({"ps"}).out;
  std::ofstream(bundle + "/data/done") << "";
  EXPECT_EQ(session->wait(started), 0);
}

TEST_P(Containers, OfAClassThatIsNotThereRunWithoutSwapd) {
  nlohmann::json seccomp = profile({"--oci-class", "web"});
  seccomp["listenerMetadata"] = "class=nobody";
  const Output ran = run_container("echo it runs", seccomp);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("it runs"));
}

TEST_P(Containers, AServerInOneIsLentThePriorityOfAClientOutside) {
  fs::copy_file(session->pair(), bundle + "/data/pair");
  const pid_t started =
      session->start_plain(words("exec /data/pair server /data/sock /data/done", profile({"--oci-class", "web"})));
  for (int i = 0; i < 2; ++i) session->start_plain({session->pair(), "spin", "40"});
  pid_t server = 0;
  ASSERT_TRUE(eventually([&] { return (server = member("web", "pair")) > 0; })) << session->ctl({"ps"}).out;
  ASSERT_TRUE(eventually([&] { return fs::exists(bundle + "/data/sock"); }));
  const pid_t client = session->start({"--fifo", "50"}, {session->pair(), "client", bundle + "/data/sock"});
  // runc puts a container into a group of its own; of control groups version 1 such a group has no real-time runtime.
  const auto lent = [&] {
    const KernelAttr attr = kernel_attr(server);
    return attr.policy == "fifo" ? attr.rt_priority == 49 : GetParam() == "runc" && attr.nice == -20;
  };
  EXPECT_TRUE(eventually(lent)) << session->ctl({"why", std::to_string(client)}).out << session->ctl({"ps"}).out;
  std::ofstream(bundle + "/data/done") << "";
  EXPECT_EQ(session->wait(client), 0);
  session->kill(server, SIGKILL);  // it would serve on
  EXPECT_NE(session->wait(started), -1);
}

// Each call that the container makes meanwhile has its result.
TEST_P(Containers, LoseNoCallWhenSwapdIsKilledAndStartedAgain) {
  const pid_t started = session->start_plain(
      words("n=0; while [ ! -e /data/done ]; do echo $n >/data/n || exit 3; read m </data/n || exit 4; [ $m = $n ] || "
            "exit 5; n=$((n+1)); done",
            profile({"--oci-class", "web", "--oci-limits"})));
  ASSERT_TRUE(eventually([&] { return has_member("web", "sh"); })) << session->ctl({"ps"}).out;
  const auto count = [&] {
    int n = 0;
    std::ifstream(bundle + "/data/n") >> n;
    return n;
  };
  ASSERT_TRUE(eventually([&] {
    std::ifstream in(session->path("state") + "/members");
    return std::string(std::istreambuf_iterator<char>(in), {}).find("web") != std::string::npos;
  })) << "written down";
  const pid_t before = session->daemon_pid();
  ASSERT_EQ(::kill(before, SIGKILL), 0);
  const int at_the_kill = count();
  EXPECT_TRUE(eventually([&] { return session->ctl({"status"}).status == 0 && session->daemon_pid() != before; }));
  EXPECT_TRUE(eventually([&] { return has_member("web", "sh"); }))
      << "the next one has it: " << session->ctl({"ps"}).out;
  EXPECT_TRUE(eventually([&] { return count() > at_the_kill; }));
  std::ofstream(bundle + "/data/done") << "";
  EXPECT_EQ(session->wait(started), 0);
}

INSTANTIATE_TEST_SUITE_P(runtimes, Containers, testing::Values("crun", "runc"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace swapd::test
