// One run of a scenario: a discrete-event simulation of nodes that decide for themselves, each when a message arrives,
// with the decision code of the daemon [DCS97 chapter 3]. Pure: the same scenario gives the same outcome.
//
// A node has one next event, that of the process on its CPU: a message or a departure at a random time, the end of a
// grain, of a spin or of a slice. Random times are exponential, so they are drawn anew whenever the node is looked at.
// An event changes its own node and, by messages without latency, others; messages under way and sleepers are in a
// queue of their own. A node is a few hundred bytes, an event some ten nanoseconds and the logarithm of the nodes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"
#include "simulate/call_rules.h"
#include "simulate/event_queue.h"
#include "simulate/machine.h"
#include "simulate/random.h"
#include "simulate/scenario.h"
#include "simulate/tally.h"

namespace swapd::simulate {

struct JobOutcome {
  std::string name;
  double share = 0;       // mean over its processes of the CPU's time that they had
  double fairness = 0;    // F, mean over its processes [DCS97 (5.1)]
  double useful = 0;      // cycles of computation, all processes; the cost of switches is not in
  double spun = 0;        // cycles of spinning
  double efficiency = 1;  // useful / (useful + spun)
  std::uint64_t messages = 0;
  double rounds = 0;  // grains of a process, mean
  CallCounts calls;
  Share coscheduled;         // time in which all of its nodes run it
  double nearly = 0;         // time in which at least nine tenths of them do
  double mean_exponent = 0;  // E at the end
  std::vector<double> states;
};

struct Outcome {
  std::vector<JobOutcome> jobs;
  Share coscheduled;  // time in which all nodes of some parallel job run it
  double nearly = 0;
  std::uint64_t spontaneous = 0;  // switches that no message asked for
  std::uint64_t called = 0;       // switches that one did
  double switching = 0;           // part of all CPU time
  std::uint64_t events = 0;
};

class Simulator {
 public:
  explicit Simulator(const Scenario& scenario);
  [[nodiscard]] Outcome run();

 private:
  struct Arrival {
    std::uint32_t process = 0;
    bool wake = false;  // the end of a sleep, not a message
    decide::coscheduling::Epoch epoch;
  };
  void run_until(Duration end);
  void restart_counting(Duration end);
  void act(std::uint32_t n);
  void act_at_random(std::uint32_t n);
  void end_grain(std::uint32_t index);
  [[nodiscard]] double varied(double length, double by);
  void begin_slice(Node& node, Duration at);
  void begin_grain(Process& process);
  void begin_wait(Process& process);
  [[nodiscard]] bool has_what_it_waits_for(const Process& process) const;
  void take_messages(std::uint32_t index);
  void send(std::uint32_t from, std::uint32_t to);
  void arrive(const Arrival& arrival);
  void offer(std::uint32_t index, decide::coscheduling::Epoch epoch, bool woken);
  // The running process of the node leaves; another, if there is any, gets the CPU.
  void leave(std::uint32_t n, bool stays_ready);
  void dispatch(std::uint32_t n, std::uint16_t place);
  void undispatch(std::uint32_t n);
  void settle(Node& node);
  void plan(std::uint32_t n);
  void end_window();
  [[nodiscard]] Outcome outcome();

  [[nodiscard]] Process& running(Node& node) { return machine_.processes[node.first + node.running]; }
  [[nodiscard]] const Job& job_of(const Process& process) const { return scenario_.jobs[process.job]; }

  const Scenario& scenario_;
  Machine machine_;
  Random random_;
  NextEvents events_;
  Pending<Arrival> pending_;
  CallRules rules_;
  Tally tally_;
  Duration now_{};
  Duration counted_from_{};
  Duration next_window_ = not_at_all;
  std::vector<Duration> used_at_window_;  // by process
  std::uint64_t spontaneous_ = 0, called_ = 0, handled_ = 0;
};

}  // namespace swapd::simulate
