#include "coscheduling/cosched_options.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "coscheduling/job_area.h"
#include "coscheduling/job_programs.h"
#include "coscheduling/serial_load.h"

namespace swapd::bench {
namespace {

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

constexpr std::array<std::string_view, 4> programs = {"own", "openmpi", "mpich", "openmp"};

std::optional<std::string> wrong_pair(const std::string& text, const Options& options) {
  const Options::Cosched& cosched = options.cosched;
  const auto [first, second] = *job_pair(text);
  if (first != second && cosched.test != "two-jobs") return "cosched: a pair of programs goes with two-jobs";
  for (const std::string& program : {first, second}) {
    if (auto missing = missing_job_program(program)) return missing;
    for (const std::string& under : options.under)
      if (!job_knows(program, under)) return "cosched: " + program + " knows no " + under;
    if (program != "own" && cosched.receive != std::vector<std::string>{"spin"})
      return "cosched: --receive is of our own ranks; " + program + " waits as --under says";
  }
  return std::nullopt;
}

std::optional<std::string> wrong_nodes(const Options& options) {
  const Options::Cosched& cosched = options.cosched;
  if (!cosched.nodes) return std::nullopt;
  if (cosched.test != "latency" && cosched.test != "barrier") return "cosched: --nodes goes with latency and barrier";
  if (cosched.programs != std::vector<std::string>{"own"}) return "cosched: --nodes is of our own ranks";
  if (cosched.ranks != 2 || options.cpus != 2) return "cosched: --nodes: two ranks on two CPUs";
  if (cosched.floating) return "cosched: --nodes: each node has one CPU";
  if (cosched.managed_competitors) return "cosched: --nodes: the competitors are not managed";
  return std::nullopt;
}

}  // namespace

std::optional<std::pair<std::string, std::string>> job_pair(const std::string& text) {
  const auto plus = text.find('+');
  const std::string first = text.substr(0, plus);
  const std::string second = plus == std::string::npos ? first : text.substr(plus + 1);
  for (const std::string& name : {first, second})
    if (std::ranges::find(programs, name) == programs.end()) return std::nullopt;
  return std::pair(first, second);
}

void cosched_options(CLI::App& app, Options& options) {
  Options::Cosched& cosched = options.cosched;
  app.add_option("test", cosched.test,
                 "latency: two ranks pass a token; barrier: all ranks compute and meet; mixed: a job beside serial "
                 "programs; two-jobs: two jobs at once")
      ->required()
      ->check(CLI::IsMember({"latency", "barrier", "mixed", "two-jobs"}));
  app.remove_option(app.get_option("--under"));
  app.add_option(
         "--under", options.under,
         "vanilla, swapd, and what people do today: yield-when-idle (Open MPI), passive (OpenMP), nice-5, freeze "
         "(two-jobs: each stopped for 100 ms while the other runs)")
      ->delimiter(',')
      ->check(CLI::IsMember({"vanilla", "swapd", "yield-when-idle", "passive", "nice-5", "freeze"}));
  app.add_option(
         "--program", cosched.programs,
         "Of the job: own (processes that share memory), openmpi, mpich, openmp; a list. two-jobs: two of it, or "
         "one of each with A+B")
      ->delimiter(',')
      ->check([](const std::string& text) {
        const auto names = job_pair(text);
        return names ? std::string() : "'" + text + "' is no program and no pair of them";
      });
  app.add_option("--pattern", cosched.pattern, "mixed, two-jobs: what the job does (default barrier)")
      ->check(CLI::IsMember({"latency", "barrier"}));
  app.add_option("--receive", cosched.receive, "How a rank of our own waits: spin, yield, spin-block, block; a list")
      ->delimiter(',')
      ->check(CLI::IsMember({"spin", "yield", "spin-block", "block"}));
  app.add_option("--competitors", cosched.competitors, "Busy loops on each CPU; a list measures each")
      ->delimiter(',')
      ->check(CLI::Range(0, 64));
  app.add_option("--grain", cosched.grains_us, "barrier: microseconds of work before each; a list measures each")
      ->delimiter(',')
      ->check(CLI::Range(0.0, 1e6));
  app.add_option("--work", cosched.work_us, "latency: microseconds of work of the rank that has the token")
      ->check(CLI::Range(0.0, 1e6));
  app.add_option("--spin", cosched.spin_us, "spin-block: microseconds before it sleeps")->check(CLI::Range(0.0, 1e6));
  app.add_option("--ranks", cosched.ranks, "Ranks of a job (default 2)")
      ->check(CLI::Range(1, static_cast<int>(job_max_ranks)));
  app.add_option("--dedicated", cosched.dedicated_s, "Seconds that the job takes when it is alone")
      ->check(CLI::Range(0.01, 600.0));
  app.add_option("--limit", cosched.limit_s, "Seconds after which a run is cut; its line says so, and counts rounds")
      ->check(CLI::Range(0.1, 3600.0));
  app.add_option("--churn", cosched.churn_s,
                 "latency, barrier: competitors come and go each so many seconds: all, half of them, none")
      ->check(CLI::Range(0.5, 600.0));
  app.add_option("--churn-nice", cosched.churn_nice, "The nice value of the competitors in every other turn of --churn")
      ->check(CLI::Range(0, 19));
  app.add_flag(
      "--nodes", cosched.nodes,
      "latency, barrier: two ranks of our own on two nodes, each a network namespace with one CPU and a swapd, "
      "and TCP between them");
  app.add_flag("--float", cosched.floating, "Ranks may move between the CPUs");
  app.add_flag("--managed-competitors", cosched.managed_competitors, "Under swapd it manages the competitors too");
}

std::optional<std::string> cosched_defaults(const CLI::App& chosen, Options& options) {
  Options::Cosched& cosched = options.cosched;
  if (chosen.count("--hogs") != 0 || options.baseline) return "cosched: --competitors tells the load";
  options.hogs = {0};
  if (chosen.count("--cpus") == 0) options.cpus = 2;
  if (chosen.count("--repeat") == 0) options.repeat = 5;
  if (cosched.ranks < options.cpus) return "cosched: --ranks: at least one for each of --cpus";
  const bool has_pattern = cosched.test == "mixed" || cosched.test == "two-jobs";
  if (!cosched.pattern.empty() && !has_pattern) return "cosched: --pattern goes with mixed and two-jobs";
  if (cosched.pattern.empty()) cosched.pattern = has_pattern ? "barrier" : cosched.test;
  if (cosched.pattern == "latency" && cosched.ranks % 2 != 0) return "cosched: --ranks: a token needs pairs";
  if (chosen.count("--competitors") == 0 && has_pattern) cosched.competitors = {cosched.test == "mixed" ? 2 : 0};
  if (cosched.churn_s > 0 && cosched.test != "latency" && cosched.test != "barrier")
    return "cosched: --churn goes with latency and barrier";
  if (cosched.churn_s > 0 && cosched.managed_competitors) return "cosched: those that come and go are not managed";
  if (auto wrong = wrong_nodes(options)) return wrong;
  if (cosched.churn_nice != 0 && cosched.churn_s == 0) return "cosched: --churn-nice goes with --churn";
  if (has(options.under, "freeze") && cosched.test != "two-jobs") return "cosched: freeze goes with two-jobs";
  if (cosched.test == "mixed" && serial_programs().empty())
    return "cosched mixed: neither tar and gzip nor gs is there";
  for (const std::string& program : cosched.programs)
    if (auto wrong = wrong_pair(program, options)) return wrong;
  return std::nullopt;
}

}  // namespace swapd::bench
