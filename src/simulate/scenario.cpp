#include "simulate/scenario.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "policy/schema.h"

namespace swapd::simulate {
namespace {

using policy::Complaint;
using policy::Entry;
using policy::KeyRule;
using policy::Wrong;

constexpr std::size_t largest_text = 1U << 20;
constexpr double longest = 1e9;       // cycles
constexpr double min_interval = 0.1;  // us: time is in nanoseconds
constexpr std::uint32_t max_nodes = 100'000;
constexpr std::uint64_t max_processes = 1'000'000;
constexpr std::size_t max_jobs = 16, max_points = 100;

constexpr auto program_words = words<Program>({{"random", Program::random},
                                               {"serial", Program::serial},
                                               {"token", Program::token},
                                               {"barrier", Program::barrier}});
constexpr auto receive_words =
    words<Receive>({{"spin", Receive::spin}, {"spin-block", Receive::spin_block}, {"block", Receive::block}});
constexpr auto pick_words = words<Pick>({{"round-robin", Pick::round_robin}, {"least-run", Pick::least_run}});
constexpr auto predicate_words =
    words<Predicate>({{"off", Predicate::off}, {"fixed", Predicate::fixed}, {"automatic", Predicate::automatic}});

std::vector<KeyRule> top_keys(Scenario& to) {
  return {policy::line_of_text("title", to.title, 200),
          policy::whole<std::uint32_t>("seed", to.seed, 0, std::numeric_limits<std::uint32_t>::max()),
          policy::whole<std::uint32_t>("nodes", to.nodes, 1, max_nodes),
          policy::whole<std::uint32_t>("cycles", to.cycles, 1, 1'000'000'000),
          policy::whole<std::uint32_t>("warmup", to.warmup, 0, 1'000'000'000),
          policy::real("cycle_us", to.cycle_us, 0.001, 1000),
          policy::flag("states", to.states),
          policy::only_table("scheduler"),
          policy::only_table("link"),
          policy::only_table("job"),
          policy::only_table("sweep")};
}

std::vector<KeyRule> scheduler_keys(Scheduler& to) {
  return {policy::word("pick", to.pick, pick_words),
          policy::flag("coschedule", to.coschedule),
          policy::flag("equalize", to.equalize),
          policy::real("history", to.history, -longest, longest),
          policy::flag("epochs", to.epochs),
          policy::word("predicate", to.predicate, predicate_words),
          policy::real("exponent", to.exponent, -30, 30),
          policy::real("constant", to.constant, -longest, longest),
          policy::real("window", to.window, 1, longest),
          policy::real("gain", to.gain, 0, 100),
          policy::flag("wakeup_preempts", to.wakeup_preempts),
          policy::real("slice", to.slice, 0, longest),
          policy::real("slice_variation", to.slice_variation, 0, 0.99),
          policy::real("mean_slice", to.mean_slice, 0, longest),
          policy::real("switch_cost", to.switch_cost, 0, longest)};
}

std::vector<KeyRule> link_keys(Link& to) {
  return {policy::real("latency", to.latency, 0, longest), policy::real("jitter", to.jitter, 0, longest)};
}

std::vector<KeyRule> job_keys(Job& to) {
  return {policy::word("program", to.program, program_words),
          policy::whole<std::uint32_t>("nodes", to.nodes, 0, max_nodes),
          policy::whole<std::uint32_t>("copies", to.copies, 1, 1000),
          policy::real("messages", to.messages, 0, 1000),
          policy::real("switches", to.switches, 0, 1000),
          policy::real("blocks", to.blocks, 0, 1000),
          policy::real("block_cycles", to.block_cycles, 0, longest),
          policy::real("grain", to.grain, 0, longest),
          policy::real("variation", to.variation, 0, 0.99),
          policy::word("receive", to.receive, receive_words),
          policy::real("spin", to.spin, 0, longest)};
}

Wrong read_sweep(const Entry& entry, Sweep& to) {
  const auto* list = entry.node->as_array();
  if (list == nullptr || list->empty() || list->size() > max_points)
    return "must be a list of 1 to " + std::to_string(max_points) + " numbers";
  to.key = entry.key;
  for (const toml::node& one : *list) {
    const std::optional<double> value = policy::number(one);
    if (!value) return "must be a list of numbers, not of " + policy::shown(one);
    to.values.push_back(*value);
  }
  return {};
}

// The values that a sweep may change; a job's key changes those jobs that have a value other than 0 there.
struct SweepKey {
  std::string_view key;
  double low, high;
  bool whole;
  std::function<void(Scenario&, double)> set;
};

SweepKey for_jobs(std::string_view key, double high, double Job::*place) {
  return {key, 0, high, false, [place](Scenario& s, double value) {
            for (Job& job : s.jobs)
              if (job.*place > 0) job.*place = value;
          }};
}

const std::vector<SweepKey>& sweep_keys() {
  static const std::vector<SweepKey> keys = {
      {"nodes", 1, max_nodes, true, [](Scenario& s, double v) { s.nodes = static_cast<std::uint32_t>(v); }},
      {"history", -longest, longest, false, [](Scenario& s, double v) { s.scheduler.history = v; }},
      {"exponent", -30, 30, false, [](Scenario& s, double v) { s.scheduler.exponent = v; }},
      {"constant", -longest, longest, false, [](Scenario& s, double v) { s.scheduler.constant = v; }},
      {"slice", 0, longest, false, [](Scenario& s, double v) { s.scheduler.slice = v; }},
      {"latency", 0, longest, false, [](Scenario& s, double v) { s.link.latency = v; }},
      {"copies", 1, 1000, true,
       [](Scenario& s, double v) {
         for (Job& job : s.jobs)
           if (job.program == Program::serial) job.copies = static_cast<std::uint32_t>(v);
       }},
      for_jobs("messages", 1000, &Job::messages),
      for_jobs("switches", 1000, &Job::switches),
      for_jobs("blocks", 1000, &Job::blocks),
      for_jobs("grain", longest, &Job::grain),
      for_jobs("spin", longest, &Job::spin),
  };
  return keys;
}

Status check_job(const Scenario& s, const Job& job, const Complaint& complaint) {
  const auto wrong = [&](const std::string& what) { return complaint.at(job.line, "[job." + job.name + "] " + what); };
  if (s.nodes_of(job) > s.nodes)
    return wrong("is on " + std::to_string(job.nodes) + " nodes, but there are " + std::to_string(s.nodes));
  if (job.copies > 1 && job.program != Program::serial) return wrong("has copies, which only a serial program may");
  const bool waits = job.program == Program::token || job.program == Program::barrier;
  if (waits && job.grain <= 0) return wrong("needs a 'grain' above 0: it sends a message after each");
  if (!waits && job.grain > 0) return wrong("has a 'grain', which only token and barrier have");
  if (job.messages > 0 && job.program != Program::random)
    return wrong("has 'messages', a rate that only a random program has");
  if ((waits || job.messages > 0) && s.nodes_of(job) < 2) return wrong("needs two nodes to send messages");
  if ((job.messages + job.switches + job.blocks) * min_interval > s.cycle_us)
    return wrong("has events more often than each 0.1 µs, in cycles of " +
                 policy::shown(toml::value<double>(s.cycle_us)) + " µs");
  if (job.blocks > 0 && job.block_cycles <= 0) return wrong("blocks, and needs 'block_cycles' above 0");
  return Done{};
}

Status check(const Scenario& s, const Complaint& complaint, unsigned line) {
  if (s.jobs.empty()) return complaint.at(1, "there is no [job.NAME]");
  if (s.jobs.size() > max_jobs) return complaint.at(s.jobs[max_jobs].line, "more than 16 jobs");
  for (const Job& job : s.jobs)
    if (Status good = check_job(s, job, complaint); !good) return good;
  std::uint64_t processes = 0;
  for (const Job& job : s.jobs) processes += std::uint64_t{job.copies} * s.nodes_of(job);
  if (processes > max_processes)
    return complaint.at(line, std::to_string(processes) + " processes, more than " + std::to_string(max_processes));
  if (s.processes_on(0) > 10'000) return complaint.at(line, "more than 10000 processes on a node");
  const Scheduler& scheduler = s.scheduler;
  if (scheduler.predicate != Predicate::off && scheduler.quantum() <= 0)
    return complaint.at(line, "the predicate needs 'slice' or 'mean_slice' above 0 in [scheduler]");
  if (scheduler.predicate == Predicate::automatic && scheduler.window <= 0)
    return complaint.at(line, "predicate = \"automatic\" needs a 'window' in [scheduler]");
  return Done{};
}

class Parser {
 public:
  Parser(Scenario& to, std::string_view file) : to_(to), complaint_(file) {}

  Status document(const toml::table& root) {
    if (Status read = policy::read_table(root, "scenario", top_keys(to_), complaint_,
                                         [](const Entry& entry) { return entry.node->is_table(); });
        !read)
      return read;
    unsigned scheduler_line = 1;
    for (const Entry& entry : policy::entries(root)) {
      const auto* table = entry.node->as_table();
      if (table == nullptr) continue;
      Status read = Done{};
      if (entry.key == "scheduler") {
        scheduler_line = table->source().begin.line;
        read = policy::read_table(*table, "scheduler", scheduler_keys(to_.scheduler), complaint_);
      } else if (entry.key == "link") {
        read = policy::read_table(*table, "link", link_keys(to_.link), complaint_);
      } else if (entry.key == "job") {
        read = jobs(*table);
      } else if (entry.key == "sweep") {
        read = sweep(*table);
      } else {
        read = complaint_.at(entry.line, "unknown table '" + policy::printable(entry.key) + "'");
      }
      if (!read) return read;
    }
    return check(to_, complaint_, std::max(scheduler_line, 1U));
  }

 private:
  Status jobs(const toml::table& tables) {
    for (const Entry& entry : policy::entries(tables)) {
      const auto* table = entry.node->as_table();
      if (table == nullptr) return complaint_.at(entry.line, "write a table [job.NAME]");
      if (entry.key.empty() || entry.key.size() > 64)
        return complaint_.at(entry.line, "a job's name has 1 to 64 bytes");
      Job job{.name = policy::printable(entry.key), .line = table->source().begin.line};
      if (Status read = policy::read_table(*table, "job." + job.name, job_keys(job), complaint_); !read) return read;
      to_.jobs.push_back(std::move(job));
    }
    return Done{};
  }

  Status sweep(const toml::table& table) {
    to_.sweep.line = table.source().begin.line;
    const std::vector<Entry> found = policy::entries(table);
    if (found.size() != 1) return complaint_.at(to_.sweep.line, "[sweep] needs one key with a list of numbers");
    const Entry& entry = found.front();
    const std::vector<SweepKey>& keys = sweep_keys();
    const auto known = std::ranges::find(keys, entry.key, &SweepKey::key);
    if (known == keys.end()) return complaint_.at(entry.line, "'" + policy::printable(entry.key) + "' cannot be swept");
    if (const Wrong wrong = read_sweep(entry, to_.sweep))
      return complaint_.at(entry.line, "'" + std::string(entry.key) + "' in [sweep] " + *wrong);
    for (const double value : to_.sweep.values)
      if (value < known->low || value > known->high || (known->whole && value != std::floor(value)))
        return complaint_.at(entry.line, "'" + to_.sweep.key + "' in [sweep] must be " +
                                             (known->whole ? "whole numbers " : "numbers ") +
                                             policy::range_text(known->low, known->high));
    to_.sweep.line = entry.line;
    return Done{};
  }

  Scenario& to_;
  Complaint complaint_;
};

}  // namespace

std::uint32_t Scenario::processes_on(std::uint32_t node) const {
  std::uint32_t count = 0;
  for (const Job& job : jobs)
    if (node < nodes_of(job)) count += job.copies;
  return count;
}

Result<Scenario> parse_scenario(std::string_view text, std::string_view file) {
  const Complaint complaint(file);
  if (text.size() > largest_text) return complaint.at(1, "larger than 1 MiB: not a scenario");
  toml::table root;
  try {  // the library as Debian builds it reports by exceptions; they end here
    root = toml::parse(text);
  } catch (const toml::parse_error& error) {
    return complaint.at(std::max(error.source().begin.line, 1U), policy::printable(error.description()));
  }
  Scenario scenario;
  if (Status read = Parser(scenario, file).document(root); !read) return read.error();
  for (std::size_t point = 0; point < scenario.sweep.values.size(); ++point)
    if (const auto good = at_point(scenario, point, file); !good) return good.error();
  return scenario;
}

Result<Scenario> at_point(const Scenario& scenario, std::size_t point, std::string_view file) {
  Scenario changed = scenario;
  if (scenario.sweep.key.empty()) return changed;
  const auto key = std::ranges::find(sweep_keys(), scenario.sweep.key, &SweepKey::key);
  key->set(changed, scenario.sweep.values[point]);
  if (Status good = check(changed, Complaint(file), scenario.sweep.line); !good) return good.error();
  return changed;
}

}  // namespace swapd::simulate
