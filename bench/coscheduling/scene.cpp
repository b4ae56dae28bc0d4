#include "coscheduling/scene.h"

#include <signal.h>

#include <cmath>

#include "coscheduling/node_network.h"
#include "coscheduling/serial_load.h"
#include "harness/usage.h"

namespace swapd::bench {
namespace {

using Clock = std::chrono::steady_clock;  // CLOCK_MONOTONIC, as the ranks'

constexpr std::chrono::milliseconds freeze_turn{100}, look{20};
constexpr unsigned serial_settles_us = 300'000;
constexpr double spare_s = 60;  // beyond a run's limit, until what is left ends by itself

double seconds_since(std::int64_t began_ns) { return static_cast<double>(job_now_ns() - began_ns) / 1e9; }

class Scene {
 public:
  Scene(const Context& context, const ScenePlan& plan) : context_(context), plan_(plan) {}
  ~Scene() { end_all(competitors_); }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  Result<SceneRun> run() {
    for (const auto step : {&Scene::make_network, &Scene::start_swapd, &Scene::start_jobs, &Scene::start_competitors})
      if (Status done = (this->*step)(); !done) return done.error();
    look_at(before_);
    const std::int64_t began = job_now_ns();
    for (Job& job : jobs_) job.let_go();
    if (Status ran = let_run(began); !ran) return ran.error();
    SceneRun run;
    look_at(run);
    run.window_s = seconds_since(began);
    if (!plan_.turns.empty()) end_phase();
    run.phases = std::move(phases_);
    run.competitors_cpu_s -= before_.competitors_cpu_s;
    run.serial_runs -= before_.serial_runs;
    run.swapd_cpu_s -= before_.swapd_cpu_s;
    for (std::size_t i = 0; i < jobs_.size(); ++i) run.jobs[i] = progress_of(i, run, began);
    return finish(std::move(run));
  }

 private:
  Status make_network() {
    if (plan_.jobs.empty() || !plan_.jobs.front().on_nodes) return Done{};
    auto made = NodeNetwork::make(context_.cpus);
    if (!made) return made.error();
    network_.emplace(std::move(*made));
    return Done{};
  }
  [[nodiscard]] std::vector<JobNode> nodes() const {
    std::vector<JobNode> nodes(network_ ? NodeNetwork::nodes : 1);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (network_) nodes[i].network = network_->of(i);
      if (i < daemons_.size()) nodes[i].daemon = &daemons_[i];
    }
    return nodes;
  }
  Status start_swapd() {
    if (plan_.under != "swapd") return Done{};
    if (!network_) return start_one_swapd({});
    for (std::size_t node = 0; node < NodeNetwork::nodes; ++node)
      if (Status one = start_one_swapd({.cpus = {context_.cpus.at(node)}, .network = network_->of(node)}); !one)
        return one;
    return Done{};
  }
  Status start_one_swapd(const DaemonPlace& place) {
    auto dir = TempDir::create();
    if (!dir) return dir.error();
    auto started = Daemon::start(context_.options, dir->path(), place);
    if (!started) return started.error();
    dirs_.push_back(std::move(*dir));
    daemons_.push_back(std::move(*started));
    return Done{};
  }
  Status start_jobs() {
    for (const JobPlan& plan : plan_.jobs) {
      auto job = Job::start(context_, plan, nodes());
      if (!job) return job.error();
      jobs_.push_back(std::move(*job));
    }
    for (Job& job : jobs_)
      if (Status ready = job.await_ready(std::chrono::seconds(30)); !ready) return ready;
    return Done{};
  }
  Status start_competitors() {
    const std::chrono::seconds at_most(std::llround(plan_.limit_s + spare_s));
    if (!plan_.turns.empty()) return start_turn(plan_.turns.front());
    if (plan_.competitors == 0) return Done{};
    if (!plan_.serial.empty()) return start_serial(at_most);
    if (!daemons_.empty() && context_.options.cosched.managed_competitors) return start_managed(at_most);
    auto hogs = start_hogs(plan_.competitors, {context_.cpus, context_.options.split, at_most});
    if (!hogs) return hogs.error();
    competitors_ = std::move(*hogs);
    return Done{};
  }
  Status start_turn(const Rivals& rivals) {
    const std::chrono::seconds at_most(std::llround(plan_.limit_s + spare_s));
    if (rivals.competitors > 0) {
      auto hogs = start_hogs(rivals.competitors, {context_.cpus, context_.options.split, at_most, rivals.nice});
      if (!hogs) return hogs.error();
      competitors_ = std::move(*hogs);
    }
    phase_began_ns_ = job_now_ns();
    phase_began_cpu_s_ = jobs_.empty() ? 0 : jobs_.front().cpu_s();
    return Done{};
  }
  void end_phase() {
    const double cpu_s = jobs_.empty() ? 0 : jobs_.front().cpu_s() - phase_began_cpu_s_;
    phases_.push_back({.rivals = plan_.turns[phases_.size() % plan_.turns.size()],
                       .wall_s = seconds_since(phase_began_ns_),
                       .cpu_s = cpu_s});
  }
  Status next_turn() {
    end_phase();
    for (const Child& competitor : competitors_) ended_cpu_s_ += process_cpu_s(competitor.pid());
    end_all(competitors_);
    competitors_.clear();
    return start_turn(plan_.turns[phases_.size() % plan_.turns.size()]);
  }
  Status start_serial(std::chrono::seconds at_most) {
    auto load = SerialLoad::start(plan_.serial, plan_.competitors, context_.cpus, context_.options.split, at_most);
    if (!load) return load.error();
    serial_.emplace(std::move(*load));
    ::usleep(serial_settles_us);
    return Done{};
  }
  Status start_managed(std::chrono::seconds at_most) {
    for (int i = 0; i < plan_.competitors; ++i) {
      for (const int cpu : context_.cpus) {
        Spawn spawn;
        spawn.own_session = context_.options.split;
        spawn.argv = {context_.options.swapctl,
                      "--socket",
                      daemons_.front().socket(),
                      "run",
                      "--filter",
                      "--",
                      context_.self,
                      "--cosched-competitor",
                      std::to_string(cpu),
                      std::to_string(at_most.count())};
        auto child = Child::start(spawn);
        if (!child) return child.error();
        competitors_.push_back(std::move(*child));
      }
    }
    // Until they compete, and are no launchers any more.
    for (const Child& child : competitors_) {
      const std::int64_t began = job_now_ns();
      while (process_cpu_s(child.pid()) < 0.02) {
        if (interrupted()) return Error(EINTR, "interrupted");
        if (seconds_since(began) > 10) return Error(ETIMEDOUT, "starting competitors");
        ::usleep(10'000);
      }
    }
    return Done{};
  }
  // Until all are done, or the limit.
  Status let_run(std::int64_t began) {
    const bool frozen = plan_.under == "freeze";
    std::size_t turn = 0;
    auto next_freeze = Clock::now();
    for (;;) {
      if (frozen && Clock::now() >= next_freeze) {
        for (std::size_t i = 0; i < jobs_.size(); ++i) jobs_[i].signal(i == turn % jobs_.size() ? SIGCONT : SIGSTOP);
        ++turn;
        next_freeze += freeze_turn;
      }
      bool all = true;
      for (Job& job : jobs_) {
        const auto done = job.await_done(look / static_cast<int>(jobs_.size()));
        if (!done) return done.error();
        all = all && *done;
      }
      if (jobs_.empty()) ::usleep(std::chrono::microseconds(look).count());
      if ((all && !jobs_.empty()) || seconds_since(began) >= plan_.limit_s) return Done{};
      if (!plan_.turns.empty() && seconds_since(phase_began_ns_) >= plan_.turn_s)
        if (Status turned = next_turn(); !turned) return turned;
    }
  }
  // The jobs' progress here has what they have by now.
  void look_at(SceneRun& run) const {
    run.jobs.clear();
    for (const Job& job : jobs_)
      run.jobs.push_back({.cpu_s = job.cpu_s(), .done = job.rounds(), .sessions = job.sessions_apart()});
    run.competitors_cpu_s = ended_cpu_s_;
    for (const Child& competitor : competitors_) run.competitors_cpu_s += process_cpu_s(competitor.pid());
    if (serial_) {
      run.competitors_cpu_s = serial_->cpu_s();
      run.serial_runs = serial_->runs();
    }
    for (const Daemon& daemon : daemons_) run.swapd_cpu_s += tree_cpu_s(daemon.pid());
  }
  Progress progress_of(std::size_t i, const SceneRun& run, std::int64_t began) const {
    Progress progress = run.jobs[i];
    progress.cpu_s -= before_.jobs[i].cpu_s;
    progress.wanted = plan_.jobs[i].rounds;
    progress.wall_s =
        progress.done >= progress.wanted ? static_cast<double>(jobs_[i].ended_ns() - began) / 1e9 : run.window_s;
    return progress;
  }
  Result<SceneRun> finish(SceneRun run) {
    end_all(competitors_);
    serial_.reset();
    for (const Daemon& daemon : daemons_) {
      const auto status = daemon.ask({"status"});
      if (!status) return status.error();
      run.observer = status->value("observer", std::string("none"));
      for (const char* field : {"events_lost", "donations_total", "jobs"})
        if (status->contains(field)) add_to(run.counters[field], (*status)[field]);
    }
    for (Job& job : jobs_) job.end();
    for (Daemon& daemon : daemons_)
      if (Status stopped = daemon.stop(); !stopped) return stopped.error();
    return run;
  }
  // Counts of several swapds become one, and lists one list.
  static void add_to(nlohmann::json& sum, const nlohmann::json& one) {
    if (sum.is_null()) {
      sum = one;
    } else if (one.is_array()) {
      sum.insert(sum.end(), one.begin(), one.end());
    } else {
      sum = sum.get<std::int64_t>() + one.get<std::int64_t>();
    }
  }

  const Context& context_;
  const ScenePlan& plan_;
  std::optional<NodeNetwork> network_;
  std::vector<TempDir> dirs_;
  std::vector<Daemon> daemons_;  // one, or one of each node; they outlive the jobs
  std::vector<Job> jobs_;
  std::vector<Child> competitors_;
  std::optional<SerialLoad> serial_;
  SceneRun before_;
  std::vector<ScenePhase> phases_;  // that have ended
  std::int64_t phase_began_ns_ = 0;
  double phase_began_cpu_s_ = 0;
  double ended_cpu_s_ = 0;  // of competitors that are gone
};

}  // namespace

Result<SceneRun> run_scene(const Context& context, const ScenePlan& plan) {
  Scene scene(context, plan);
  return scene.run();
}

}  // namespace swapd::bench
