#include "simulate/machine.h"

namespace swapd::simulate {

Machine make_machine(const Scenario& scenario) {
  Machine machine;
  machine.nodes.resize(scenario.nodes);
  machine.members.resize(scenario.jobs.size());
  for (std::uint32_t n = 0; n < scenario.nodes; ++n) {
    Node& node = machine.nodes[n];
    node.first = static_cast<std::uint32_t>(machine.processes.size());
    node.epoch = decide::coscheduling::EpochCounter(n);
    std::uint16_t place = 0;
    for (std::size_t j = 0; j < scenario.jobs.size(); ++j) {
      const Job& job = scenario.jobs[j];
      if (n >= scenario.nodes_of(job)) continue;
      for (std::uint32_t copy = 0; copy < job.copies; ++copy, ++place) {
        machine.members[j].push_back(node.first + place);
        machine.processes.push_back({.node = n, .job = static_cast<std::uint16_t>(j), .place = place});
        node.ready.push_back(place);
      }
    }
    node.run_times = decide::coscheduling::RunTimes(place);
  }
  return machine;
}

}  // namespace swapd::simulate
