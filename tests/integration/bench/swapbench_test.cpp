// The program itself: what it prints, how it refuses, and that nothing stays behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mqueue.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/apps.h"
#include "harness/process.h"
#include "sys/procfs/procfs.h"
#include "thin_client/session.h"

namespace swapd::bench {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

std::string contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

class Swapbench : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root: real-time classes";
    auto dir = TempDir::create();
    ASSERT_TRUE(dir);
    dir_ = std::make_unique<TempDir>(std::move(*dir));
    std::filesystem::create_directory(temp());
    // nginx serves as another user.
    for (const std::string& place : {dir_->path(), temp()})
      std::filesystem::permissions(place, std::filesystem::perms(0711));
  }

  // Its temporary files go to a directory of ours, which must be empty again at its end.
  [[nodiscard]] std::string temp() const { return dir_->path() + "/tmp"; }
  [[nodiscard]] std::string out() const { return contents(dir_->path() + "/out"); }
  [[nodiscard]] std::string err() const { return contents(dir_->path() + "/err"); }

  Child start(std::vector<std::string> arguments) {
    Spawn spawn;
    spawn.argv = {"/usr/bin/env", "TMPDIR=" + temp()};
    spawn.argv.insert(spawn.argv.end(), environment_.begin(), environment_.end());
    spawn.argv.emplace_back(SWAPBENCH);
    spawn.argv.insert(spawn.argv.end(), arguments.begin(), arguments.end());
    spawn.output = dir_->path() + "/out";
    spawn.errors = dir_->path() + "/err";
    std::filesystem::remove(spawn.output);
    std::filesystem::remove(spawn.errors);
    auto child = Child::start(spawn);
    EXPECT_TRUE(child);
    return std::move(*child);
  }
  std::string run(std::vector<std::string> arguments) {
    Child child = start(std::move(arguments));
    const auto ended = child.wait(std::chrono::seconds(100));
    EXPECT_TRUE(std::filesystem::is_empty(temp()));
    return ended ? wait_text(*ended) : ended.error().text();
  }
  std::vector<nlohmann::json> run_json(std::vector<std::string> arguments) {
    arguments.emplace_back("--json");
    EXPECT_EQ(run(std::move(arguments)), "exit 0") << err();
    std::vector<nlohmann::json> json;
    for (const std::string& line : lines_of(out())) json.push_back(nlohmann::json::parse(line));
    return json;
  }

  std::unique_ptr<TempDir> dir_;
  std::vector<std::string> environment_;  // NAME=VALUE
};

TEST_F(Swapbench, BadOptionsAreOneLineAndStatusTwo) {
  const std::vector<std::vector<std::string>> bad = {
      {},
      {"client-server", "--mechanism", "telepathy"},
      {"client-server", "--hogs", "-1"},
      {"client-server", "--under", "nobody"},
      {"client-server", "--client-nice", "-10", "--client-fifo", "3"},
      {"client-server", "--cpus", "64", "--under", "vanilla"},
      {"client-server", "--server-nice", "20", "--under", "vanilla"},
      {"multi-server", "--mechanism", "pipe"},
      {"overhead", "--plot", "x.svg", "--under", "vanilla"},
      {"pipeline", "--swapd", "/nonexistent"},
      {"latency", "--under", "vanilla,swapd"},
      {"latency", "--resource", "some"},
      {"overhead", "--observe", "bpf", "--loaded", "--under", "vanilla"},
      {"scale", "--threads", "0"},
      {"apps", "--apps", "emacs"},
      {"apps", "--apps", "ffmpeg,redis"},
      {"apps", "--apps", "build", "--important", "client"},
      {"apps", "--under", "hand-set"},
      {"apps", "--seconds", "0"},
      {"apps", "--hogs", "4"},
      {"apps", "--sessions", "split"},
      {"apps", "--important", "server"},
      {"apps", "--important", "sleeper", "--observe", "seccomp"},
      {"chat", "--users", "1"},
      {"chat", "--rooms", "100", "--users", "100"},
      {"chat", "--mechanism", "tcp"},
      {"chat", "--under", "vanilla", "--plot", "x.svg"},
      {"soak", "--minutes", "0"},
      {"soak", "--under", "vanilla"},
      {"soak", "--repeat", "2"},
      {"apps", "--placement", "apart", "--observe", "seccomp"},
      {"apps", "--placement", "drawn", "--observe", "bpf", "--cpus", "1"},
      {"apps", "--settle", "1", "--observe", "seccomp"},
      {"apps", "--settle", "1", "--observe", "seccomp", "--important", "client"},
      {"thin-client", "--sessions", "many"},
      {"thin-client", "--hogs", "3"},
      {"thin-client", "--player", "vnc-radio"},
      {"cosched"},
      {"cosched", "gossip"},
      {"cosched", "latency", "--receive", "telepathy"},
      {"cosched", "latency", "--ranks", "3"},
      {"cosched", "barrier", "--ranks", "1"},
      {"cosched", "latency", "--hogs", "1"},
      {"cosched", "latency", "--under", "freeze"},
      {"cosched", "latency", "--under", "hand-set"},
      {"cosched", "latency", "--pattern", "barrier"},
      {"cosched", "two-jobs", "--program", "own+pvm"},
      {"cosched", "latency", "--program", "own+openmp"},
      {"shape-accuracy", "--rates", "fast"},
      {"shape-rivals", "--rates", "1"},
      {"tap-stream", "--limits", "12 apples"},
      {"what"}};
  for (const auto& arguments : bad) {
    EXPECT_EQ(run(arguments), "exit 2") << testing::PrintToString(arguments);
    EXPECT_EQ(lines_of(err()).size(), 1u) << err();
    EXPECT_THAT(out(), IsEmpty());
  }
}

TEST_F(Swapbench, MeasuresEveryMechanismVanillaAndByHand) {
  const auto lines = run_json({"client-server", "--mechanism", "all", "--under", "vanilla,hand-set", "--hogs", "1",
                               "--baseline", "--iterations", "3", "--repeat", "1", "--work-ms", "1"});
  EXPECT_EQ(lines.size(), 14u * 3);
  for (const auto& line : lines) {
    EXPECT_GT(line["mean_ms"].get<double>(), 0) << line;
    EXPECT_LE(line["p50_ms"].get<double>(), line["max_ms"].get<double>());
    EXPECT_EQ(line["iterations"], 3);
  }
}

// Whom a futex wakes is told by an observer of wakes alone, so that "all" has these for that observer only.
TEST_F(Swapbench, MutexesAreAmongAllForBpfAndAreMeasuredWhereverTheyAreNamed) {
  const std::vector<std::string> vanilla = {"--under", "vanilla",  "--hogs", "0",         "--iterations",
                                            "1",       "--repeat", "1",      "--work-ms", "0"};
  const auto with = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "client-server");
    words.insert(words.end(), vanilla.begin(), vanilla.end());
    return run_json(words);
  };
  EXPECT_EQ(with({"--mechanism", "all", "--observe", "bpf"}).size(), 19u);
  const auto lines = with({"--mechanism", "mutex-private,pi-mutex", "--observe", "seccomp", "--server-nice", "19"});
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["server_nice"], 19);
}

TEST_F(Swapbench, SplitSessionsAndNiceClients) {
  const auto lines =
      run_json({"client-server", "--mechanism", "pipe,child-exit,flock", "--under", "vanilla,hand-set", "--hogs", "1",
                "--iterations", "3", "--work-ms", "1", "--sessions", "split", "--client-nice", "-10"});
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_EQ(lines[0]["sessions"], "split");
  EXPECT_EQ(lines[0]["client"], "nice:-10");
}

TEST_F(Swapbench, TheOtherWorkloads) {
  EXPECT_EQ(run_json({"cascade", "--depth", "3", "--under", "vanilla,hand-set", "--hogs", "1", "--iterations", "2",
                      "--work-ms", "1"})
                .size(),
            2u);
  EXPECT_EQ(
      run_json({"pipeline", "--chunk-us", "20", "--under", "vanilla,hand-set", "--hogs", "0", "--iterations", "50"})
          .size(),
      2u);
  const auto multi = run_json({"multi-server", "--under", "vanilla", "--hogs", "0", "--iterations", "1"});
  ASSERT_EQ(multi.size(), 2u);
  EXPECT_GT(multi[1]["fastest_alone_ms"].get<double>(), 100) << "two units of 100 ms";
}

TEST_F(Swapbench, ABareSupervisorCostsSomething) {
  const auto lines =
      run_json({"overhead", "--under", "vanilla", "--iterations", "200", "--repeat", "3", "--history", "calls"});
  ASSERT_GE(lines.size(), 2u);
  EXPECT_EQ(lines[1]["under"], "bare");
  EXPECT_GT(lines[1]["added_us"].get<double>(), 0.5) << "a notification is more than a call";
}

TEST_F(Swapbench, WhatWatchingCostsIsMeasuredOfMechanismsCallsAndLoads) {
  const auto lines = run_json({"overhead", "--observe", "bpf", "--under", "vanilla", "--mechanism",
                               "pipe,condvar-private", "--iterations", "100", "--repeat", "1"});
  ASSERT_EQ(lines.size(), 9u);
  EXPECT_EQ(lines[2]["mechanism"], "getppid");
  EXPECT_EQ(lines[3]["mechanism"], "ping-pong");
  EXPECT_EQ(lines[6]["mechanism"], "hackbench");
  EXPECT_TRUE(lines[6]["managed"].get<bool>());
  EXPECT_EQ(lines[8]["mechanism"], "spawn");
}

TEST_F(Swapbench, ScaleCountsWhatTheKernelCounts) {
  const auto lines = run_json({"scale", "--under", "vanilla", "--threads", "20", "--resources", "100", "--pairs", "1",
                               "--rate", "2000", "--seconds", "0.5"});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["threads"], 20);
  EXPECT_EQ(lines[0]["resources_made"], 100);
  EXPECT_GT(lines[0]["events_per_s"].get<double>(), 0);
}

// Where the programs are, they are run; where they are not, the package is named.
TEST_F(Swapbench, AppsRunOrTheirPackageIsNamed) {
  const std::vector<std::string> redis = {"apps",      "--apps", "redis",    "--under", "vanilla",
                                          "--seconds", "0.2",    "--repeat", "1"};
  if (!missing_program({"redis"})) {
    const auto lines = run_json(redis);
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_GT(lines[0]["throughput"].get<double>(), 0);
  }
  if (!missing_program({"ffmpeg"})) {
    const auto lines =
        run_json({"apps", "--apps", "ffmpeg", "--under", "vanilla", "--seconds", "0.2", "--repeat", "1"});
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_GT(lines[0]["throughput"].get<double>(), 0) << "frames a second of one that ends by itself";
  }
  environment_ = {"PATH=/nonexistent"};
  EXPECT_EQ(run(redis), "exit 2");
  EXPECT_EQ(lines_of(err()).size(), 1u) << err();
  EXPECT_THAT(err(), HasSubstr("Debian package redis-server"));
}

// Two rooms of three, each with two messages: 2 · 3 · 2 sent, each delivered to three.
TEST_F(Swapbench, ChatCountsWhatIsDelivered) {
  const auto lines = run_json({"chat", "--rooms", "2", "--users", "3", "--messages", "2", "--hogs", "0,1", "--under",
                               "vanilla,hand-set", "--repeat", "2"});
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0]["users"], 3);
  EXPECT_GT(lines[0]["throughput"].get<double>(), 0);
  EXPECT_EQ(lines[0]["n"], 2);
  EXPECT_FALSE(lines[0].contains("hogs_cpu_share"));
  EXPECT_EQ(lines[3]["under"], "hand-set");
  EXPECT_EQ(lines[3]["client"], "nice:-20");
  for (const char* field : {"ratio", "to_vanilla", "hogs_cpu_share", "throughput_95_from", "commit", "kernel"})
    EXPECT_TRUE(lines[3].contains(field)) << field;
}

// By hand and not in turns under one load, and the server has its own priority again in between.
TEST_F(Swapbench, AnImportantClientsServerIsSetByHandInTurns) {
  if (const auto missing = missing_program({"redis"})) GTEST_SKIP() << *missing;
  const auto lines = run_json({"apps", "--apps", "redis", "--important", "client", "--hogs", "2", "--under",
                               "vanilla,hand-set", "--seconds", "0.3", "--repeat", "2"});
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["important"], "client");
  EXPECT_EQ(lines[0]["client"], "nice:-10");
  EXPECT_EQ(lines[0]["hogs"], 2);
  EXPECT_EQ(lines[1]["under"], "hand-set");
  EXPECT_EQ(lines[1]["n"], 2);
  EXPECT_GT(lines[1]["ratio"].get<double>(), 0);
}

// A program is supervised by seccomp from its start on, so the server is started anew for each turn.
TEST_F(Swapbench, AnImportantClientsServerIsStartedAnewUnderSeccomp) {
  if (const auto missing = missing_program({"redis"})) GTEST_SKIP() << *missing;
  const auto lines =
      run_json({"apps", "--apps", "redis", "--important", "client", "--hogs", "1", "--under", "vanilla,swapd",
                "--observe", "seccomp", "--seconds", "0.3", "--repeat", "1", "--swapd", SWAPD, "--swapctl", SWAPCTL});
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1]["observer"], "seccomp");
  EXPECT_GT(lines[1]["ratio"].get<double>(), 0);
}

TEST_F(Swapbench, RivalsRunOrTheirPackageIsNamed) {
  environment_ = {"PATH=/nonexistent"};
  EXPECT_EQ(run({"shape-rivals", "--swapd", SWAPD, "--swapctl", SWAPCTL}), "exit 1");
  EXPECT_EQ(lines_of(err()).size(), 1u) << err();
  EXPECT_THAT(err(), HasSubstr("trickle is missing"));
}

TEST_F(Swapbench, WritesAFigure) {
  const std::string svg = dir_->path() + "/figure.svg";
  EXPECT_EQ(run({"client-server", "--mechanism", "pipe", "--under", "vanilla", "--hogs", "0", "--iterations", "2",
                 "--plot", svg}),
            "exit 0");
  EXPECT_THAT(contents(svg), HasSubstr("</svg>"));
}

TEST_F(Swapbench, ASwapdThatDoesNotStartIsSaidInOneLine) {
  EXPECT_EQ(run({"pipeline", "--under", "swapd", "--swapd", "/bin/false", "--swapctl", "/bin/false"}), "exit 1");
  EXPECT_EQ(lines_of(err()).size(), 1u) << err();
  EXPECT_THAT(err(), HasSubstr("swapd ended (exit 1)"));
}

TEST_F(Swapbench, AThinClientsMissingProgramsPackageIsNamed) {
  environment_ = {"PATH=/nonexistent"};
  EXPECT_EQ(run({"thin-client", "--under", "vanilla"}), "exit 2");
  EXPECT_EQ(lines_of(err()).size(), 1u) << err();
  EXPECT_THAT(err(), HasSubstr("Debian package tigervnc-standalone-server"));
}

// The sockets of X servers, by display.
std::vector<std::string> displays() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/tmp/.X11-unix", error))
    names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

TEST_F(Swapbench, AThinClientThatIsInterruptedLeavesNoServerAndNoPlayer) {
  if (const auto missing = missing_thin_client_program({"vnc-video"})) GTEST_SKIP() << *missing;
  const auto before = displays();
  Child bench = start({"thin-client", "--sessions", "1", "--under", "vanilla", "--seconds", "60"});
  // Without other sessions first: an X server and a player.
  const auto children = [&] { return sys::Procfs().children(bench.pid()).value_or({}); };
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  std::vector<pid_t> all;
  while ((all = children()).size() < 2 && std::chrono::steady_clock::now() < until) ::usleep(20'000);
  ASSERT_EQ(all.size(), 2u);
  bench.signal(SIGINT);
  const auto ended = bench.wait(std::chrono::seconds(30));
  ASSERT_TRUE(ended);
  EXPECT_EQ(wait_text(*ended), "exit 1") << err();
  for (const pid_t pid : all) EXPECT_NE(::kill(pid, 0), 0) << pid;
  EXPECT_EQ(displays(), before);
  EXPECT_TRUE(std::filesystem::is_empty(temp()));
}

// In an IPC namespace of this test's own, so that what others have does not count.
TEST_F(Swapbench, InterruptedItLeavesNothing) {
  const auto pids_below = [](pid_t pid) { return sys::Procfs().children(pid).value_or({}); };
  for (const std::string mechanism : {"sem", "msg", "mq", "child-exit", "fifo"}) {
    Child holder;
    auto forked = Child::fork(Spawn{}, [&] {
      if (::unshare(CLONE_NEWIPC) != 0) return 77;
      Child bench = start(
          {"client-server", "--mechanism", mechanism, "--under", "vanilla", "--hogs", "2", "--iterations", "100000"});
      // Client, server (child-exit: none) and two hogs.
      const std::size_t all = mechanism == "child-exit" ? 3 : 4;
      const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
      while (pids_below(bench.pid()).size() < all && std::chrono::steady_clock::now() < until) ::usleep(5000);
      const auto children = pids_below(bench.pid());
      if (children.size() < all) return 2;
      const std::string queue = "/swapbench-" + std::to_string(bench.pid());
      bench.signal(SIGINT);
      const auto ended = bench.wait(std::chrono::seconds(30));
      if (!ended || wait_text(*ended) != "exit 1") return 3;
      for (const pid_t child : children) {
        if (::kill(child, 0) == 0) return 4;
      }
      for (const char* table : {"/proc/sysvipc/sem", "/proc/sysvipc/msg"}) {
        if (lines_of(contents(table)).size() > 1) return 5;  // the first is the heading
      }
      if (::mq_open(queue.c_str(), O_RDONLY) >= 0) return 6;
      return 0;
    });
    ASSERT_TRUE(forked);
    const auto ended = forked->wait(std::chrono::seconds(90));
    ASSERT_TRUE(ended) << ended.error().text();
    if (wait_text(*ended) == "exit 77") GTEST_SKIP() << "no IPC namespace of one's own here";
    EXPECT_EQ(wait_text(*ended), "exit 0") << mechanism << ": " << err();
    EXPECT_TRUE(std::filesystem::is_empty(temp())) << mechanism;
    auto said = lines_of(err());
    std::erase_if(said, [](const std::string& l) { return l.starts_with("=="); });  // a leak sanitizer's own
    EXPECT_EQ(said.size(), 1u) << err();
  }
}

#ifdef SWAPD
TEST_F(Swapbench, MeasuresUnderSwapd) {
  const auto lines = run_json({"client-server", "--mechanism", "pipe,sem", "--under", "swapd", "--hogs", "2",
                               "--iterations", "10", "--observe", "seccomp", "--swapd", SWAPD, "--swapctl", SWAPCTL});
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["observer"], "seccomp");
  EXPECT_EQ(lines[0]["repeat"], 3);  // of client-server, where no other is asked for
  EXPECT_GT(lines[0]["donations_total"].get<int>(), 0);
}

TEST_F(Swapbench, AThinClientsPlayerIsMeasuredUnderEach) {
  if (const auto missing = missing_thin_client_program({"vnc-video"})) GTEST_SKIP() << *missing;
  const auto lines = run_json({"thin-client", "--sessions", "0,1", "--under", "vanilla,hand-set,swapd", "--seconds",
                               "2", "--observe", "auto", "--swapd", SWAPD, "--swapctl", SWAPCTL});
  ASSERT_EQ(lines.size(), 6u);
  for (const auto& line : lines) {
    EXPECT_EQ(line["hogs"], 0);
    EXPECT_GT(line["frames_per_s"].get<double>(), 10) << line << ": two sessions are no load";
    EXPECT_LT(line["frames_per_s"].get<double>(), 30) << line << ": the film has 25";
    EXPECT_GT(line["updates_per_s"].get<double>(), 0) << line << ": the viewer sees it";
    EXPECT_EQ(line.contains("swapd_cpu_share"), line["under"] == "swapd");
  }
  EXPECT_EQ(lines[0]["ratio"], 1.0);
  EXPECT_EQ(lines[3]["sessions"], 1);
  EXPECT_GT(lines[3]["others_updates_per_s"].get<double>(), 0);
}

TEST_F(Swapbench, AParallelJobIsMeasuredBesideCompetitors) {
  const auto lines =
      run_json({"cosched",   "barrier", "--receive",     "block",       "--grain",   "200",      "--competitors",
                "1",         "--under", "vanilla,swapd", "--dedicated", "0.1",       "--repeat", "1",
                "--observe", "auto",    "--swapd",       SWAPD,         "--swapctl", SWAPCTL});
  ASSERT_EQ(lines.size(), 2u);
  for (const auto& line : lines) {
    EXPECT_EQ(line["mechanism"], "barrier");
    EXPECT_EQ(line["receive"], "block");
    EXPECT_EQ(line["competitors"], 1);
    for (const char* figure : {"time_s", "cpu_s", "fairness", "to_ideal", "competitors_share"})
      EXPECT_GT(line[figure].get<double>(), 0) << figure << ": " << line;
    EXPECT_TRUE(line.contains("commit"));
  }
  EXPECT_EQ(lines[0]["observer"], "none");
  EXPECT_NE(lines[1]["observer"], "none");
}

TEST_F(Swapbench, ScaleAsksSwapdWhatItLost) {
  const auto lines = run_json({"scale",    "--threads", "20",      "--resources", "100",    "--important", "5",
                               "--settle", "1",         "--pairs", "1",           "--rate", "1000",        "--seconds",
                               "0.5",      "--observe", "seccomp", "--swapd",     SWAPD,    "--swapctl",   SWAPCTL});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines[0].contains("events_lost"));
  EXPECT_GE(lines[0]["managed_threads"].get<int>(), 20);
  EXPECT_GT(lines[0]["rss_bytes"].get<std::uint64_t>(), 0u);
}

TEST_F(Swapbench, WhatALimitedClassMovesIsHeldAgainstTheClock) {
  const auto lines =
      run_json({"shape-accuracy", "--targets", "disk-logical", "--rates", "4MiB", "--blocks", "64KiB", "--members", "2",
                "--under", "vanilla,swapd", "--seconds", "1", "--swapd", SWAPD, "--swapctl", SWAPCTL});
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_GT(lines[0]["rate_reached"].get<double>(), lines[1]["rate_reached"].get<double>());
  EXPECT_GT(lines[1]["moved_bytes"].get<double>(), 0);
  EXPECT_LE(lines[1]["above_blocks"].get<double>(), 1.0) << "whatever the machine does, no more than that";
}

TEST_F(Swapbench, LatencyIsMeasuredFromTheKernelsRecords) {
  const auto lines = run_json({"latency", "--iterations", "3", "--hogs", "0,1", "--observe", "seccomp", "--swapd",
                               SWAPD, "--swapctl", SWAPCTL});
  ASSERT_EQ(lines.size(), 4u);
  for (const auto& line : lines) {
    EXPECT_EQ(line["samples"].get<int>() + line["missed"].get<int>(), 3) << line;
    EXPECT_GT(line["samples"].get<int>(), 0) << line;
    EXPECT_GT(line["p50_us"].get<double>(), 0) << line;
    EXPECT_EQ(line["records_lost"], 0) << line;
  }
}

TEST_F(Swapbench, ACascadeUnderSwapdShowsItsChain) {
  const auto lines = run_json({"cascade", "--depth", "2", "--under", "swapd", "--hogs", "1", "--iterations", "60",
                               "--observe", "seccomp", "--show-why", "--swapd", SWAPD, "--swapctl", SWAPCTL});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["chain_shown"], 2);
}

// Its members stay lent to from one message to the next, 17 donations in all: to lend to each anew would be four a
// message.
TEST_F(Swapbench, AChainThatIsUsedAgainAndAgainIsLentToOnce) {
  const auto lines = run_json({"cascade", "--depth", "4", "--under", "swapd", "--hogs", "2", "--iterations", "60",
                               "--work-ms", "3", "--observe", "seccomp", "--swapd", SWAPD, "--swapctl", SWAPCTL});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_LT(lines[0]["donations_total"].get<int>(), 120);
}

TEST_F(Swapbench, ChatUnderSwapdSaysWhatThatCosts) {
  const auto lines =
      run_json({"chat", "--rooms", "1", "--users", "3", "--messages", "5", "--hogs", "1", "--under", "swapd",
                "--repeat", "1", "--observe", "seccomp", "--swapd", SWAPD, "--swapctl", SWAPCTL});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["observer"], "seccomp");
  for (const char* field : {"swapd_cpu_share", "engine_cpu_s", "events_lost", "donations_total"})
    EXPECT_TRUE(lines[0].contains(field)) << field;
}

// It says by its exit status that no thread has kept a boost.
TEST_F(Swapbench, ASoakEndsWithoutABoostedThread) {
  if (const auto missing = missing_program({"redis", "nginx"})) GTEST_SKIP() << *missing;
  const auto lines = run_json({"soak", "--minutes", "0.15", "--hogs", "0,2", "--rooms", "1", "--users", "3",
                               "--messages", "5", "--observe", "seccomp", "--swapd", SWAPD, "--swapctl", SWAPCTL});
  ASSERT_GE(lines.size(), 2u);
  const auto& summary = lines.back();
  EXPECT_EQ(summary["mechanism"], "summary");
  EXPECT_EQ(summary["samples"].get<std::size_t>(), lines.size() - 1);
  EXPECT_EQ(summary["threads_left_boosted"], 0);
  EXPECT_GT(summary["chat_runs"].get<int>(), 0);
  EXPECT_TRUE(lines[0].contains("rss_bytes"));
}
#endif

}  // namespace
}  // namespace swapd::bench
