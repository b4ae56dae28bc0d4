// Counts what a ring's own threads move ("iou-wrk-…", "iou-sqp-…": io_uring hands over to them what would block, and
// with SQPOLL everything). They are threads of the program, and make no calls.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <unordered_map>
#include <vector>

#include "base/time.h"
#include "decide/shaping/caller.h"
#include "sys/bpf/net_io.h"
#include "sys/procfs/io_counters.h"
#include "sys/procfs/procfs.h"

namespace swapd::daemon {

class IoUringWorkers {
 public:
  explicit IoUringWorkers(const sys::Procfs& procfs) : procfs_(procfs) {}
  ~IoUringWorkers();
  IoUringWorkers(const IoUringWorkers&) = delete;
  IoUringWorkers& operator=(const IoUringWorkers&) = delete;

  using Traffic = sys::NetIo*;  // null: it is not counted
  // It has a ring: its workers count from now on.
  void note(pid_t tgid, Traffic traffic, Time now);
  void forget(pid_t tgid);
  [[nodiscard]] bool knows(pid_t tgid) const { return processes_.contains(tgid); }
  // Adds what they have moved since the last look to `moved`. Nothing of one that was not noted. Up to sixteen are
  // looked at each time, more less often; who they are, where the number of threads has changed, or 10 ms ago (later
  // where there are many). One that has ended since the last look is lost (idle they live on for five seconds), and so
  // are those past 512.
  void grown(pid_t tgid, Traffic traffic, Time now, decide::CallerMoved& moved);

 private:
  struct Process {
    Time next_list{}, next_look{};
    std::size_t threads = 0;
    struct Worker {
      sys::ThreadIo io;
      sys::IoCounters counted;
      Traffic by = nullptr;  // its traffic is counted
      sys::NetIo::Counters traffic;
    };
    std::unordered_map<pid_t, Worker> workers;
    std::vector<pid_t> others;  // sorted
  };
  bool list(pid_t tgid, Process& process, Traffic traffic, Time now) const;
  static void look(Process& process, Time now, decide::CallerMoved& moved);
  static void let_go(Process& process);
  void prune();

  const sys::Procfs& procfs_;
  std::unordered_map<pid_t, Process> processes_;
  std::size_t prune_at_ = 64;
};

}  // namespace swapd::daemon
