// What the command line of swapbench says, and what a role (a process of a workload) is told on its own.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/sched_attr.h"

namespace swapd::bench {

// The processes that --wrong-providers starts have this name.
inline constexpr const char* wrong_provider_name = "bench-wrong";

struct Options {
  std::string workload;
  std::vector<std::string> mechanisms;
  std::vector<std::string> under = {"vanilla", "swapd"};
  std::string observe = "auto";
  std::string history;           // empty: swapd's default
  std::vector<int> hogs = {10};  // per CPU
  int cpus = 1;
  int iterations = 100;
  int repeat = 1;
  double work_ms = 10;
  SchedAttr client{.policy = SchedPolicy::fifo, .rt_priority = 50};
  int server_nice = 0;
  bool split = false;
  bool strict = false;
  int wrong_providers = 0;  // client-server: managed loops that swapd takes for the providers
  bool baseline = false;
  bool json = false;
  bool progress = false;
  std::string plot;
  std::string swapd, swapctl;  // paths
  double quantum_ms = 0;       // 0: swapd's default
  std::string feedback;
  int depth = 8;
  bool show_why = false;
  bool loaded = false;
  std::vector<double> chunk_us = {80, 500};
  double seconds = 10;    // scale and apps: how long is measured
  double settle_s = 0.2;  // apps in turns: what starting or stopping swapd leaves to be done
  struct Scale {
    int threads = 10'000, resources = 100'000;
    int important = 100;  // per cent of the sleepers
    int pairs = 4;
    int rate = 300'000;    // waits and wakes a second; 0: as many as there can be
    double settle_s = 30;  // the longest that swapd may take to come to rest
  } scale;
  struct Chat {
    int rooms = 2, users = 20, messages = 200;  // of each user
  } chat;
  double minutes = 30;  // soak
  struct ThinClient {
    std::vector<int> sessions = {0, 10, 25, 50};  // that nothing important is in; a list
    std::vector<std::string> players = {"vnc-video"};
  } thin;
  struct Response {
    std::vector<std::string> programs = {"own"};  // a list
    double pause_ms = 100;
    int memory_mib = 0;  // that program and loops may have; 0: as much as there is
    std::string swap = "zram";
    std::string scheme = "both";  // of the paper's two, under swapd: levels, memory or both
  } response;
  struct Build {
    std::string command, clean;  // of /bin/sh
  } build;
  struct Cosched {
    std::string test;                             // latency, barrier, mixed or two-jobs
    std::vector<std::string> programs = {"own"};  // a list; two-jobs: A is two of A, A+B one of each
    std::string pattern;                          // of mixed and two-jobs: latency or barrier
    std::vector<std::string> receive = {"spin"};
    std::vector<int> competitors = {1};     // on each CPU; a list
    std::vector<double> grains_us = {100};  // barrier; a list
    double work_us = 5, spin_us = 50;
    int ranks = 2;
    double dedicated_s = 1, limit_s = 30;
    double churn_s = 0;                // competitors come and go so often; 0: they stay
    int churn_nice = 0;                // of the competitors of every other turn
    bool nodes = false;                // each rank on a node of its own
    bool floating = false;             // ranks are not pinned
    bool managed_competitors = false;  // under swapd
  } cosched;
  std::string policy;  // text of swapd's policy besides what the options say; not an option
  std::vector<std::string> apps;
  std::string placement;  // of apps, in turns: "drawn", "free" or "apart"; empty: one CPU
  std::string important;  // of apps, in turns: "sleeper" or "client"; empty: nothing is important
  // shape-accuracy
  std::vector<std::string> targets = {"disk-logical", "disk-device", "tcp", "udp"};
  std::vector<std::string> rates = {"64KiB", "1MiB", "16MiB", "256MiB", "1GiB"};
  std::vector<std::string> blocks = {"4KiB", "64KiB", "1MiB", "4MiB"};
  std::vector<int> members = {1, 8};
  std::vector<std::string> limits = {"12MiB", "14MiB", "16MiB", "17MiB", "18MiB", "19MiB"};  // tap-stream: by hand
  std::string file;                                           // what is moved; not an option
  std::vector<std::string> resources = {"known", "unknown"};  // latency
};

// Exits the process for --help (0) and for bad options (2, one line on stderr).
[[nodiscard]] Options parse_options(int argc, char** argv);

// "fifo:50", "nice:-10".
[[nodiscard]] std::string text(const SchedAttr& attr);
[[nodiscard]] SchedAttr attr_of(const std::string& text);

struct RoleOptions {
  std::string role, workload, mechanism, word, child_attr;
  bool child_by_hand = false;  // child_attr is a donation's, not its own
  int index = 0, control_fd = -1, gate_fd = -1, shared_fd = -1, iterations = 0;
  double work_ms = 0, rate = 0;
  int block = 0;       // bytes a call
  int bare_call = -1;  // under a bare supervisor that traps this
  std::vector<int> fds;
  bool split = false;
};
[[nodiscard]] RoleOptions parse_role(int argc, char** argv);
[[nodiscard]] std::vector<std::string> role_arguments(const RoleOptions& options);

}  // namespace swapd::bench
