// Configurations, their figures, and how they are printed. Pure but for the printing.
#pragma once

#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "harness/stats.h"
#include "options.h"

namespace swapd::bench {

// One configuration. Rows of the same `group` differ in hogs and under only, so that their ratios mean something.
struct Setup {
  std::string mechanism;
  std::string under;
  int hogs = 0;
  bool hogs_free = false;  // `hogs` in all, free to move; else so many pinned to each CPU
  int iterations = 0;
  double work_ms = 0;
  double demand_ms = 0;  // CPU time of an iteration where it is more than work_ms; only for the time limit
  std::string history;   // swapd's, where it is not the one of the options
  nlohmann::json extra = nlohmann::json::object();  // further fields of the line, part of the group

  [[nodiscard]] std::string group() const { return mechanism + extra.dump() + std::to_string(work_ms); }
};

struct Measured {
  std::vector<double> samples_ms;
  nlohmann::json extra = nlohmann::json::object();  // further fields of the line: what only the run could tell
};

struct Case {
  Setup setup;
  std::function<Result<Measured>(const Setup&)> run;
};

struct Row {
  Setup setup;
  std::vector<Summary> repeats;
  std::vector<std::vector<double>> samples;
  Summary median;
  nlohmann::json extra = nlohmann::json::object();
};

// Enough digits, and no more, for a figure.
inline constexpr double mebibyte = 1 << 20;
[[nodiscard]] double rounded(double value);

// Adds where the median of `values` lies with 95 % certainty, as NAME_95_from and NAME_95_to, and their number as `n`.
// Nothing of fewer than two.
void add_interval(nlohmann::json& fields, const std::string& name, const std::vector<double>& values);

// Repeat by repeat, in each repeat one case after the other, so that a drift of the machine meets all alike.
[[nodiscard]] Result<std::vector<Row>> measure(const std::vector<Case>& cases, int repeat, bool progress);

// All combinations of under × hogs for a setup; `baseline` adds vanilla without hogs in front.
[[nodiscard]] std::vector<Setup> spread(const Setup& setup, const Options& options);

// The lines of the contract (docs/design.md, Contracts), with the ratio fields that the rows allow: to_idle, to_vanilla
// and to_hand_set are mean over mean, of each repeat, and the median of these; p50_to_idle and p50_to_hand_set the same
// of the medians.
[[nodiscard]] std::vector<nlohmann::json> lines(const std::vector<Row>& rows, const Options& options);
void print(std::FILE* out, const std::vector<nlohmann::json>& lines, bool json);

}  // namespace swapd::bench
