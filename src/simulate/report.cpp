#include "simulate/report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace swapd::simulate {
namespace {

using Json = nlohmann::ordered_json;

// Six digits: more than chance leaves.
double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return 0;
  const double scale = std::pow(10.0, 5 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

std::vector<double> rounded(std::vector<double> values) {
  std::ranges::transform(values, values.begin(), [](double v) { return rounded(v); });
  return values;
}

Json scenario_line(const Scenario& scenario, std::size_t point) {
  Json line{{"type", "scenario"},        {"title", scenario.title},   {"nodes", scenario.nodes},
            {"cycles", scenario.cycles}, {"warmup", scenario.warmup}, {"cycle_us", rounded(scenario.cycle_us)},
            {"seed", scenario.seed}};
  if (!scenario.sweep.key.empty()) {
    line["sweep"] = scenario.sweep.key;
    line["value"] = scenario.sweep.values[point];
  }
  return line;
}

Json job_line(const JobOutcome& job, bool states) {
  Json line{{"type", "job"},
            {"job", job.name},
            {"share", rounded(job.share)},
            {"fairness", rounded(job.fairness)},
            {"useful_cycles", rounded(job.useful)},
            {"spun_cycles", rounded(job.spun)},
            {"efficiency", rounded(job.efficiency)},
            {"messages", job.messages},
            {"rounds", rounded(job.rounds)},
            {"calls_granted", job.calls.granted},
            {"calls_refused_epoch", job.calls.refused_epoch},
            {"calls_refused_equal", job.calls.refused_equal},
            {"calls_refused_fair", job.calls.refused_fair},
            {"exponent", rounded(job.mean_exponent)},
            {"coscheduled", rounded(job.coscheduled.mean)},
            {"coscheduled_error", rounded(job.coscheduled.error)},
            {"nearly_coscheduled", rounded(job.nearly)}};
  if (states) line["states"] = rounded(job.states);
  return line;
}

Json summary_line(const Outcome& outcome) {
  return {{"type", "summary"},
          {"coscheduled", rounded(outcome.coscheduled.mean)},
          {"coscheduled_error", rounded(outcome.coscheduled.error)},
          {"nearly_coscheduled", rounded(outcome.nearly)},
          {"switches_spontaneous", outcome.spontaneous},
          {"switches_called", outcome.called},
          {"switching", rounded(outcome.switching)},
          {"events", outcome.events}};
}

// State i of the chain is i nodes with the second job.
Json chain_line(const TwoJobChain& chain, const Outcome& outcome, bool states) {
  const std::vector<double> expected = stationary(chain);
  const double all = expected.front() + expected.back();
  Json line{{"type", "chain"},
            {"coscheduled", rounded(all)},
            {"coscheduled_first", rounded(expected.front())},
            {"coscheduled_second", rounded(expected.back())}};
  if (const Share& found = outcome.coscheduled; found.error > 0)
    line["standard_errors"] = rounded((found.mean - all) / found.error);
  if (states) line["states"] = rounded(expected);
  return line;
}

}  // namespace

std::optional<TwoJobChain> chain_of(const Scenario& scenario) {
  const Scheduler& scheduler = scenario.scheduler;
  const bool always = scheduler.coschedule && !scheduler.equalize && !scheduler.epochs &&
                      scheduler.predicate == Predicate::off && scheduler.slice == 0 && scheduler.switch_cost == 0;
  const bool at_once = scenario.link.latency == 0 && scenario.link.jitter == 0;
  const auto fits = [&](const Job& job) {
    return job.program == Program::random && scenario.nodes_of(job) == scenario.nodes && job.switches > 0 &&
           job.blocks == 0;
  };
  if (!always || !at_once || scenario.nodes < 2 || scenario.jobs.size() != 2 ||
      !std::ranges::all_of(scenario.jobs, fits))
    return {};
  const Job &a = scenario.jobs[0], &b = scenario.jobs[1];
  return TwoJobChain{scenario.nodes, a.messages, b.messages, a.switches, b.switches};
}

Status simulate(std::string_view text, std::string_view file, const std::function<void(const std::string&)>& print) {
  const Result<Scenario> scenario = parse_scenario(text, file);
  if (!scenario) return scenario.error();
  for (std::size_t point = 0; point < std::max<std::size_t>(scenario->sweep.values.size(), 1); ++point) {
    const Result<Scenario> changed = at_point(*scenario, point, file);
    if (!changed) return changed.error();
    const Outcome outcome = Simulator(*changed).run();
    print(scenario_line(*changed, point).dump());
    for (const JobOutcome& job : outcome.jobs) print(job_line(job, changed->states).dump());
    if (const auto chain = chain_of(*changed)) print(chain_line(*chain, outcome, changed->states).dump());
    print(summary_line(outcome).dump());
  }
  return Done{};
}

}  // namespace swapd::simulate
