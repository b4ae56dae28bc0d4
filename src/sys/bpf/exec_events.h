// Each program that starts on the machine (execve(2)), as it starts: from a BPF program, which also tells what it is,
// so that none is too short-lived; or from the process connector. And each process that becomes another in what is
// asked for: its name, its user, its cgroup.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace swapd::sys {

struct ExecEvent {
  pid_t pid = 0;
  std::uint64_t start_time = 0;  // of the process, in ticks since boot
  std::uint32_t uid = 0;         // real
  std::string comm;
  // Only from BPF, else empty.
  std::string path;     // as execve(2) had it, at most 127 bytes
  std::string cmdline;  // its arguments with spaces between, at most 255 bytes
};

// Facts of a process that may change while it runs.
struct Facts {
  bool comm = false;    // of its main thread
  bool uid = false;     // real
  bool cgroup = false;  // of any hierarchy
  [[nodiscard]] bool any() const { return comm || uid || cgroup; }
};

class ExecEvents {
 public:
  ExecEvents() = default;
  ExecEvents(const ExecEvents&) = delete;
  ExecEvents& operator=(const ExecEvents&) = delete;
  virtual ~ExecEvents() = default;

  [[nodiscard]] virtual int fd() const = 0;  // polls readable
  struct Batch {
    std::vector<ExecEvent> started;  // oldest first
    bool lost = false;               // some were, since the last time: those that run must be looked through
    std::vector<pid_t> changed{};    // processes whose facts may be others now
  };
  // Those that wait, at most `most`.
  [[nodiscard]] virtual Result<Batch> read(std::size_t most) = 0;
};

// Program starts, and `changes` besides, as BPF programs tell them; users are not among them (no tracepoint has them).
// Left out: whatever the kernel refuses.
struct BpfExecEvents {
  std::unique_ptr<ExecEvents> events;
  struct Piece {
    bool told = false;
    std::string refused;  // why the kernel did
  };
  Piece starts, comm, cgroup;
};
// EPERM, ENOTSUP …: nothing can be had here.
[[nodiscard]] Result<BpfExecEvents> exec_events_from_bpf(const Facts& changes = {});
// A program that ends before it is looked at is not told, nor are changes of cgroups.
[[nodiscard]] Result<std::unique_ptr<ExecEvents>> exec_events_from_connector(const Facts& changes = {});
// Changes alone.
[[nodiscard]] Result<std::unique_ptr<ExecEvents>> changes_from_connector(const Facts& changes);

}  // namespace swapd::sys
