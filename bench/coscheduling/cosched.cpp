// cosched: parallel jobs on a machine that others use too [DCS97 ch. 5].
//
// latency: two ranks, each on a CPU of its own, pass a token; who has it works for some microseconds. barrier: all
// ranks compute and meet at a barrier. Beside them busy loops, so many on each CPU; in mixed, serial programs.
// two-jobs: two jobs at once, for a fixed time. A rank that spins for a mate without a CPU uses up what it gets; what a
// job takes then is told against the *ideal*, a fair share without waste, and its *fairness* says whether it has had
// more than that share (coscheduling/fairness.h).
//
// The configurations take turns, so many times as there are repeats. Before each run the job runs alone
// (`dedicated_s`), so that a machine whose speed changes meets both of a pair alike. With more ranks than CPUs, a rank
// that waits gives up its CPU in that run, so that the ideal has no waste there either.
#include <algorithm>
#include <cstdio>

#include "coscheduling/cosched_lines.h"
#include "coscheduling/cosched_options.h"
#include "coscheduling/scene.h"
#include "coscheduling/serial_load.h"
#include "harness/workload.h"

namespace swapd::bench {
namespace {

constexpr double pilot_s = 0.1;
constexpr int pilots = 3;           // the fastest of them tells the pace
constexpr double two_jobs_for = 4;  // dedicated times, when there is nothing else

class Cosched {
 public:
  explicit Cosched(const Context& context)
      : context_(context), options_(context.options), asked_(options_.cosched), turns_per_us_(calibrate_job_work()) {
    if (asked_.test == "mixed") serial_ = serial_programs();
  }

  Result<std::vector<nlohmann::json>> run() {
    std::vector<CoschedSubject> subjects = make_subjects();
    std::vector<std::vector<std::vector<CoschedFigures>>> figures;  // by subject, configuration, repeat
    for (CoschedSubject& subject : subjects) {
      for (JobPlan& job : subject.jobs)
        if (Status set = set_rounds(job); !set) return set.error();
      figures.emplace_back(subject.configs.size());
    }
    for (int repeat = 1; repeat <= options_.repeat; ++repeat)
      for (std::size_t i = 0; i < subjects.size(); ++i)
        if (Status done = measure(subjects[i], repeat, figures[i]); !done) return done.error();
    std::vector<nlohmann::json> lines;
    for (std::size_t i = 0; i < subjects.size(); ++i)
      for (std::size_t c = 0; c < subjects[i].configs.size(); ++c)
        lines.push_back(cosched_line(subjects[i], subjects[i].configs[c], figures[i][c], options_,
                                     vanilla_of(subjects[i], c, figures[i])));
    return lines;
  }

 private:
  // Vanilla beside the same competitors; null: it is that itself, or there is none.
  static const std::vector<CoschedFigures>* vanilla_of(const CoschedSubject& subject, std::size_t of,
                                                       const std::vector<std::vector<CoschedFigures>>& figures) {
    for (std::size_t c = 0; c < subject.configs.size(); ++c)
      if (c != of && subject.configs[c].under == "vanilla" &&
          subject.configs[c].competitors == subject.configs[of].competitors)
        return &figures[c];
    return nullptr;
  }
  [[nodiscard]] std::vector<CoschedSubject> make_subjects() const {
    std::vector<CoschedSubject> subjects;
    const std::vector<double> grains = asked_.pattern == "latency" ? std::vector{asked_.work_us} : asked_.grains_us;
    for (const std::string& program : asked_.programs) {
      for (const std::string& receive : asked_.receive) {
        for (const double grain : grains) {
          CoschedSubject subject;
          const auto pair = job_pair(program);
          subject.jobs.push_back(plan_of(pair->first, receive, grain));
          if (asked_.test == "two-jobs") subject.jobs.push_back(plan_of(pair->second, receive, grain));
          for (const int competitors : asked_.competitors)
            for (const std::string& under : options_.under)
              subject.configs.push_back({.under = under, .competitors = competitors});
          subjects.push_back(std::move(subject));
        }
      }
    }
    return subjects;
  }
  [[nodiscard]] JobPlan plan_of(const std::string& program, const std::string& receive, double grain_us) const {
    JobPlan plan;
    plan.program = program;
    plan.pattern = asked_.pattern;
    plan.receive = receive;
    plan.ranks = asked_.ranks;
    plan.pinned = !asked_.floating && asked_.ranks == options_.cpus;
    plan.cpus = context_.cpus;
    plan.work_us = grain_us;
    plan.turns = static_cast<std::uint64_t>(grain_us * turns_per_us_);
    plan.spin_us = asked_.spin_us;
    plan.split = options_.split;
    plan.on_nodes = asked_.nodes;
    plan.at_most_s = asked_.limit_s + 60;
    return plan;
  }
  [[nodiscard]] Result<SceneRun> run_jobs(std::vector<JobPlan> jobs, const CoschedConfig& config,
                                          double limit_s) const {
    for (JobPlan& job : jobs) job.under = config.under;
    return run_scene(context_, {.jobs = std::move(jobs),
                                .under = config.under,
                                .competitors = config.competitors,
                                .serial = serial_,
                                .limit_s = limit_s,
                                .turns = turns_of(config.competitors),
                                .turn_s = asked_.churn_s});
  }
  // All, half of them, none; with other nice values the same again at these.
  [[nodiscard]] std::vector<Rivals> turns_of(int competitors) const {
    if (asked_.churn_s <= 0 || competitors == 0) return {};
    std::vector<Rivals> turns;
    for (const int part : {competitors, competitors / 2, 0}) {
      turns.push_back({.competitors = part});
      if (asked_.churn_nice != 0 && part > 0) turns.push_back({.competitors = part, .nice = asked_.churn_nice});
    }
    return turns;
  }
  [[nodiscard]] Result<SceneRun> run_alone(const JobPlan& job, double limit_s) const {
    return run_jobs({job}, {.under = job.ranks > options_.cpus ? "giving" : "vanilla"}, limit_s);
  }
  Status set_rounds(JobPlan& job) const {
    JobPlan pilot = job;
    pilot.rounds = UINT64_MAX;
    for (int i = 0; i < pilots; ++i) {
      const auto first = run_alone(pilot, pilot_s);
      if (!first) return Error(first.error()).in("the job alone");
      job.rounds = std::max(job.rounds, rounds_for(asked_.dedicated_s, first->jobs.front()));
    }
    return Done{};
  }
  // Two jobs run until they are ended: where one is faster, the other one would be alone at last.
  [[nodiscard]] Result<SceneRun> run_once(const CoschedSubject& subject, const CoschedConfig& config) const {
    if (subject.jobs.size() == 1) return run_jobs(subject.jobs, config, asked_.limit_s);
    std::vector<JobPlan> endless = subject.jobs;
    for (JobPlan& job : endless) job.rounds = UINT64_MAX;
    const double window_s = two_jobs_for * asked_.dedicated_s * (1 + config.competitors);
    auto run = run_jobs(std::move(endless), config, std::min(window_s, asked_.limit_s));
    if (run)
      for (std::size_t i = 0; i < subject.jobs.size(); ++i) run->jobs[i].wanted = subject.jobs[i].rounds;
    return run;
  }
  Status serial_alone(CoschedFigures& figures, const CoschedConfig& config) const {
    const auto run = run_jobs({}, {.under = "vanilla", .competitors = config.competitors}, 2 * asked_.dedicated_s);
    if (!run) return Error(run.error()).in("the serial programs alone");
    figures.serial_alone_cpu = run->competitors_cpu_s / run->window_s;
    figures.serial_alone_rate = run->serial_runs / run->window_s;
    return Done{};
  }
  [[nodiscard]] Result<std::vector<Whole>> jobs_alone(const CoschedSubject& subject) const {
    std::vector<Whole> dedicated;
    for (const JobPlan& job : subject.jobs) {
      const auto alone = run_alone(job, asked_.limit_s);
      if (!alone) return Error(alone.error()).in("the job alone");
      dedicated.push_back(whole_run(alone->jobs.front()));
    }
    return dedicated;
  }
  Status measure(const CoschedSubject& subject, int repeat, std::vector<std::vector<CoschedFigures>>& figures) const {
    auto before = jobs_alone(subject);
    if (!before) return before.error();
    for (std::size_t c = 0; c < subject.configs.size(); ++c) {
      const CoschedConfig& config = subject.configs[c];
      if (options_.progress)
        std::fprintf(stderr, "swapbench: repeat %d of %d: %s, %s, %s, %g us under %s, %d competitors\n", repeat,
                     options_.repeat, asked_.test.c_str(), subject.jobs.front().program.c_str(),
                     subject.jobs.front().receive.c_str(), subject.jobs.front().work_us, config.under.c_str(),
                     config.competitors);
      CoschedFigures beside;
      if (!serial_.empty() && config.competitors > 0)
        if (Status alone = serial_alone(beside, config); !alone) return alone;
      auto run = run_once(subject, config);
      if (!run) return Error(run.error()).in(asked_.test + " under " + config.under);
      beside.run = std::move(*run);
      auto after = jobs_alone(subject);
      if (!after) return after.error();
      for (std::size_t i = 0; i < subject.jobs.size(); ++i)
        beside.dedicated.push_back(mean_of((*before)[i], (*after)[i]));
      before = std::move(after);
      figures[c].push_back(std::move(beside));
    }
    return Done{};
  }

  const Context& context_;
  const Options& options_;
  const Options::Cosched& asked_;
  double turns_per_us_;
  std::vector<std::string> serial_;
};

}  // namespace

Result<std::vector<nlohmann::json>> run_cosched(const Context& context) { return Cosched(context).run(); }

}  // namespace swapd::bench
