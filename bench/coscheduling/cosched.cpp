// cosched: parallel jobs on a machine that others use too [DCS97 ch. 5].
//
// latency: two ranks, each on a CPU of its own, pass a token through shared memory; who has it works for some
// microseconds. barrier: all ranks compute and meet at a barrier. Beside them busy loops, so many on each CPU. A rank
// that spins for a mate without a CPU uses up what it gets; what a job takes then is told against the *ideal*, a fair
// share without waste, and its *fairness* says whether it has had more than that share (coscheduling/fairness.h).
//
// In each repeat the job runs alone first (`dedicated_s`), and then under each configuration.
#include <algorithm>
#include <cstdio>

#include "coscheduling/scene.h"
#include "harness/workload.h"

namespace swapd::bench {
namespace {

constexpr double pilot_s = 0.1;
constexpr int pilots = 3;  // the fastest of them tells the pace

struct Config {
  std::string under;
  int competitors = 0;
};

// What a job does, alone and in each configuration.
struct Subject {
  JobPlan plan;
  double grain_us = 0;
  std::vector<Config> configs;
};

struct Figures {
  Whole whole;
  Progress progress;
  double dedicated_s = 0, dedicated_cpu_s = 0;
  double competitors_share = 0, swapd_share = 0;
  std::string observer;
  nlohmann::json counters;
};

class Cosched {
 public:
  explicit Cosched(const Context& context)
      : context_(context), asked_(context.options.cosched), turns_per_us_(calibrate_job_work()) {}

  Result<std::vector<nlohmann::json>> run() {
    std::vector<nlohmann::json> lines;
    std::vector<Subject> subjects = make_subjects();
    std::vector<std::vector<std::vector<Figures>>> results;  // by subject, configuration, repeat
    for (Subject& subject : subjects) {
      if (Status set = set_rounds(subject); !set) return set.error();
      results.emplace_back(subject.configs.size());
    }
    for (int repeat = 1; repeat <= context_.options.repeat; ++repeat) {
      for (std::size_t i = 0; i < subjects.size(); ++i) {
        if (Status done = measure(subjects[i], repeat, results[i]); !done) return done.error();
      }
    }
    for (std::size_t i = 0; i < subjects.size(); ++i)
      for (std::size_t c = 0; c < subjects[i].configs.size(); ++c)
        lines.push_back(line_of(subjects[i], subjects[i].configs[c], results[i][c]));
    return lines;
  }

 private:
  [[nodiscard]] std::vector<Subject> make_subjects() const {
    std::vector<Subject> subjects;
    const std::vector<double> grains = asked_.test == "latency" ? std::vector{asked_.work_us} : asked_.grains_us;
    for (const std::string& receive : asked_.receive) {
      for (const double grain : grains) {
        Subject subject{.plan = plan_of(receive, grain), .grain_us = grain, .configs = {}};
        for (const int competitors : asked_.competitors)
          for (const std::string& under : context_.options.under)
            subject.configs.push_back({.under = under, .competitors = competitors});
        subjects.push_back(std::move(subject));
      }
    }
    return subjects;
  }
  [[nodiscard]] JobPlan plan_of(const std::string& receive, double grain_us) const {
    JobPlan plan;
    plan.pattern = asked_.test;
    plan.receive = receive;
    plan.ranks = asked_.ranks;
    plan.pinned = !asked_.floating;
    plan.cpus = context_.cpus;
    plan.turns = static_cast<std::uint64_t>(grain_us * turns_per_us_);
    plan.spin_us = asked_.spin_us;
    plan.split = context_.options.split;
    plan.at_most_s = asked_.limit_s + 60;
    return plan;
  }
  [[nodiscard]] Result<SceneRun> run_one(const JobPlan& job, const Config& config, double limit_s) const {
    ScenePlan scene{.jobs = {job}, .under = config.under, .competitors = config.competitors, .limit_s = limit_s};
    scene.jobs.front().under = config.under;
    return run_scene(context_, scene);
  }
  Status set_rounds(Subject& subject) const {
    JobPlan pilot = subject.plan;
    pilot.rounds = UINT64_MAX;
    for (int i = 0; i < pilots; ++i) {
      const auto first = run_one(pilot, {.under = "vanilla"}, pilot_s);
      if (!first) return first.error();
      subject.plan.rounds = std::max(subject.plan.rounds, rounds_for(asked_.dedicated_s, first->jobs.front()));
    }
    return Done{};
  }
  Status measure(const Subject& subject, int repeat, std::vector<std::vector<Figures>>& results) const {
    const auto alone = run_one(subject.plan, {.under = "vanilla"}, asked_.limit_s);
    if (!alone) return Error(alone.error()).in("the job alone");
    const Whole dedicated = whole_run(alone->jobs.front());
    for (std::size_t c = 0; c < subject.configs.size(); ++c) {
      const Config& config = subject.configs[c];
      if (context_.options.progress)
        std::fprintf(stderr, "swapbench: repeat %d of %d: %s, %s, %g us under %s, %d competitors\n", repeat,
                     context_.options.repeat, asked_.test.c_str(), subject.plan.receive.c_str(), subject.grain_us,
                     config.under.c_str(), config.competitors);
      const auto run = run_one(subject.plan, config, asked_.limit_s);
      if (!run) return Error(run.error()).in(asked_.test + " under " + config.under);
      results[c].push_back(
          {.whole = whole_run(run->jobs.front()),
           .progress = run->jobs.front(),
           .dedicated_s = dedicated.time_s,
           .dedicated_cpu_s = dedicated.cpu_s,
           .competitors_share = share_of_cpus(run->competitors_cpu_s, run->window_s, context_.options.cpus),
           .swapd_share = share_of_cpus(run->swapd_cpu_s, run->window_s, 1),
           .observer = run->observer,
           .counters = run->counters});
    }
    return Done{};
  }
  template <typename Value>
  static std::vector<double> each(const std::vector<Figures>& runs, Value value) {
    std::vector<double> values;
    for (const Figures& run : runs) values.push_back(value(run));
    return values;
  }
  static void add(nlohmann::json& line, const std::string& name, const std::vector<double>& values) {
    line[name] = rounded(median(values));
    add_interval(line, name, values);
  }
  [[nodiscard]] nlohmann::json line_of(const Subject& subject, const Config& config,
                                       const std::vector<Figures>& runs) const {
    const Options& options = context_.options;
    const Crowd crowd{.cpus = options.cpus, .ranks = subject.plan.ranks, .competitors = config.competitors};
    nlohmann::json line = {{"workload", options.workload},
                           {"mechanism", asked_.test},
                           {"program", subject.plan.program},
                           {"under", config.under},
                           {"observer", runs.back().observer},
                           {"hogs", config.competitors},
                           {"cpus", options.cpus},
                           {"iterations", subject.plan.rounds},
                           {"receive", subject.plan.receive},
                           {"competitors", config.competitors},
                           {"ranks", subject.plan.ranks},
                           {"grain_us", subject.grain_us},
                           {"pinned", subject.plan.pinned},
                           {"sessions", options.split ? "split" : "same"},
                           {"repeat", runs.size()}};
    if (subject.plan.receive == "spin-block") line["spin_us"] = subject.plan.spin_us;
    add(line, "time_s", each(runs, [](const Figures& run) { return run.whole.time_s; }));
    add(line, "cpu_s", each(runs, [](const Figures& run) { return run.whole.cpu_s; }));
    add(line, "fairness",
        each(runs, [&](const Figures& run) { return fairness(run.progress.cpu_s, run.progress.wall_s, crowd); }));
    add(line, "to_ideal",
        each(runs, [&](const Figures& run) { return run.whole.time_s / ideal_s(run.dedicated_s, crowd); }));
    add(line, "dedicated_s", each(runs, [](const Figures& run) { return run.dedicated_s; }));
    add(line, "dedicated_cpu_s", each(runs, [](const Figures& run) { return run.dedicated_cpu_s; }));
    if (config.competitors > 0)
      add(line, "competitors_share", each(runs, [](const Figures& run) { return run.competitors_share; }));
    if (std::ranges::any_of(runs, [](const Figures& run) { return run.whole.cut; })) line["cut"] = true;
    if (config.under == "swapd") {
      add(line, "swapd_cpu_share", each(runs, [](const Figures& run) { return run.swapd_share; }));
      line.update(runs.back().counters);
    }
    line["times_s"] = each(runs, [](const Figures& run) { return rounded(run.whole.time_s); });
    return line;
  }

  const Context& context_;
  const Options::Cosched& asked_;
  double turns_per_us_;
};

}  // namespace

Result<std::vector<nlohmann::json>> run_cosched(const Context& context) { return Cosched(context).run(); }

}  // namespace swapd::bench
