// Whether the threads of a parallel job can all have CPUs at the same time. Pure.
//
// Two that may use one CPU alone never can: in a slot of theirs the one that waits keeps the CPU that the other one
// needs.
#pragma once

#include <sched.h>

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "base/time.h"

namespace swapd::daemon {

// The CPUs that each thread may use. True: all can have one of their own at once.
[[nodiscard]] bool fit_at_once(const std::vector<cpu_set_t>& allowed);

// Keeps what was last heard of the threads of each job. A thread that hardly gets a CPU is heard of rarely.
class CpuRoom {
 public:
  static constexpr Duration forget_after = std::chrono::seconds(10);
  void set(std::uint64_t job, pid_t tid, const cpu_set_t& allowed, Time now);
  // Forgets the threads that have not been heard of for long. fits() tells of what was known then.
  void end_window(Time now);
  [[nodiscard]] bool fits(std::uint64_t job) const { return !crowded_.contains(job); }

 private:
  struct Thread {
    std::uint64_t job = 0;
    cpu_set_t allowed{};
    Time heard{};
  };
  std::map<pid_t, Thread> threads_;
  std::set<std::uint64_t> crowded_;
  bool changed_ = false;  // since it was found which jobs fit
};

}  // namespace swapd::daemon
