// Nodes and processes of a simulation: plain values. Pure.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "base/time.h"
#include "decide/coscheduling/epoch.h"
#include "decide/coscheduling/fairness.h"
#include "simulate/scenario.h"

namespace swapd::simulate {

inline constexpr std::uint16_t no_place = std::numeric_limits<std::uint16_t>::max();

enum class Phase : std::uint8_t {
  computing,
  waiting,  // for messages, spinning while it has the CPU
  blocked,  // for messages, without the CPU
  asleep,   // for something else, without the CPU
};

struct Process {
  std::uint32_t node = 0;
  std::uint16_t job = 0;
  std::uint16_t place = 0;  // among the processes of its node
  Phase phase = Phase::computing;
  Phase resumes = Phase::computing;  // after it was asleep
  std::uint32_t unread = 0;          // messages that have arrived, token and barrier
  Duration left{};                   // of the grain
  Duration spin_left{};              // before it blocks
  // Counted since the warm-up.
  Duration useful{}, spun{};
  std::uint64_t rounds = 0;  // grains
  std::uint64_t sent = 0;
};

enum class Action : std::uint8_t { nothing, at_random, grain_ends, spin_ends, slice_ends };

struct Node {
  std::uint32_t first = 0;           // its first process
  std::uint16_t running = no_place;  // no_place: idle
  Action action = Action::nothing;   // at the node's next event
  std::vector<std::uint16_t> ready;  // places of runnable processes without the CPU, the next one first
  Duration since{};                  // all before is accounted for
  Duration works_from{};             // the switch to the running process takes until then
  Duration slice_end = Duration::max();
  decide::coscheduling::EpochCounter epoch;
  decide::coscheduling::RunTimes run_times;
  Duration switching{};  // time spent on switches
};

struct Machine {
  std::vector<Node> nodes;
  std::vector<Process> processes;                   // node by node
  std::vector<std::vector<std::uint32_t>> members;  // the processes of each job, by node
};

[[nodiscard]] Machine make_machine(const Scenario& scenario);

}  // namespace swapd::simulate
