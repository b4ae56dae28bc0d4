// What `why` and `ps` say of waits that no help can end, or that no call tells of: holders that are stopped, frozen or
// not managed, sleepers, and threads that try, sleep and try again.
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "session.h"

namespace swapd::test {
namespace {

// A cgroup of its own that can be frozen; thawed and removed at the end.
class Freezing {
 public:
  Freezing(const std::string& hierarchy, const std::string& control, std::string freeze, std::string thaw)
      : dir_(hierarchy + "/swapd-test-" + std::to_string(::getpid())),
        freeze_(std::move(freeze)),
        thaw_(std::move(thaw)) {
    std::error_code failed;
    made_ = std::filesystem::create_directory(dir_, failed);
    file_ = dir_ + "/" + control;
    made_ = made_ && std::filesystem::exists(file_);
  }
  ~Freezing() {
    thaw();
    eventually([&] { return ::rmdir(dir_.c_str()) == 0 || errno == ENOENT; }, std::chrono::seconds(2));
  }
  Freezing(const Freezing&) = delete;
  Freezing& operator=(const Freezing&) = delete;
  [[nodiscard]] bool made() const { return made_; }
  void freeze(pid_t pid) const {
    std::ofstream(dir_ + "/cgroup.procs") << pid << std::flush;
    std::ofstream(file_) << freeze_ << std::flush;
  }
  void thaw() const { std::ofstream(file_) << thaw_ << std::flush; }

 private:
  std::string dir_, file_, freeze_, thaw_;
  bool made_ = false;
};

constexpr const char* holder_script =
    "import fcntl,sys\n"
    "f=open(sys.argv[1],'w'); fcntl.flock(f, fcntl.LOCK_EX); open(sys.argv[1]+'.held','w').close()\n"
    "n=0\n"
    "while True: n+=1\n";
constexpr const char* waiter_script =
    "import fcntl,sys\n"
    "f=open(sys.argv[1],'w'); fcntl.flock(f, fcntl.LOCK_EX)\n";

class Holders : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    session.emplace(std::vector<std::string>{"--observe", GetParam()});
    if (!session->failure().empty()) GTEST_SKIP() << session->failure();
  }
  void begin(bool managed_holder = true) {
    const std::vector<std::string> hold = {"/usr/bin/python3", "-c", holder_script, session->path("lock")};
    holder = managed_holder ? session->start({}, hold) : session->start_plain(hold);
    ASSERT_TRUE(eventually([&] { return ::access(session->path("lock.held").c_str(), F_OK) == 0; }));
    waiter = session->start({"--fifo", "50"}, {"/usr/bin/python3", "-c", waiter_script, session->path("lock")});
    ASSERT_TRUE(eventually([&] { return blocked_in(waiter, SYS_flock); }));
  }
  nlohmann::json why() const {
    const nlohmann::json said = session->json({"why", std::to_string(waiter)});
    return said.contains("threads") && !said["threads"].empty() ? said["threads"][0] : nlohmann::json::object();
  }
  bool eventually_reason(const std::string& word) {
    return eventually([&] {
      const auto now = why();
      return now.contains("donation") && now["donation"]["reason"] == word && now["donation"]["effective"] == false;
    });
  }
  // The only provider's state.
  std::string state_of_holder() const {
    const auto now = why();
    if (!now.contains("waiting_for") || now["waiting_for"].size() != 1) return "";
    const auto providers = now["waiting_for"][0]["providers"];
    return providers.size() == 1 ? providers[0].value("state", "") : "";
  }

  std::optional<Session> session;
  pid_t holder = -1, waiter = -1;
};

TEST_P(Holders, a_holder_that_is_stopped_is_named_so_and_helped_again_when_it_goes_on) {
  begin();
  ASSERT_TRUE(eventually([&] { return why()["donation"]["effective"] == true; })) << why();
  session->kill(holder, SIGSTOP);
  EXPECT_TRUE(eventually_reason("stopped")) << why();
  EXPECT_EQ(state_of_holder(), "stopped") << why();
  EXPECT_NE(session->ctl({"why", std::to_string(waiter)}).out.find("stopped, holds the lock"), std::string::npos);
  session->kill(holder, SIGCONT);
  EXPECT_TRUE(eventually([&] { return why()["donation"]["effective"] == true; })) << why();
}

TEST_P(Holders, a_holder_that_is_frozen_is_named_so) {
  int tried = 0;
  begin();
  const std::string v2 =
      std::filesystem::exists("/sys/fs/cgroup/unified/cgroup.procs") ? "/sys/fs/cgroup/unified" : "/sys/fs/cgroup";
  for (const auto& [hierarchy, control, freeze, thaw] :
       {std::array<std::string, 4>{"/sys/fs/cgroup/freezer", "freezer.state", "FROZEN", "THAWED"},
        std::array<std::string, 4>{v2, "cgroup.freeze", "1", "0"}}) {
    const Freezing group(hierarchy, control, freeze, thaw);
    if (!group.made()) continue;
    ++tried;
    group.freeze(holder);
    EXPECT_TRUE(eventually_reason("frozen")) << hierarchy << why();
    EXPECT_EQ(state_of_holder(), "frozen") << hierarchy << why();
    group.thaw();
    EXPECT_TRUE(eventually([&] { return why()["donation"]["effective"] == true; })) << hierarchy << why();
    std::ofstream(hierarchy + "/cgroup.procs") << holder << std::flush;
  }
  if (tried == 0) GTEST_SKIP() << "needs a hierarchy of cgroups that can be frozen, and that may be written to";
}

TEST_P(Holders, a_holder_that_is_not_managed_is_no_matter_of_the_policy) {
  begin(false);
  EXPECT_TRUE(eventually_reason("unmanaged")) << why();
  const auto now = why();
  EXPECT_EQ(now["waiting_for"].size(), 1U) << "of an exclusive request the half that is held is enough: " << now;
  EXPECT_EQ(now["waiting_for"][0]["providers"][0]["evidence"], "unenrolled");
  EXPECT_EQ(session->ctl({"why", std::to_string(waiter)}).out.find("0.0 ms"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(observers, Holders, ::testing::Values("seccomp", "bpf"),
                         [](const auto& test) { return test.param; });

// Each asks for the lock, and where it is held sleeps for 5 ms.
constexpr const char* record_lock_poller =
    "import fcntl,sys,time\n"
    "f=open(sys.argv[1],'r+')\n"
    "while True:\n"
    "  try: fcntl.lockf(f, fcntl.LOCK_EX|fcntl.LOCK_NB); break\n"
    "  except OSError: time.sleep(.005)\n";
constexpr const char* flock_poller =
    "import fcntl,sys,time\n"
    "f=open(sys.argv[1],'r+')\n"
    "while True:\n"
    "  try: fcntl.flock(f, fcntl.LOCK_EX|fcntl.LOCK_NB); break\n"
    "  except OSError: time.sleep(.005)\n";
constexpr const char* lock_file_poller =
    "import os,sys,time\n"
    "while True:\n"
    "  try: os.open(sys.argv[1], os.O_CREAT|os.O_EXCL); break\n"
    "  except OSError: time.sleep(.005)\n";
constexpr const char* record_lock_holder =
    "import fcntl,sys\n"
    "f=open(sys.argv[1],'w'); fcntl.lockf(f, fcntl.LOCK_EX); open(sys.argv[1]+'.held','w').close()\n"
    "n=0\n"
    "while True: n+=1\n";

class Polling : public Holders {
 protected:
  void poll(const char* hold, const char* try_it) {
    holder = session->start({}, {"/usr/bin/python3", "-c", hold, session->path("lock")});
    ASSERT_TRUE(eventually([&] { return ::access(session->path("lock.held").c_str(), F_OK) == 0; }));
    waiter = session->start({"--fifo", "50"}, {"/usr/bin/python3", "-c", try_it, session->path("lock")});
  }
  bool holder_is_boosted() {
    return eventually([&] { return kernel_attr(holder).policy == "fifo"; });
  }
};

TEST_P(Polling, the_holder_of_a_record_lock_that_is_tried_again_and_again_is_lent_to) {
  poll(record_lock_holder, record_lock_poller);
  EXPECT_TRUE(holder_is_boosted()) << why();
  // Python moves the time that it sleeps for once it has specialised its loop: a new row of sleeps then begins.
  EXPECT_TRUE(eventually([&] { return why()["polls"] == true; })) << why();
  session->kill(holder, SIGKILL);
  EXPECT_EQ(session->wait(waiter), 0);
}

TEST_P(Polling, so_is_that_of_an_flock) {
  poll(holder_script, flock_poller);
  EXPECT_TRUE(holder_is_boosted()) << why();
  session->kill(holder, SIGKILL);
  EXPECT_EQ(session->wait(waiter), 0);
}

TEST_P(Polling, of_a_lock_file_it_is_said_that_the_thread_polls) {
  poll(holder_script, lock_file_poller);
  EXPECT_TRUE(eventually([&] {
    return session->ctl({"why", std::to_string(waiter)}).out.find("polls: ") != std::string::npos;
  })) << why();
  EXPECT_EQ(kernel_attr(holder).policy, "other");
}

INSTANTIATE_TEST_SUITE_P(observers, Polling, ::testing::Values("bpf"), [](const auto& test) { return test.param; });

}  // namespace
}  // namespace swapd::test
