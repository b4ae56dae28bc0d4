// A parallel job: its processes, from the start to the end, whatever program they are.
//
// The order is that of a team (harness/team.h): start, all say "ready" and sleep, then they are let go together. A job
// has shared memory of its own, so that two jobs have nothing in common.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coscheduling/job_area.h"
#include "coscheduling/job_programs.h"
#include "harness/process.h"
#include "harness/team.h"

namespace swapd::bench {

// A machine on which ranks are.
struct JobNode {
  const Daemon* daemon = nullptr;  // which manages the job's processes there; null: none
  int network = -1;                // as Spawn has it
};

class Job {
 public:
  Job(Job&& other) noexcept;
  Job& operator=(Job&&) = delete;
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job();
  // nodes: one, or one for each process.
  [[nodiscard]] static Result<Job> start(const Context& context, const JobPlan& plan,
                                         const std::vector<JobNode>& nodes);
  // Until all ranks sleep at their gate.
  [[nodiscard]] Status await_ready(std::chrono::seconds at_most);
  void let_go();
  // Sleeps until a rank says something, at most so long; true: all are done. ECHILD: a rank has failed.
  [[nodiscard]] Result<bool> await_done(std::chrono::milliseconds at_most);
  [[nodiscard]] bool done() const;
  // Rounds of the rank that has done the fewest.
  [[nodiscard]] std::uint64_t rounds() const;
  // When the last rank was done.
  [[nodiscard]] std::int64_t ended_ns() const;
  [[nodiscard]] double cpu_s() const;  // of all ranks by now
  // Sessions of its ranks, where the kernel shares the CPUs among sessions and none is that of this process; else 0.
  [[nodiscard]] int sessions_apart() const;
  void signal(int number) const;  // to all ranks
  // All processes. A launcher has some seconds in which to clean up.
  void end();

 private:
  explicit Job(JobPlan plan) : plan_(std::move(plan)) {}
  [[nodiscard]] Status map_area();
  [[nodiscard]] Result<bool> all_are(RankState state, std::chrono::milliseconds at_most);
  [[nodiscard]] std::vector<pid_t> pids() const;
  void end_launcher();
  [[nodiscard]] std::string log() const { return dir_->path() + "/log"; }

  JobPlan plan_;
  Fd memory_;
  JobArea* area_ = nullptr;
  std::optional<TempDir> dir_;   // the launcher's
  std::vector<Child> children_;  // the ranks, or their launcher
};

// Turns of job_work() a microsecond, on this thread's CPU time.
[[nodiscard]] double calibrate_job_work();

}  // namespace swapd::bench
