// A scenario of `swapd --simulate`: nodes of one CPU, links between them, the rules of their schedulers, and jobs of
// one process a node. docs/simulation.md has the keys. Pure.
//
// Lengths of time are in cycles, rates in events a cycle while a process has the CPU.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "decide/coscheduling/controller.h"

namespace swapd::simulate {

enum class Program : std::uint8_t {
  random,   // sends messages at random times to random mates and waits for none [DCS97 §3.1]
  serial,   // computes
  token,    // passes a token around its nodes; two nodes are the latency test [DCS97 §5.1.3]
  barrier,  // computes a grain, then all wait for each other [DCS97 §5.1.3]
};
enum class Receive : std::uint8_t { spin, spin_block, block };
// The predicate of decide/coscheduling/fairness.h.
enum class Predicate : std::uint8_t {
  off,
  fixed,      // with `exponent` and `constant` of the scenario
  automatic,  // beginning with these, moved by a controller for each process
};

struct Job {
  std::string name;
  Program program = Program::random;
  std::uint32_t nodes = 0;                // it has a process on the first so many nodes; 0: on all
  std::uint32_t copies = 1;               // serial: processes a node
  double messages = 0;                    // random: rate of sending
  double switches = 0;                    // rate of leaving the CPU and staying runnable
  double blocks = 0;                      // rate of blocking for something that is not a message
  double block_cycles = 0;                // the mean length of such a block
  double grain = 0;                       // token, barrier: computation between two messages
  double variation = 0;                   // of the grain: 0.1 is grain x 0.9 to 1.1, uniform
  Receive receive = Receive::spin_block;  // token, barrier
  double spin = 0;                        // spin_block: cycles of spinning before the block
  unsigned line = 0;                      // of the table in the file
  [[nodiscard]] bool sends() const { return program != Program::serial; }
};

// The process that gets the CPU when the running one leaves.
enum class Pick : std::uint8_t {
  round_robin,
  least_run,  // the one with the least CPU time, as a fair-share scheduler has it: calls are paid back
};

struct Scheduler {
  Pick pick = Pick::round_robin;
  bool coschedule = true;  // messages call at all
  bool equalize = false;   // decide::coscheduling::lags(), with `history`
  double history = 0;      // h
  bool epochs = false;     // decide::coscheduling::EpochCounter
  Predicate predicate = Predicate::off;
  double exponent = 0;                                          // E
  double constant = 0;                                          // C
  double window = 0;                                            // of the controller
  double gain = decide::coscheduling::ControllerTuning{}.gain;  // g
  bool wakeup_preempts = false;  // a process that blocked for a message runs when it comes, whatever the rules say
  double slice = 0;              // 0: a process runs until it leaves or is called away
  double slice_variation = 0;    // 0.1 is slice x 0.9 to 1.1, uniform: else nodes keep in step
  double mean_slice = 0;         // Tq where `slice` is 0
  double switch_cost = 0;        // of each change of the process on a CPU
  [[nodiscard]] double quantum() const { return slice > 0 ? slice : mean_slice; }
};

struct Link {
  double latency = 0;
  double jitter = 0;  // a message takes latency to latency + jitter, uniform
};

// Runs of one scenario that differ in one value.
struct Sweep {
  std::string key;  // empty: one run
  std::vector<double> values;
  unsigned line = 0;
};

struct Scenario {
  std::string title;
  std::uint32_t seed = 1;
  std::uint32_t nodes = 64;
  std::uint32_t cycles = 100'000;  // counted ones
  std::uint32_t warmup = 0;        // cycles before these
  double cycle_us = 1000;          // the length of a cycle, for what is in real time
  bool states = true;              // the distribution of how many nodes run a job is part of the output
  Scheduler scheduler;
  Link link;
  std::vector<Job> jobs;  // 1 to 16
  Sweep sweep;

  [[nodiscard]] std::uint32_t nodes_of(const Job& job) const { return job.nodes == 0 ? nodes : job.nodes; }
  // Cycles as simulated time.
  [[nodiscard]] Duration time(double length) const {
    return std::chrono::round<Duration>(std::chrono::duration<double, std::micro>(length * cycle_us));
  }
  // Processes on the node.
  [[nodiscard]] std::uint32_t processes_on(std::uint32_t node) const;
};

// EINVAL with one line "FILE:LINE: what is wrong".
[[nodiscard]] Result<Scenario> parse_scenario(std::string_view text, std::string_view file);
// The scenario with the sweep's value in its place, or the scenario itself if it has no sweep. EINVAL as above.
[[nodiscard]] Result<Scenario> at_point(const Scenario& scenario, std::size_t point, std::string_view file);

}  // namespace swapd::simulate
