#include "coscheduling/cosched_lines.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "harness/report.h"

namespace swapd::bench {
namespace {

// The figures of one repeat, job by job.
class Jobs {
 public:
  Jobs(const CoschedSubject& subject, const CoschedConfig& config, const CoschedFigures& figures, int cpus)
      : figures_(figures) {
    int all_ranks = 0;
    for (const JobPlan& job : subject.jobs) all_ranks += job.ranks;
    for (std::size_t i = 0; i < subject.jobs.size(); ++i) {
      const int ranks = subject.jobs[i].ranks;
      crowds_.push_back({.cpus = cpus,
                         .ranks = ranks,
                         .competitors = config.competitors,
                         .other_ranks = all_ranks - ranks,
                         .sessions = figures.run.jobs[i].sessions});
    }
    for (const ScenePhase& one : figures.run.phases) {
      Crowd crowd = crowds_.front();
      crowd.competitors = one.rivals.competitors;
      crowd.weight = weight_of(one.rivals.nice);
      phases_.push_back({.crowd = crowd, .wall_s = one.wall_s, .cpu_s = one.cpu_s});
    }
  }
  [[nodiscard]] std::size_t count() const { return crowds_.size(); }
  [[nodiscard]] Whole whole(std::size_t i) const {
    return count() > 1 ? at_pace(figures_.run.jobs[i]) : whole_run(figures_.run.jobs[i]);
  }
  [[nodiscard]] bool cut() const { return count() == 1 && whole(0).cut; }
  [[nodiscard]] double time_s() const {
    return largest([&](std::size_t i) { return whole(i).time_s; });
  }
  [[nodiscard]] double cpu_s() const {
    double sum = 0;
    for (std::size_t i = 0; i < count(); ++i) sum += whole(i).cpu_s;
    return sum;
  }
  [[nodiscard]] double to_ideal() const {
    if (!phases_.empty()) return fair_part_s(phases_) / part_done() / figures_.dedicated.front().time_s;
    return largest([&](std::size_t i) { return whole(i).time_s / ideal_s(figures_.dedicated[i].time_s, crowds_[i]); });
  }
  [[nodiscard]] double fairness_of(std::size_t i) const {
    if (!phases_.empty()) return fairness(phases_);
    return fairness(figures_.run.jobs[i].cpu_s, figures_.run.jobs[i].wall_s, crowds_[i]);
  }
  [[nodiscard]] double fairness_furthest_from_1() const {
    double furthest = fairness_of(0);
    for (std::size_t i = 1; i < count(); ++i)
      if (std::abs(fairness_of(i) - 1) > std::abs(furthest - 1)) furthest = fairness_of(i);
    return furthest;
  }
  [[nodiscard]] double throughput() const {
    double sum = 0;
    for (std::size_t i = 0; i < count(); ++i) sum += figures_.dedicated[i].time_s / whole(i).time_s;
    return sum;
  }
  [[nodiscard]] double fairness_of_worst_phase(double least_s) const { return fairness_furthest(phases_, least_s); }
  [[nodiscard]] const Crowd& crowd(std::size_t i) const { return crowds_[i]; }

 private:
  [[nodiscard]] double part_done() const {
    const Progress& job = figures_.run.jobs.front();
    const std::uint64_t done = std::clamp<std::uint64_t>(job.done, 1, std::max<std::uint64_t>(job.wanted, 1));
    return static_cast<double>(done) / static_cast<double>(std::max<std::uint64_t>(job.wanted, 1));
  }
  template <typename Value>
  [[nodiscard]] double largest(Value value) const {
    double most = 0;
    for (std::size_t i = 0; i < count(); ++i) most = std::max(most, value(i));
    return most;
  }
  const CoschedFigures& figures_;
  std::vector<Crowd> crowds_;
  std::vector<Phase> phases_;  // where competitors come and go
};

class Line {
 public:
  Line(const CoschedSubject& subject, const CoschedConfig& config, const std::vector<CoschedFigures>& repeats,
       const Options& options, const std::vector<CoschedFigures>* vanilla)
      : subject_(subject), config_(config), repeats_(repeats), options_(options) {
    for (const CoschedFigures& figures : repeats) jobs_.emplace_back(subject, config, figures, options.cpus);
    if (vanilla == nullptr) return;
    for (const CoschedFigures& figures : *vanilla) vanilla_.emplace_back(subject, config, figures, options.cpus);
  }

  nlohmann::json make() {
    name();
    add("time_s", [](const Jobs& jobs) { return jobs.time_s(); });
    add("cpu_s", [](const Jobs& jobs) { return jobs.cpu_s(); });
    add("fairness", [](const Jobs& jobs) { return jobs.fairness_furthest_from_1(); });
    add("to_ideal", [](const Jobs& jobs) { return jobs.to_ideal(); });
    against_vanilla();
    if (!repeats_.back().run.phases.empty()) churn();
    if (subject_.jobs.size() > 1) two_jobs();
    alone();
    outside();
    others();
    if (config_.under == "swapd") swapd();
    for (const Jobs& jobs : jobs_) line_["times_s"].push_back(rounded(jobs.time_s()));
    return std::move(line_);
  }

 private:
  void name() {
    const JobPlan& first = subject_.jobs.front();
    const JobPlan& last = subject_.jobs.back();
    line_ = {{"workload", options_.workload},
             {"mechanism", options_.cosched.test},
             {"program", first.program == last.program ? first.program : first.program + "+" + last.program},
             {"under", config_.under},
             {"observer", repeats_.back().run.observer},
             {"hogs", config_.competitors},
             {"cpus", options_.cpus},
             {"iterations", first.rounds},
             {"pattern", first.pattern},
             {"receive", first.receive},
             {"competitors", config_.competitors},
             {"ranks", first.ranks},
             {"grain_us", first.work_us},
             {"pinned", first.pinned},
             {"nodes", first.on_nodes ? first.ranks : 1},
             {"sessions", options_.split ? "split" : "same"},
             {"repeat", repeats_.size()}};
    if (first.receive == "spin-block") line_["spin_us"] = first.spin_us;
    if (std::ranges::any_of(jobs_, [](const Jobs& jobs) { return jobs.cut(); })) line_["cut"] = true;
  }
  void against_vanilla() {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < std::min(jobs_.size(), vanilla_.size()); ++i)
      if (const double plain = vanilla_[i].to_ideal(); plain > 0) ratios.push_back(jobs_[i].to_ideal() / plain);
    if (!ratios.empty()) add_values("to_vanilla", ratios);
  }
  // A phase that the run's end has cut short tells little.
  void churn() {
    line_["churn_s"] = options_.cosched.churn_s;
    if (options_.cosched.churn_nice != 0) line_["churn_nice"] = options_.cosched.churn_nice;
    add("fairness_worst_phase",
        [&](const Jobs& jobs) { return jobs.fairness_of_worst_phase(options_.cosched.churn_s / 2); });
  }
  void two_jobs() {
    add("throughput", [](const Jobs& jobs) { return jobs.throughput(); });
    for (std::size_t i = 0; i < subject_.jobs.size(); ++i) {
      std::vector<double> values;
      for (const Jobs& jobs : jobs_) values.push_back(jobs.fairness_of(i));
      line_["fairness_each"].push_back(rounded(median(values)));
    }
  }
  void alone() {
    std::vector<double> time, cpu;
    for (const CoschedFigures& figures : repeats_) {
      time.push_back(figures.dedicated.front().time_s);
      cpu.push_back(figures.dedicated.front().cpu_s);
    }
    line_["dedicated_s"] = rounded(median(time));
    line_["dedicated_cpu_s"] = rounded(median(cpu));
  }
  // Share that neither the jobs nor their competitors used: idle CPUs, and other programs at work on the machine.
  void outside() {
    std::vector<double> shares;
    for (const CoschedFigures& figures : repeats_) {
      double used_s = figures.run.competitors_cpu_s;
      for (const Progress& job : figures.run.jobs) used_s += job.cpu_s;
      shares.push_back(1 - share_of_cpus(used_s, figures.run.window_s, options_.cpus));
    }
    add_values("outside_share", shares);
  }
  void others() {
    if (config_.competitors == 0) return;
    std::vector<double> share, lost_cpu, lost_runs;
    for (std::size_t i = 0; i < repeats_.size(); ++i) {
      const CoschedFigures& figures = repeats_[i];
      const SceneRun& run = figures.run;
      share.push_back(share_of_cpus(run.competitors_cpu_s, run.window_s, options_.cpus));
      const Crowd& crowd = jobs_[i].crowd(0);
      lost_cpu.push_back(lost(run.competitors_cpu_s / run.window_s, figures.serial_alone_cpu, crowd));
      lost_runs.push_back(lost(run.serial_runs / run.window_s, figures.serial_alone_rate, crowd));
    }
    add_values("competitors_share", share);
    if (options_.cosched.test != "mixed") return;
    add_values("serial_lost", lost_cpu);
    add_values("serial_runs_lost", lost_runs);
  }
  void swapd() {
    std::vector<double> share;
    for (const CoschedFigures& figures : repeats_)
      share.push_back(share_of_cpus(figures.run.swapd_cpu_s, figures.run.window_s, 1));
    add_values("swapd_cpu_share", share);
    line_.update(repeats_.back().run.counters);
  }
  template <typename Value>
  void add(const std::string& name, Value value) {
    std::vector<double> values;
    for (const Jobs& jobs : jobs_) values.push_back(value(jobs));
    add_values(name, values);
  }
  void add_values(const std::string& name, const std::vector<double>& values) {
    line_[name] = rounded(median(values));
    add_interval(line_, name, values);
  }

  const CoschedSubject& subject_;
  const CoschedConfig& config_;
  const std::vector<CoschedFigures>& repeats_;
  const Options& options_;
  std::vector<Jobs> jobs_, vanilla_;
  nlohmann::json line_;
};

}  // namespace

nlohmann::json cosched_line(const CoschedSubject& subject, const CoschedConfig& config,
                            const std::vector<CoschedFigures>& repeats, const Options& options,
                            const std::vector<CoschedFigures>* vanilla) {
  return Line(subject, config, repeats, options, vanilla).make();
}

}  // namespace swapd::bench
