// A parallel job that spins beside busy loops, as the kernel schedules it under a real swapd.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>

#include "session.h"
#include "sys/procfs/procfs.h"
#include "sys/sched/scheduler.h"

namespace swapd::test {
namespace {

using namespace std::chrono_literals;

// Looks also while a job has all CPUs: above its slots' priority.
class AboveSlots {
 public:
  AboveSlots() { set(SCHED_FIFO | SCHED_RESET_ON_FORK, 10); }
  ~AboveSlots() { set(SCHED_OTHER, 0); }
  AboveSlots(const AboveSlots&) = delete;
  AboveSlots& operator=(const AboveSlots&) = delete;

 private:
  static void set(int policy, int priority) {
    const sched_param param{.sched_priority = priority};
    EXPECT_EQ(::sched_setscheduler(0, policy, &param), 0);
  }
};

class ParallelJob : public ::testing::Test {
 protected:
  [[nodiscard]] virtual std::vector<std::string> options() const { return {"--respawn"}; }
  // Fills `tids`.
  virtual void start_job() {
    const pid_t first = session->start({"--nice", std::to_string(own_nice)}, {SPINNERS_PROGRAM, "job", "100"});
    ASSERT_TRUE(eventually([&] { return only_child(first) > 0; }));
    tids = {first, only_child(first)};
    ASSERT_TRUE(eventually([&] { return session->json({"status"})["managed_processes"] == 2; }));
  }
  [[nodiscard]] virtual bool has_begun() const { return coscheduled(); }
  void SetUp() override {
    cpu_set_t cpus;
    if (::sched_getaffinity(0, sizeof cpus, &cpus) != 0 || !CPU_ISSET(0, &cpus) || !CPU_ISSET(1, &cpus))
      GTEST_SKIP() << "CPUs 0 and 1 are needed";
    session.emplace(options());
    if (!session->failure().empty()) GTEST_SKIP() << session->failure();
    ASSERT_NO_FATAL_FAILURE(start_job());
    for (const pid_t tid : tids) {
      const auto attr = sys::LinuxScheduler().get(tid);
      ASSERT_TRUE(attr);
      own.push_back(*attr);
      ASSERT_EQ(attr->policy, SchedPolicy::other);
      ASSERT_EQ(attr->nice, own_nice);
    }
    for (const char* cpu : {"0", "1"})
      hogs.push_back(session->start_plain({SPINNERS_PROGRAM, "hog", cpu, std::to_string(own_nice), "100"}));
    const bool begun = eventually([&] { return has_begun(); });
    const auto status = session->json({"status"});
    for (const auto& warning : status["warnings"])
      if (warning.get<std::string>().starts_with("no coscheduling of parallel jobs")) GTEST_SKIP() << warning;
    if (!begun && others_compete()) GTEST_SKIP() << others;
    ASSERT_TRUE(begun) << status["jobs"];
  }

  // A swapd that the guard has started is nobody's child.
  void TearDown() override {
    if (!session || !session->failure().empty() || session->ctl({"status"}).status != 0) return;
    const pid_t running = session->daemon_pid();
    if (running <= 1 || running == session->pid()) return;
    ::kill(running, SIGTERM);
    EXPECT_TRUE(eventually([&] { return ::kill(running, 0) != 0; }));
  }

  static constexpr const char* others = "others use the CPUs of this machine";
  // Programs of other sessions do, and then the job is left alone.
  [[nodiscard]] bool others_compete() const {
    const nlohmann::json one = job();
    return one.is_object() && one["state"] == "other-groups";
  }
  // The job, as status has it.
  [[nodiscard]] nlohmann::json job() const {
    const nlohmann::json jobs = session->json({"status"})["jobs"];
    for (const auto& one : jobs)
      if (one["id"] == tids[0]) return one;
    return {};
  }
  [[nodiscard]] bool coscheduled() const {
    const nlohmann::json one = job();
    return one.is_object() && one["state"] == "coscheduled" && one["members"].size() == 2 && one["calls_granted"] > 0;
  }
  [[nodiscard]] bool both_are(const std::string& policy) const {
    return std::ranges::all_of(tids, [&](pid_t tid) { return kernel_attr(tid).policy == policy; });
  }
  [[nodiscard]] bool both_have_their_own() const {
    for (std::size_t i = 0; i < tids.size(); ++i)
      if (const auto attr = sys::LinuxScheduler().get(tids[i]); !attr || *attr != own[i]) return false;
    return true;
  }
  [[nodiscard]] bool are_in_slots() const {
    const AboveSlots looks;
    return eventually([&] { return both_are("fifo"); }) && eventually([&] { return both_are("idle"); });
  }
  static Duration cpu_time(const std::vector<pid_t>& all) {
    Duration sum{};
    for (const pid_t tid : all) sum += sys::Procfs().cpu_time(tid).value_or(Duration::zero());
    return sum;
  }

  static constexpr int own_nice = 3;
  std::optional<Session> session;
  std::vector<pid_t> tids, hogs;
  std::vector<SchedAttr> own;
};

TEST_F(ParallelJob, RunsInSlotsWithItsFairShareUntilNobodyCompetes) {
  const nlohmann::json seen = job();
  EXPECT_EQ(seen["comm"], "spinners");
  for (const pid_t tid : tids)
    EXPECT_TRUE(std::ranges::any_of(seen["members"], [&](const auto& one) { return one["tid"] == tid; })) << seen;
  const bool in_slots = are_in_slots();
  if (!in_slots && others_compete()) GTEST_SKIP() << others;
  EXPECT_TRUE(in_slots) << job();

  bool alone = false;  // with the machine, for three seconds
  for (int i = 0; i < 5 && !alone; ++i) {
    const auto begun = std::chrono::steady_clock::now();
    const Duration job_before = cpu_time(tids), hogs_before = cpu_time(hogs);
    (void)eventually([&] { return std::chrono::steady_clock::now() - begun >= 3s; });
    const Duration by_job = cpu_time(tids) - job_before, by_hogs = cpu_time(hogs) - hogs_before;
    const auto all = 2 * (std::chrono::steady_clock::now() - begun);
    alone = by_job + by_hogs > all * 9 / 10;
    if (alone) {
      EXPECT_NEAR(std::chrono::duration<double>(by_job) / all, 0.5, 0.1) << job();
    }
  }
  if (!alone) GTEST_SKIP() << others;

  for (const pid_t hog : hogs) session->kill(hog, SIGKILL);
  const auto ended = std::chrono::steady_clock::now();
  const Duration before = cpu_time(tids);
  int in_a_row = 0;  // between two slots a look may find anything once
  const bool own_again = eventually([&] { return (in_a_row = both_have_their_own() ? in_a_row + 1 : 0) >= 50; }, 6s);
  const auto all = 2 * (std::chrono::steady_clock::now() - ended);
  if (!own_again && cpu_time(tids) - before < all * 97 / 100) GTEST_SKIP() << others;
  EXPECT_TRUE(own_again) << job();
  EXPECT_TRUE(eventually([&] { return job().value("state", "") != "coscheduled"; })) << job();
}

TEST_F(ParallelJob, IsNamedByPsAndWhyWithTheThreadThatItSpinsFor) {
  const auto of = [&](const std::string& verb, std::size_t i) {
    std::vector<std::string> words{verb};
    if (verb == "why") words.push_back(std::to_string(tids[i]));
    const auto answer = session->json(words);
    for (const auto& thread : answer["threads"])
      if (thread["tid"] == tids[i]) return thread;
    return nlohmann::json::object();
  };
  for (const std::string verb : {"ps", "why"})
    for (const std::size_t i : {0U, 1U}) {
      nlohmann::json thread;
      const bool named = eventually([&] {
        thread = of(verb, i);
        return thread.value("rank_from", "") == "coscheduling";
      });
      if (!named && others_compete()) GTEST_SKIP() << others;
      ASSERT_TRUE(named) << verb << thread;
      EXPECT_EQ(thread["job"]["id"], tids[0]) << verb;
      EXPECT_EQ(thread["job"]["mates"], nlohmann::json::array({tids[1 - i]})) << verb;
    }
  for (const pid_t tid : tids)
    EXPECT_TRUE(eventually([&] {
      const auto graph = session->json({"graph"});
      return std::ranges::any_of(graph["edges"], [&](const auto& edge) {
        return edge["type"] == "spins" && edge["from"] == "thread:" + std::to_string(tid) &&
               edge["to"] == "job:" + std::to_string(tids[0]);
      });
    }));
  const std::string mate = "of its CPU time for thread " + std::to_string(tids[1]);
  EXPECT_TRUE(eventually([&] {
    return session->ctl({"why", std::to_string(tids[0])}).out.find(mate) != std::string::npos;
  }));
}

TEST_F(ParallelJob, HasItsOwnAttributesAgainWhenSwapdIsKilledAndStartsAgain) {
  const bool in_slots = are_in_slots();
  if (!in_slots && others_compete()) GTEST_SKIP() << others;
  ASSERT_TRUE(in_slots);
  const pid_t first = session->daemon_pid();
  ASSERT_GT(first, 1);
  ::kill(first, SIGKILL);
  EXPECT_TRUE(eventually([&] { return both_have_their_own(); }, 2s));
  EXPECT_TRUE(eventually([&] { return session->ctl({"status"}).status == 0 && session->daemon_pid() != first; }));
  EXPECT_TRUE(eventually([&] { return coscheduled(); })) << "and it goes on";
}

TEST_F(ParallelJob, IsDecidedAgainAsItWasWhenItsRecordingIsReplayed) {
  const bool in_slots = are_in_slots();
  if (!in_slots && others_compete()) GTEST_SKIP() << others;
  ASSERT_TRUE(in_slots);
  const std::string file = session->path("job.rec");
  const pid_t recorder = session->start_plain({SWAPCTL_BINARY, "--socket", session->path("s"), "record", file});
  const auto slots = [&] { return job().value("calls_granted", 0); };
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(file) && std::filesystem::file_size(file) > 0; }));
  const int before = slots();
  ASSERT_TRUE(eventually([&] { return slots() > before + 20; }));
  ASSERT_EQ(::kill(recorder, SIGINT), 0);
  ASSERT_EQ(session->wait(recorder), 0);
  const Output once = run({SWAPD_BINARY, "--replay", file, "--json"});
  EXPECT_EQ(once.status, 0) << once.err;
  EXPECT_EQ(run({SWAPD_BINARY, "--replay", file, "--json"}).out, once.out);
  const auto summary = nlohmann::json::parse(once.out.substr(once.out.rfind("{\"type\":\"summary\"")));
  EXPECT_EQ(summary["differing"], 0);
  EXPECT_GT(summary["decisions"], 40) << "each slot begins and ends";
}

// Its guard has given back what the job was lent.
class JobOfOneSwapd : public ParallelJob {
 protected:
  [[nodiscard]] std::vector<std::string> options() const override { return {}; }
};

TEST_F(JobOfOneSwapd, HasItsOwnAttributesAgainWhenThatIsKilled) {
  const bool in_slots = are_in_slots();
  if (!in_slots && others_compete()) GTEST_SKIP() << others;
  ASSERT_TRUE(in_slots);
  ::kill(session->daemon_pid(), SIGKILL);
  EXPECT_TRUE(eventually([&] { return both_have_their_own(); }, 2s));
  EXPECT_NE(session->ctl({"status"}).status, 0) << "nobody has started another one";
}

// Its rivals are in another session, and the kernel shares the CPUs among sessions first: its own is lowered.
class JobOfItsOwnSession : public ParallelJob {
 protected:
  [[nodiscard]] std::vector<std::string> options() const override { return {}; }
  // Three times a second: swapctl wants a CPU itself.
  [[nodiscard]] bool has_begun() const override {
    ::usleep(300'000);
    return coscheduled();
  }
  void SetUp() override {
    int on = 0;
    if (!(std::ifstream("/proc/sys/kernel/sched_autogroup_enabled") >> on) || on != 1)
      GTEST_SKIP() << "this kernel shares no CPUs among sessions (sched_autogroup_enabled)";
    ParallelJob::SetUp();
  }
  void start_job() override {
    const pid_t first =
        session->start({"--nice", std::to_string(own_nice)}, {"/usr/bin/setsid", SPINNERS_PROGRAM, "job", "100"});
    ASSERT_TRUE(eventually([&] { return only_child(first) > 0; }));
    tids = {first, only_child(first)};
    ASSERT_EQ(::getsid(first), first);
    ASSERT_TRUE(eventually([&] { return session->json({"status"})["managed_processes"] == 2; }));
  }
  // "/autogroup-25 nice 19"
  [[nodiscard]] int session_nice() const {
    std::ifstream in("/proc/" + std::to_string(tids[0]) + "/autogroup");
    std::string name, word;
    int nice = -100;
    in >> name >> word >> nice;
    return nice;
  }
};

TEST_F(JobOfItsOwnSession, RunsInSlotsBetweenWhichItsSessionTakesNothing) {
  const bool in_slots = are_in_slots();
  if (!in_slots && others_compete()) GTEST_SKIP() << others;
  ASSERT_TRUE(in_slots) << job();
  EXPECT_EQ(session_nice(), 19);
  for (const pid_t hog : hogs) session->kill(hog, SIGKILL);
  int in_a_row = 0;
  if (!eventually([&] { return (in_a_row = both_have_their_own() ? in_a_row + 1 : 0) >= 50; })) GTEST_SKIP() << others;
  EXPECT_EQ(session_nice(), 0);
}

TEST_F(JobOfItsOwnSession, HasItsSessionsOwnAgainWhenSwapdIsKilled) {
  const bool lowered = eventually([&] { return session_nice() == 19; });
  if (!lowered && others_compete()) GTEST_SKIP() << others;
  ASSERT_TRUE(lowered) << job();
  ::kill(session->daemon_pid(), SIGKILL);
  EXPECT_TRUE(eventually([&] { return session_nice() == 0; }, 2s));
}

// Ranks that share no memory: that one mpirun has started them makes them one job.
class RanksOfALauncher : public ParallelJob {
 protected:
  void start_job() override { start_ranks("ranks"); }
  void start_ranks(const std::string& which) {
    const pid_t launcher = session->start({"--nice", std::to_string(own_nice)}, {SPINNERS_PROGRAM, which, "100"});
    ASSERT_TRUE(eventually([&] { return session->json({"status"})["managed_processes"] == 3; }));
    tids = sys::Procfs().children(launcher).value_or({});
    std::ranges::sort(tids);
    ASSERT_EQ(tids.size(), 2U);
  }
};

TEST_F(RanksOfALauncher, RunInSlotsTogether) {
  EXPECT_EQ(job()["comm"], "rank");
  const bool in_slots = are_in_slots();
  if (!in_slots && others_compete()) GTEST_SKIP() << others;
  EXPECT_TRUE(in_slots) << job();
}

// As on two machines: each is a job of its own, which runs when a message calls it.
class RanksThatAreStrangers : public RanksOfALauncher {
 protected:
  void start_job() override { start_ranks("strangers"); }
  [[nodiscard]] bool has_begun() const override {
    const nlohmann::json jobs = session->json({"status"})["jobs"];
    return std::ranges::count_if(jobs, [&](const auto& one) {
             return one["state"] == "coscheduled" && one["members"].size() == 1 && one["calls_granted"] > 0;
           }) == 2;
  }
};

TEST_F(RanksThatAreStrangers, RunWhenMessagesCallThem) {
  const auto calls = [&] {
    int all = 0;
    const nlohmann::json status = session->json({"status"});
    for (const auto& one : status["jobs"]) all += one.value("calls_granted", 0);
    return all;
  };
  const int before = calls();
  EXPECT_TRUE(eventually([&] { return calls() > before + 100; })) << before << session->json({"status"})["jobs"];
  for (const pid_t hog : hogs) session->kill(hog, SIGKILL);
  int in_a_row = 0;
  if (!eventually([&] { return (in_a_row = both_have_their_own() ? in_a_row + 1 : 0) >= 50; })) GTEST_SKIP() << others;
}

// Two nodes of one CPU, each with a swapd that manages its own rank alone: only messages join them.
TEST(Nodes, RanksOfTwoSwapdsRunWhenMessagesCallThem) {
  cpu_set_t cpus;
  if (::sched_getaffinity(0, sizeof cpus, &cpus) != 0 || !CPU_ISSET(0, &cpus) || !CPU_ISSET(1, &cpus))
    GTEST_SKIP() << "CPUs 0 and 1 are needed";
  std::array<std::optional<Session>, 2> nodes;
  const std::string port = std::to_string(20'000 + ::getpid() % 20'000);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    Session& node = nodes.at(i).emplace();
    if (!node.failure().empty()) GTEST_SKIP() << node.failure();
    const std::string cpu = std::to_string(i);
    node.start_plain({SPINNERS_PROGRAM, "hog", cpu, "0", "60"});
    (void)node.start({}, {SPINNERS_PROGRAM, "node", cpu, port, "60"});
  }
  const auto calls_of = [](const Session& node) {
    const nlohmann::json status = node.json({"status"});
    int calls = 0;
    for (const auto& job : status["jobs"])
      if (job["comm"] == "spinners" && job["members"].size() == 1) calls += job.value("calls_granted", 0);
    return calls;
  };
  for (const std::optional<Session>& node : nodes) {
    const nlohmann::json status = node->json({"status"});
    for (const auto& warning : status["warnings"])
      if (warning.get<std::string>().starts_with("no coscheduling of parallel jobs")) GTEST_SKIP() << warning;
    EXPECT_TRUE(eventually([&] { return calls_of(*node) > 50; })) << node->json({"status"})["jobs"];
  }
}

TEST_F(ParallelJob, HasItsOwnAttributesWhenSwapdIsStopped) {
  const bool in_slots = are_in_slots();
  if (!in_slots && others_compete()) GTEST_SKIP() << others;
  ASSERT_TRUE(in_slots);
  EXPECT_EQ(session->stop(SIGTERM), 0);
  EXPECT_TRUE(both_have_their_own());
}

// Two that have one CPU between them: in a slot the one that waits would keep it from the one that it waits for.
TEST_F(ParallelJob, TakesShortTurnsOnceItsThreadsMayUseOneCpuOnly) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  for (const pid_t tid : tids) ASSERT_TRUE(sys::LinuxScheduler().set_affinity(tid, one));
  EXPECT_TRUE(eventually([&] { return job().value("state", "") == "round-robin"; })) << job();
  EXPECT_TRUE(eventually([&] { return both_have_their_own(); })) << session->ctl({"ps"}).out;
}

// To open the profile anew takes a hundred milliseconds of CPU time, which is the budget of two seconds.
TEST_F(ParallelJob, LeavesTheProfileLoadedWhereCompetitorsComeAndGo) {
  const auto programs = [&] {
    std::set<std::string> ids;
    const std::string dir = "/proc/" + std::to_string(session->daemon_pid()) + "/fdinfo";
    for (const auto& one : std::filesystem::directory_iterator(dir)) {
      std::ifstream in(one.path());
      for (std::string line; std::getline(in, line);)
        if (line.starts_with("prog_id:")) ids.insert(line);
    }
    return ids;
  };
  const auto before = programs();
  ASSERT_FALSE(before.empty());
  for (const pid_t hog : hogs) session->kill(hog, SIGKILL);
  int in_a_row = 0;  // asked of the kernel: swapctl would compete, too
  if (!eventually([&] { return (in_a_row = both_have_their_own() ? in_a_row + 1 : 0) >= 50; })) GTEST_SKIP() << others;
  for (const char* cpu : {"0", "1"})
    session->start_plain({SPINNERS_PROGRAM, "hog", cpu, std::to_string(own_nice), "100"});
  const bool again = are_in_slots();
  if (!again && others_compete()) GTEST_SKIP() << others;
  EXPECT_TRUE(again);
  EXPECT_EQ(programs(), before);
}

}  // namespace
}  // namespace swapd::test
