#include "simulate/call_rules.h"

#include <chrono>

namespace swapd::simulate {

using decide::coscheduling::CallTerms;
using decide::coscheduling::ControllerTuning;
using decide::coscheduling::Epoch;
using decide::coscheduling::FairnessController;
using decide::coscheduling::RunQueue;

CallRules::CallRules(const Scenario& scenario, std::size_t processes)
    : scheduler_(scenario.scheduler),
      history_(scenario.time(scheduler_.history)),
      quantum_(scenario.time(scheduler_.quantum())),
      counts_(scenario.jobs.size()) {
  if (scheduler_.predicate == Predicate::off) return;
  const CallTerms begin{scheduler_.exponent, scenario.time(scheduler_.constant)};
  ControllerTuning tuning;
  tuning.gain = scheduler_.gain;
  accounts_.assign(processes, {.controller = FairnessController(tuning, begin)});
}

bool CallRules::fair(const Node& node, Account& account, Duration now) const {
  const Duration since = account.last_call == Duration::max() ? Duration::max() : now - account.last_call;
  const RunQueue queue{quantum_, static_cast<unsigned>(node.ready.size()) + 1};
  account.window.queue = queue;
  const bool fair = fair_to_call(since, account.controller.terms(), queue);
  ++(fair ? account.window.granted : account.window.refused);
  if (fair) account.last_call = now;
  return fair;
}

bool CallRules::grants(const Node& node, const Process& called, std::uint32_t index, Epoch message, Duration now) {
  CallCounts& counts = counts_[called.job];
  if (scheduler_.epochs && !node.epoch.may_call(message)) {
    ++counts.refused_epoch;
    return false;
  }
  if (scheduler_.equalize && !node.run_times.may_call(called.place, node.running, history_)) {
    ++counts.refused_equal;
    return false;
  }
  if (scheduler_.predicate != Predicate::off && !fair(node, accounts_[index], now)) {
    ++counts.refused_fair;
    return false;
  }
  ++counts.granted;
  return true;
}

void CallRules::end_window(const Machine& machine, std::span<const Duration> used, Duration elapsed) {
  for (std::size_t i = 0; i < accounts_.size(); ++i) {
    Account& account = accounts_[i];
    const Node& node = machine.nodes[machine.processes[i].node];
    account.window.used = used[i];
    account.window.elapsed = elapsed;
    account.window.share = 1.0 / static_cast<double>(node.run_times.places());
    account.controller.update(account.window);
    account.window = {};
  }
}

void CallRules::forget_counts() { counts_.assign(counts_.size(), {}); }

double CallRules::mean_exponent(std::span<const std::uint32_t> members) const {
  if (accounts_.empty() || members.empty()) return scheduler_.exponent;
  double sum = 0;
  for (const std::uint32_t member : members) sum += accounts_[member].controller.terms().exponent;
  return sum / static_cast<double>(members.size());
}

}  // namespace swapd::simulate
