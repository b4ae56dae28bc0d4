// swapd's command line (docs/design.md, Contracts).
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace swapd::daemon {

struct Options {
  bool foreground = false;
  std::string socket = "/run/swapd/swapd.sock";
  std::string bus = "none";
  // The journal: of use until the next boot only, and written by the real-time engine, which no disk may hold up.
  std::string state_dir = "/run/swapd";
  std::string config;  // empty: what there is in PolicyPlaces (config.h)
  std::string observe = "auto";
  std::string btf = "/sys/kernel/btf/vmlinux";  // for tests: a kernel without it
  std::vector<std::string> refuse;              // for tests: programs that the kernel refuses (sys/bpf/bpf_pieces.h)
  bool respawn = false;      // also in the foreground: the guard starts another where this one is killed
  std::string guard_socket;  // empty: swapd-guard is a child
  std::string oci_socket;    // where container runtimes hand over listeners; empty: nowhere
  struct OciProfile {
    std::string base;        // a file; empty: all calls are allowed
    std::string class_name;  // empty: none is named
    bool limits = false;
    std::string runtime = "crun";
  };
  std::optional<OciProfile> oci_profile;  // print it, and exit
  std::string attach_socket;              // empty: swapd-attach is a child
  std::string metrics;                    // empty: none are written
  bool dry_run = false;
  bool restore = false;                     // give back what a swapd that was killed had lent, and end
  std::optional<std::string> check_config;  // empty: what would be read without --config
  std::string replay;                       // a recording to run through model and decider instead
  std::string simulate;                     // a scenario to simulate instead
  bool json = false;                        // of the replay
  std::string log_level = "info";
  std::string wrong_provider;  // for measurements: evidence names these processes (wrong_evidence.h)
  int exit_with_pid = 0;       // swapctl run --embedded: end with this process
  int ready_fd = -1;           // one byte is written here once the socket answers
};

// Empty: the process shall end now with `exit_status` (--help, --version, a usage error, all said already).
[[nodiscard]] std::optional<Options> parse_options(int argc, char** argv, int& exit_status);

}  // namespace swapd::daemon
