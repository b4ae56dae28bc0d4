// The programs that a parallel job may be, and how each is started.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace swapd::bench {

// The work of a job, and what it runs on. Its names are those of the options.
struct JobPlan {
  std::string program = "own";  // own, openmpi, mpich, openmp
  std::string pattern = "latency";
  std::string receive = "spin";   // of our own ranks
  std::string under = "vanilla";  // of the options, or "giving": as alone, with more ranks than CPUs
  int ranks = 2;
  bool pinned = true;
  std::vector<int> cpus;
  std::uint64_t rounds = 0;
  double work_us = 0;       // of a rank in a round
  std::uint64_t turns = 0;  // the same, of job_work()
  double spin_us = 0;
  bool split = false;     // a session of its own
  bool on_nodes = false;  // each rank on a node of its own
  double at_most_s = 0;
};

struct JobPlaces {
  std::string self;  // swapbench
  std::string area;  // the path by which ranks map it
  std::string temp;  // a directory for what launchers leave behind
};

// The command line of process `index` of the job: our own ranks are a process each, all other programs are one that
// starts the others.
[[nodiscard]] std::vector<std::string> job_words(const JobPlan& plan, const JobPlaces& places, int index);
[[nodiscard]] int job_processes(const JobPlan& plan);
// How our own ranks wait under `under`.
[[nodiscard]] std::string receive_under(const JobPlan& plan);
// Whether a program has what `under` asks for.
[[nodiscard]] bool job_knows(const std::string& program, const std::string& under);

// One line that names what is not there for a program; none: all is.
[[nodiscard]] std::optional<std::string> missing_job_program(const std::string& program);

}  // namespace swapd::bench
