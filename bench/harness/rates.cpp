#include "harness/rates.h"

#include <algorithm>
#include <numeric>

#include "harness/usage.h"

namespace swapd::bench {
namespace {

std::vector<double> of_each_run(const std::vector<RateRun>& runs, const std::function<double(const RateRun&)>& value) {
  std::vector<double> values;
  values.reserve(runs.size());
  for (const RateRun& run : runs) values.push_back(value(run));
  return values;
}

std::uint64_t sum_of_runs(const std::vector<RateRun>& runs, std::uint64_t RateCost::*member) {
  return std::accumulate(runs.begin(), runs.end(), std::uint64_t{0},
                         [&](std::uint64_t all, const RateRun& run) { return all + run.cost.*member; });
}

double share_of_wall(double used_s, const RateCost& cost) { return cost.wall_s > 0 ? used_s / cost.wall_s : 0; }

void add_median(nlohmann::json& line, const std::string& name, const std::vector<double>& values) {
  line[name] = rounded(median(values));
  add_interval(line, name, values);
}

void add_rate_ratio(nlohmann::json& line, const std::string& name, const RateRow& row, const std::vector<RateRow>& rows,
                    IsBase base) {
  const auto found = std::ranges::find_if(rows, [&](const RateRow& other) {
    return &other != &row && other.setup.group() == row.setup.group() && base(other.setup, row.setup);
  });
  if (found == rows.end()) return;
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(row.runs.size(), found->runs.size()); ++i)
    if (found->runs[i].throughput > 0) ratios.push_back(row.runs[i].throughput / found->runs[i].throughput);
  if (!ratios.empty()) add_median(line, name, ratios);
}

bool hand_set_of_same_hogs(const Setup& base, const Setup& of) {
  return base.under == "hand-set" && base.hogs == of.hogs;
}

}  // namespace

Result<Meter> Meter::start(const Daemon* daemon, const std::vector<Child>& hogs) {
  Meter meter(daemon, hogs);
  if (Status asked = meter.ask_swapd(meter.before_); !asked) return asked.error();
  meter.look(meter.before_);
  meter.began_ = std::chrono::steady_clock::now();
  return meter;
}

// The question comes before the first look and after the last one, so that the answer's own cost is not counted.
Result<RateCost> Meter::stop() const {
  RateCost now;
  now.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  look(now);
  if (Status asked = ask_swapd(now); !asked) return asked.error();
  now.swapd_cpu_s -= before_.swapd_cpu_s;
  now.engine_cpu_s -= before_.engine_cpu_s;
  now.hogs_cpu_s -= before_.hogs_cpu_s;
  now.events_lost -= before_.events_lost;
  now.donations -= before_.donations;
  return now;
}

Status Meter::ask_swapd(RateCost& now) const {
  if (daemon_ == nullptr) return Done{};
  const auto status = daemon_->ask({"status"});
  if (!status) return status.error();
  now.observer = status->value("observer", std::string());
  now.events_lost = status->value("events_lost", std::uint64_t{0});
  now.donations = status->value("donations_total", std::uint64_t{0});
  now.engine_cpu_s = status->value("engine_cpu_s", 0.0);
  return Done{};
}

void Meter::look(RateCost& now) const {
  if (daemon_ != nullptr) now.swapd_cpu_s = tree_cpu_s(daemon_->pid());
  for (const Child& hog : *hogs_) now.hogs_cpu_s += process_cpu_s(hog.pid());
}

bool vanilla_of_same_hogs(const Setup& base, const Setup& of) {
  return base.under == "vanilla" && base.hogs == of.hogs;
}

bool vanilla_unloaded(const Setup& base, const Setup&) { return base.under == "vanilla" && base.hogs == 0; }

Result<std::vector<RateRow>> measure_rates(const std::vector<Setup>& setups, const Options& options,
                                           const std::function<Result<RateRun>(const Setup&)>& run) {
  std::vector<RateRow> rows;
  for (const Setup& setup : setups) rows.push_back({.setup = setup, .runs = {}});
  for (int repeat = 1; repeat <= options.repeat; ++repeat) {
    for (RateRow& row : rows) {
      if (options.progress)
        std::fprintf(stderr, "swapbench: repeat %d of %d: %s under %s, %d hogs\n", repeat, options.repeat,
                     row.setup.mechanism.c_str(), row.setup.under.c_str(), row.setup.hogs);
      auto measured = run(row.setup);
      if (interrupted()) return Error(EINTR, "interrupted");
      if (!measured) return Error(measured.error()).in(row.setup.mechanism + " under " + row.setup.under);
      row.runs.push_back(std::move(*measured));
    }
  }
  return rows;
}

std::vector<nlohmann::json> rate_lines(const std::vector<RateRow>& rows, const Options& options, IsBase base) {
  std::vector<nlohmann::json> out;
  for (const RateRow& row : rows) {
    const auto throughputs = of_each_run(row.runs, [](const RateRun& run) { return run.throughput; });
    nlohmann::json line = {
        {"workload", options.workload},   {"mechanism", row.setup.mechanism},
        {"under", row.setup.under},       {"observer", row.setup.under == "swapd" ? options.observe : "none"},
        {"hogs", row.setup.hogs},         {"cpus", options.cpus},
        {"client", text(options.client)}, {"sessions", options.split ? "split" : "same"},
        {"repeat", row.runs.size()},      {"n", row.runs.size()},
        {"throughputs", throughputs}};
    line.update(row.setup.extra);
    line.update(row.extra);
    add_median(line, "throughput", throughputs);
    add_rate_ratio(line, "ratio", row, rows, base);
    add_rate_ratio(line, "to_vanilla", row, rows, vanilla_of_same_hogs);
    add_rate_ratio(line, "to_hand_set", row, rows, hand_set_of_same_hogs);
    if (row.setup.hogs > 0)
      add_median(line, "hogs_cpu_share", of_each_run(row.runs, [&](const RateRun& run) {
                   return share_of_wall(run.cost.hogs_cpu_s, run.cost) / options.cpus;
                 }));
    if (row.setup.under == "swapd" && !row.runs.empty()) {
      line["observer"] = row.runs.back().cost.observer;
      add_median(line, "swapd_cpu_share", of_each_run(row.runs, [](const RateRun& run) {
                   return share_of_wall(run.cost.swapd_cpu_s, run.cost);
                 }));
      add_median(line, "engine_cpu_share", of_each_run(row.runs, [](const RateRun& run) {
                   return share_of_wall(run.cost.engine_cpu_s, run.cost);
                 }));
      line["engine_cpu_s"] =
          rounded(median(of_each_run(row.runs, [](const RateRun& run) { return run.cost.engine_cpu_s; })));
      line["events_lost"] = sum_of_runs(row.runs, &RateCost::events_lost);
      line["donations_total"] = sum_of_runs(row.runs, &RateCost::donations);
    }
    out.push_back(std::move(line));
  }
  return out;
}

}  // namespace swapd::bench
