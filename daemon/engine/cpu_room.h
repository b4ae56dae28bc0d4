// Whether the threads of a parallel job can all have CPUs at the same time, and which jobs can at the same time as
// another one. Pure.
//
// Two that may use one CPU alone never can: in a slot of theirs the one that waits keeps the CPU that the other one
// needs. So it is with two jobs of two threads each that may use the same two CPUs, wherever their threads are just
// now.
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
  static constexpr std::size_t max_jobs = 64;  // that are compared; if there are more, all are in one room
  void set(std::uint64_t job, pid_t tid, const cpu_set_t& allowed, Time now);
  // A thread that sleeps needs no CPU while the others of its job have theirs.
  void sleeps(pid_t tid, bool on);
  // Those of the job that are known, with those that sleep.
  [[nodiscard]] std::vector<pid_t> threads_of(std::uint64_t job) const;
  // Forgets the threads that have not been heard of for long. fits() tells of what was known then.
  void end_window(Time now);
  [[nodiscard]] bool fits(std::uint64_t job) const { return !crowded_.contains(job); }
  // The same for jobs of which one has to wait for the other: the lowest of them. A job of one thread, and one that
  // does not fit itself, is in none: 0.
  [[nodiscard]] std::uint64_t room(std::uint64_t job) const;

 private:
  struct Thread {
    std::uint64_t job = 0;
    cpu_set_t allowed{};
    Time heard{};
    bool sleeps = false;
  };
  void find_rooms(const std::map<std::uint64_t, std::vector<cpu_set_t>>& jobs);

  std::map<pid_t, Thread> threads_;
  std::set<std::uint64_t> crowded_;
  std::map<std::uint64_t, std::uint64_t> rooms_;
  bool changed_ = false;  // since it was found which jobs fit
};

}  // namespace swapd::daemon
