// Fairness, the ideal, and what a run of a parallel job amounts to. Pure. [DCS97 §5.1.2]
//
// The fair share of a job is its part of what runs: all ranks, competitors and ranks of other jobs have the same
// weight, and each CPU has `competitors` of these.
//
//   share    = ranks / (ranks + competitors × CPUs + ranks of others)
//   F        = CPU time of the job / (wall time × CPUs × share)
//   ideal    = dedicated time / share (of what it had when it was alone, all)
//
// With one rank on each CPU that is equation 5.1, F = N × T_C / T_E, with N = competitors + 1, and ideal = N ×
// dedicated. F > 1: the job has taken more than its fair share. F < 1: less, by being kept from it or by sleeping.
//
// A launcher may give the ranks sessions of their own (Hydra, MPICH's, gives each one). Where the kernel shares a CPU
// among sessions first (sched(7), autogroup), each has the same weight, spread over the CPUs that its threads use. The
// competitors are one session. With S sessions of the job's ranks, as many of each other job's:
//
//   share    = S / (S + 1, where there are competitors + S, where there are other jobs)
//
// Competitors may come and go: what is fair is summed over the phases in which they stay the same then.
#pragma once

#include <cstdint>
#include <span>

namespace swapd::bench {

struct Crowd {
  int cpus = 1;
  int ranks = 1;        // of the job that it is about
  int competitors = 0;  // on each CPU
  int other_ranks = 0;  // of other jobs
  double weight = 1;    // of a competitor; a rank has 1
  int sessions = 0;     // of the ranks, apart from the competitors'; 0: they are in that one, or sessions do not count
};

// By nice value, nice 0 has 1. sched(7): a step is a quarter more.
[[nodiscard]] double weight_of(int nice);

[[nodiscard]] double fair_share(const Crowd& crowd);
// 0 where no time has passed.
[[nodiscard]] double fairness(double cpu_s, double wall_s, const Crowd& crowd);
[[nodiscard]] double ideal_s(double dedicated_s, const Crowd& crowd);

struct Phase {
  Crowd crowd;
  double wall_s = 0;
  double cpu_s = 0;  // of the job
};
[[nodiscard]] double fairness(std::span<const Phase> phases);
// The phase that is furthest from 1, among those with competitors that last at least `least_s`; 1: there is none.
[[nodiscard]] double fairness_furthest(std::span<const Phase> phases, double least_s);
// The time that the job needs alone for what a fair share of these phases is.
[[nodiscard]] double fair_part_s(std::span<const Phase> phases);
// Part of all CPUs.
[[nodiscard]] double share_of_cpus(double cpu_s, double wall_s, int cpus);

// A run that was cut is measured by the part of its rounds that it has done: `time_s` and `cpu_s` are what all of them
// would have taken at that pace.
struct Progress {
  double wall_s = 0, cpu_s = 0;
  std::uint64_t done = 0, wanted = 0;
  int sessions = 0;  // see Crowd
};
struct Whole {
  double time_s = 0, cpu_s = 0;
  bool cut = false;
};
// With no round done, one is taken for done: a lower bound.
[[nodiscard]] Whole whole_run(const Progress& progress);
// The same of a run that goes on until it is ended: it may have done more rounds than are wanted, too.
[[nodiscard]] Whole at_pace(const Progress& progress);
[[nodiscard]] Whole mean_of(const Whole& one, const Whole& other);

// Loss of serial programs beyond a fair share: 1 − what they got / (what they get alone × their fair share).
// Below 0: they have had more. 0 where there is nothing to compare with.
[[nodiscard]] double lost(double rate, double alone, const Crowd& crowd);

// So many rounds as take `seconds` at the pace of a first run; at least 1.
[[nodiscard]] std::uint64_t rounds_for(double seconds, const Progress& first);

}  // namespace swapd::bench
