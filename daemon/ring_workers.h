// What a ring's own threads move ("iou-wrk-…", "iou-sqp-…": io_uring hands over to them what would block, and with
// SQPOLL everything). They are threads of the program, and make no calls.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <unordered_map>
#include <vector>

#include "base/time.h"
#include "sys/procfs.h"
#include "sys/thread_io.h"

namespace swapd::daemon {

class RingWorkers {
 public:
  explicit RingWorkers(const sys::Procfs& procfs) : procfs_(procfs) {}

  // It has a ring: its workers count from now on.
  void note(pid_t tgid, Time now);
  // What they have moved since the last look. Nothing of one that was not noted. Those that are known are looked at
  // each time; who they are, where the number of threads has changed, or 10 ms ago (later where there are many).
  [[nodiscard]] sys::IoCounters grown(pid_t tgid, Time now);

 private:
  struct Process {
    Time next_list{};
    std::size_t threads = 0;
    struct Worker {
      sys::ThreadIo io;
      sys::IoCounters counted;
    };
    std::unordered_map<pid_t, Worker> workers;
    std::vector<pid_t> others;  // sorted
  };
  void list(pid_t tgid, Process& process, Time now) const;
  static sys::IoCounters look(Process& process);

  const sys::Procfs& procfs_;
  std::unordered_map<pid_t, Process> processes_;
};

}  // namespace swapd::daemon
