#include "harness/report.h"

#include <algorithm>
#include <cmath>

#include "harness/process.h"

namespace swapd::bench {

namespace {

// The further fields that stand below a row of the table.
constexpr const char* notes[] = {
    // several workloads
    "chain_shown", "added_us", "ratio", "bare_us", "ratio_to_bare", "fastest_alone_ms", "samples_ms",
    // latency
    "resource", "p50_us", "p99_us", "max_us", "without_cpu_p50_us", "without_cpu_p99_us", "without_cpu_max_us",
    "samples", "missed",
    // scale
    "threads", "resources_made", "events_per_s", "swapd_cpu_share", "engine_cpu_share", "engine_cpu_s", "events_lost",
    "managed_threads", "rss_bytes", "settle_s",
    // overhead --observe bpf
    "added_ns", "managed", "program", "runs", "ns_a_run", "cpu_share",
    // response
    "hogs_cpu_share", "pages_per_s", "swapped_out_per_s",
    // thin-client
    "frames_per_s", "page_s", "drawn_per_s", "updates_per_s", "others_updates_per_s", "donations",
    // apps
    "throughput", "throughput_from", "throughput_to", "ratio_from", "ratio_to", "ratio_95_from", "ratio_95_to",
    "programs_cpu_share"};

const Row* find(const std::vector<Row>& rows, const Row& like, const std::string& under, int hogs) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) {
    return row.setup.under == under && row.setup.hogs == hogs && row.setup.group() == like.setup.group();
  });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace

// Those without times of iterations (of other people's programs, of limits, of parallel jobs): a column for each of
// what they have.
static void print_plain(std::FILE* out, const std::vector<nlohmann::json>& lines) {
  constexpr const char* numbers[] = {"missed",
                                     "missed_later",
                                     "others_mib_s",
                                     "to_best",
                                     "other_mib_s",
                                     "sum_mib_s",
                                     "sum_to_first",
                                     "rate_mib_s",
                                     "throughput",
                                     "limited_mib_s",
                                     "deviation",
                                     "unprivileged",
                                     "t_s",
                                     "hogs",
                                     "ratio",
                                     "to_vanilla",
                                     "to_hand_set",
                                     "swapd_cpu_share",
                                     "hogs_cpu_share",
                                     "events_lost",
                                     "rss_bytes",
                                     "donations_active",
                                     "program",
                                     "receive",
                                     "grain_us",
                                     "competitors",
                                     "time_s",
                                     "cpu_s",
                                     "fairness",
                                     "to_ideal",
                                     "competitors_share",
                                     "serial_lost",
                                     "threads_left_boosted"};
  const auto has = [&](const char* name) {
    return std::ranges::any_of(lines, [&](const auto& line) { return line.contains(name); });
  };
  std::fprintf(out, "%-12s %-14s %-14s %-7s", "workload", "mechanism", "under", "limit");
  for (const char* number : numbers)
    if (has(number)) std::fprintf(out, " %13s", number);
  std::fputc('\n', out);
  for (const auto& line : lines) {
    const auto word = [&](const char* name) { return line.value(name, std::string("-")); };
    std::fprintf(out, "%-12s %-14s %-14s %-7s", word("workload").c_str(), word("mechanism").c_str(),
                 word("under").c_str(), word("limit").c_str());
    for (const char* number : numbers) {
      if (!has(number)) continue;
      if (line.contains(number) && line[number].is_number())
        std::fprintf(out, " %13.4g", line[number].get<double>());
      else
        std::fprintf(out, " %13s", word(number).c_str());
    }
    std::fputc('\n', out);
  }
}

double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return 0;
  const double scale = std::pow(10.0, 4 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

void add_interval(nlohmann::json& fields, const std::string& name, const std::vector<double>& values) {
  if (values.size() < 2) return;
  const auto [low, high] = median_interval(values);
  fields[name + "_95_from"] = rounded(low);
  fields[name + "_95_to"] = rounded(high);
  fields["n"] = values.size();
}

Result<std::vector<Row>> measure(const std::vector<Case>& cases, int repeat, bool progress) {
  std::vector<Row> rows;
  for (const Case& one : cases) rows.push_back(Row{.setup = one.setup});
  for (int r = 0; r < repeat; ++r) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const Setup& setup = cases[i].setup;
      if (progress) {
        std::fprintf(stderr, "swapbench: repeat %d of %d: %s under %s, %d hogs\n", r + 1, repeat,
                     setup.mechanism.c_str(), setup.under.c_str(), setup.hogs);
      }
      auto measured = cases[i].run(setup);
      if (interrupted()) return Error(EINTR, "interrupted");
      if (!measured) return Error(measured.error()).in(setup.mechanism + " under " + setup.under);
      rows[i].repeats.push_back(summarize(measured->samples_ms));
      rows[i].samples.push_back(std::move(measured->samples_ms));
      rows[i].extra = std::move(measured->extra);
    }
  }
  for (Row& row : rows) row.median = median_of(row.repeats);
  return rows;
}

std::vector<Setup> spread(const Setup& setup, const Options& options) {
  std::vector<Setup> setups;
  const auto add = [&](const std::string& under, int hogs) {
    Setup one = setup;
    one.under = under;
    one.hogs = hogs;
    const bool there =
        std::any_of(setups.begin(), setups.end(), [&](const Setup& s) { return s.under == under && s.hogs == hogs; });
    if (!there) setups.push_back(std::move(one));
  };
  if (options.baseline) add("vanilla", 0);
  for (const int hogs : options.hogs) {
    for (const std::string& under : options.under) add(under, hogs);
  }
  return setups;
}

std::vector<nlohmann::json> lines(const std::vector<Row>& rows, const Options& options) {
  std::vector<nlohmann::json> out;
  for (const Row& row : rows) {
    nlohmann::json line = {{"workload", options.workload},
                           {"mechanism", row.setup.mechanism},
                           {"under", row.setup.under},
                           {"observer", row.setup.under == "swapd" ? options.observe : "none"},
                           {"hogs", row.setup.hogs},
                           {"cpus", options.cpus},
                           {"iterations", row.setup.iterations},
                           {"client", text(options.client)},
                           {"sessions", options.split ? "split" : "same"},
                           {"strict", options.strict},
                           {"work_ms", row.setup.work_ms},
                           {"repeat", row.repeats.size()},
                           {"mean_ms", rounded(row.median.mean)},
                           {"p50_ms", rounded(row.median.p50)},
                           {"p99_ms", rounded(row.median.p99)},
                           {"max_ms", rounded(row.median.max)}};
    line.update(row.setup.extra);
    line.update(row.extra);
    for (const Summary& s : row.repeats) {
      line["repeats"].push_back({{"mean_ms", rounded(s.mean)},
                                 {"p50_ms", rounded(s.p50)},
                                 {"p99_ms", rounded(s.p99)},
                                 {"max_ms", rounded(s.max)}});
    }
    const auto ratio = [&](const char* mean_name, const char* p50_name, const Row* to) {
      if (to == nullptr || to == &row || to->median.mean == 0 || to->median.p50 == 0) return;
      line[mean_name] = rounded(ratio_of(row.repeats, to->repeats, &Summary::mean));
      line[p50_name] = rounded(ratio_of(row.repeats, to->repeats, &Summary::p50));
    };
    ratio("to_idle", "p50_to_idle", find(rows, row, "vanilla", 0));
    ratio("to_vanilla", "p50_to_vanilla", find(rows, row, "vanilla", row.setup.hogs));
    ratio("to_hand_set", "p50_to_hand_set", find(rows, row, "hand-set", row.setup.hogs));
    out.push_back(std::move(line));
  }
  return out;
}

void print(std::FILE* out, const std::vector<nlohmann::json>& lines, bool json) {
  if (json) {
    for (const auto& line : lines) std::fprintf(out, "%s\n", line.dump().c_str());
    return;
  }
  if (!lines.empty() && !lines[0].contains("mean_ms")) return print_plain(out, lines);
  std::fprintf(out, "%-14s %-15s %-9s %-8s %5s %5s %6s %10s %10s %10s %10s %8s %10s %11s\n", "workload", "mechanism",
               "under", "observer", "hogs", "cpus", "iter", "mean_ms", "p50_ms", "p99_ms", "max_ms", "to_idle",
               "to_vanilla", "to_hand_set");
  const auto ratio = [](const nlohmann::json& line, const char* name) {
    char text[32] = "-";
    if (line.contains(name)) std::snprintf(text, sizeof text, "%.3f", line[name].get<double>());
    return std::string(text);
  };
  for (const auto& line : lines) {
    const auto word = [&](const char* name) { return line[name].get<std::string>(); };
    std::fprintf(out, "%-14s %-15s %-9s %-8s %5d %5d %6d %10.4g %10.4g %10.4g %10.4g %8s %10s %11s\n",
                 word("workload").c_str(), word("mechanism").c_str(), word("under").c_str(), word("observer").c_str(),
                 line["hogs"].get<int>(), line["cpus"].get<int>(), line["iterations"].get<int>(),
                 line["mean_ms"].get<double>(), line["p50_ms"].get<double>(), line["p99_ms"].get<double>(),
                 line["max_ms"].get<double>(), ratio(line, "to_idle").c_str(), ratio(line, "to_vanilla").c_str(),
                 ratio(line, "to_hand_set").c_str());
    for (const char* note : notes) {
      if (line.contains(note)) std::fprintf(out, "  %s: %s\n", note, line[note].dump().c_str());
    }
  }
}

}  // namespace swapd::bench
