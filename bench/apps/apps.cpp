// apps: what programs that need no help lose under swapd's care, measured with their own load generators.
//
// Under seccomp, and of programs that end by themselves (build, ffmpeg), each run starts the server anew, under swapd
// or not; the runs are interleaved, and compared in pairs. Under bpf, which can take a program on and leave it again,
// swapd comes and goes while one server is under one load (apps_turns.cpp); windows with it and without are compared in
// pairs.
//
// With --important client the load generator is the important one, hogs take the server's CPU time, and the lines are
// those of rates (harness/rates.h): what a donation is worth, and what it costs.
#include "apps/apps.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "apps/apps_runs.h"
#include "harness/usage.h"
#include "harness/workload.h"
#include "sys/bpf/bpf_run_stats.h"

namespace swapd::bench {

namespace {

double reaped_cpu_s() {
  rusage used{};
  ::getrusage(RUSAGE_CHILDREN, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

class Bench {
 public:
  Bench(const Context& context, const std::string& dir) : context_(context), dir_(dir) {}

  Status prepare(const std::string& name) {
    auto app = make_app(name);
    const std::string place = dir_ + "/" + name;
    if (::mkdir(place.c_str(), 0711) != 0) return errno_error(place);
    if (const auto done = app->prepare(place); !done) return Error(done.error()).in(name);
    apps_[name] = std::move(app);
    // What a generator that counts requests has to be told, and what warms the machine up.
    const auto first = run(name, "vanilla", 1);
    if (!first) return Error(first.error()).in(name);
    guesses_[name] = first->throughput;
    return Done{};
  }

  Result<Turns> turns(const std::string& name, int hogs) {
    return take_turns(context_, *apps_.at(name), guesses_[name], hogs);
  }

  // The server is started anew for each.
  Result<Turns> runs_anew(const std::string& name, int hogs) {
    const Options& options = context_.options;
    Turns turns;
    for (std::size_t repeat = 0; repeat < static_cast<std::size_t>(options.repeat); ++repeat) {
      for (std::size_t i = 0; i < options.under.size(); ++i) {
        const std::string& under = options.under[(i + repeat) % options.under.size()];
        auto one = run(name, under, options.seconds, hogs);
        if (!one) return Error(one.error()).in(under);
        turns.runs[under].push_back(*one);
      }
    }
    return turns;
  }

  Result<Run> run(const std::string& name, const std::string& under, double seconds, int hogs = 0) {
    const App& app = *apps_.at(name);
    auto dir = TempDir::create();
    if (!dir) return dir.error();
    std::optional<Daemon> daemon;
    std::vector<std::string> front;
    if (under == "swapd") {
      auto started = Daemon::start(context_.options, dir->path());
      if (!started) return started.error();
      daemon.emplace(std::move(*started));
      front = {context_.options.swapctl, "--socket", daemon->socket(), "run", "--"};
    }
    auto server = start_server(context_, app, front, dir->path() + "/server.log");
    if (!server) return server.error();
    auto crowd = start_free_hogs(hogs, {context_.cpus, context_.options.split, longest(seconds)});
    Result<Run> result =
        crowd ? load(app, guesses_[name], front, seconds, {server->pid(), daemon ? &*daemon : nullptr, *crowd})
              : Result<Run>(crowd.error());
    if (crowd) end_all(*crowd);
    server->signal(app.stop_signal());
    const auto ended = server->wait(std::chrono::seconds(20));
    if (result && !ended) return Error(ended.error()).in("ending the server");
    if (daemon) {
      const auto stopped = daemon->stop();
      if (result && !stopped) return stopped.error();
    }
    return result;
  }

 private:
  static std::chrono::seconds longest(double seconds) { return std::chrono::seconds(60 + std::llround(10 * seconds)); }
  struct Beside {
    pid_t server;
    const Daemon* daemon;  // null: none
    const std::vector<Child>& hogs;
  };
  Result<Run> load(const App& app, double guess, const std::vector<std::string>& front, double seconds,
                   const Beside& beside) const {
    const auto meter = Meter::start(beside.daemon, beside.hogs);
    if (!meter) return meter.error();
    const Usage usage([&] { return tree_cpu_s(beside.server) + reaped_cpu_s(); }, beside.daemon);
    int status = 0;
    Spawn generator = app_spawn(context_, front, app.load(seconds, guess));
    if (client_is_important(context_.options)) make_important(generator, context_.options);
    const auto output = run_for_output(generator, status, longest(seconds));
    if (!output) return output.error();
    if (status != 0) return Error(EPROTO, "the load generator ended with " + wait_text(status));
    const auto throughput = app.throughput(*output);
    if (!throughput) return throughput.error();
    Run run{.throughput = *throughput};
    usage.add_to(run);
    const auto cost = meter->stop();
    if (!cost) return cost.error();
    run.cost = *cost;
    return run;
  }

  const Context& context_;
  std::string dir_;
  std::map<std::string, std::unique_ptr<App>> apps_;
  std::map<std::string, double> guesses_;
};

using Runs = std::map<std::pair<std::string, std::string>, std::vector<Run>>;  // by app and under

std::vector<double> each(const std::vector<Run>& runs, double Run::*member) {
  std::vector<double> values;
  values.reserve(runs.size());
  for (const Run& run : runs) values.push_back(run.*member);
  return values;
}

// Throughput of all repeats, and against vanilla's of the same repeat.
void add_figures(Row& row, Runs& runs) {
  const auto& own = runs[{row.setup.mechanism, row.setup.under}];
  const auto throughputs = each(own, &Run::throughput);
  row.extra.update({{"throughput", rounded(median(throughputs))},
                    {"throughput_from", rounded(percentile(throughputs, 0))},
                    {"throughput_to", rounded(percentile(throughputs, 100))},
                    {"load_cpu_s", rounded(median(each(own, &Run::load_cpu_s)))}});
  if (row.setup.under != "swapd") return;
  row.extra["swapd_cpu_share"] = rounded(median(each(own, &Run::swapd_share)));
  const auto& plain = runs[{row.setup.mechanism, "vanilla"}];
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(own.size(), plain.size()); ++i)
    ratios.push_back(own[i].throughput / plain[i].throughput);
  if (ratios.empty()) return;
  row.extra.update({{"ratio", rounded(median(ratios))},
                    {"ratio_from", rounded(percentile(ratios, 0))},
                    {"ratio_to", rounded(percentile(ratios, 100))}});
  add_interval(row.extra, "ratio", ratios);
}

Setup setup_of(const std::string& app, const Options& options) {
  Setup setup{.mechanism = app, .iterations = 1};
  setup.extra["seconds"] = options.seconds;
  if (!options.history.empty()) setup.extra["history"] = options.history;
  if (!options.placement.empty()) setup.extra["placement"] = options.placement;
  if (!options.important.empty()) setup.extra["important"] = options.important;
  return setup;
}

Result<std::vector<Row>> measure_runs(Bench& bench, Runs& runs, const Options& options) {
  std::vector<Case> cases;
  for (const std::string& app : options.apps) {
    for (Setup& one : spread(setup_of(app, options), options)) {
      cases.push_back({std::move(one), [&](const Setup& s) -> Result<Measured> {
                         auto run = bench.run(s.mechanism, s.under, options.seconds);
                         if (!run) return run.error();
                         runs[{s.mechanism, s.under}].push_back(*run);
                         return Measured{.samples_ms = {1000 / run->throughput}};
                       }});
    }
  }
  return measure(cases, options.repeat, options.progress);
}

Result<std::vector<Row>> measure_turns(Bench& bench, Runs& runs, const Options& options) {
  std::vector<Row> rows;
  for (const std::string& app : options.apps) {
    if (options.progress) std::fprintf(stderr, "swapbench: %s, in turns\n", app.c_str());
    auto turns = bench.turns(app, 0);
    if (!turns) return Error(turns.error()).in(app);
    for (auto& [under, of_it] : turns->runs) runs[{app, under}] = std::move(of_it);
    for (Setup& setup : spread(setup_of(app, options), options)) {
      Row row{.setup = std::move(setup)};
      for (const Run& run : runs[{app, row.setup.under}]) {
        row.samples.push_back({1000 / run.throughput});
        row.repeats.push_back(summarize(row.samples.back()));
      }
      row.median = median_of(row.repeats);
      if (row.setup.under == "swapd") row.extra["programs_cpu_share"] = rounded(turns->programs_share);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

Result<std::vector<nlohmann::json>> measure_important_clients(Bench& bench, const Options& options) {
  std::vector<RateRow> rows;
  for (const std::string& app : options.apps) {
    for (const int hogs : options.hogs) {
      if (options.progress) std::fprintf(stderr, "swapbench: %s, %d hogs\n", app.c_str(), hogs);
      const auto turns = in_turns(options) ? bench.turns(app, hogs) : bench.runs_anew(app, hogs);
      if (!turns) return Error(turns.error()).in(app);
      for (const std::string& under : options.under) {
        RateRow row{.setup = setup_of(app, options), .runs = {}};
        row.setup.under = under;
        row.setup.hogs = hogs;
        for (const Run& run : turns->runs.at(under)) row.runs.push_back({run.throughput, run.cost});
        if (under == "swapd" && in_turns(options)) row.extra["programs_cpu_share"] = rounded(turns->programs_of_a_cpu);
        rows.push_back(std::move(row));
      }
    }
  }
  return rate_lines(rows, options, vanilla_of_same_hogs);
}

}  // namespace

Spawn app_spawn(const Context& context, std::vector<std::string> front, const std::vector<std::string>& words) {
  Spawn spawn;
  spawn.argv = std::move(front);
  spawn.argv.insert(spawn.argv.end(), words.begin(), words.end());
  spawn.cpus = context.cpus;
  spawn.own_session = context.options.split;
  return spawn;
}

Result<Child> start_server(const Context& context, const App& app, const std::vector<std::string>& front,
                           const std::string& log) {
  Spawn wanted = app_spawn(context, front, app.server());
  wanted.output = wanted.errors = log;
  wanted.death_signal = app.stop_signal();
  auto server = Child::start(wanted);
  if (!server) return server;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!app.answers()) {
    const auto ended = server->wait(std::chrono::milliseconds(20));
    if (ended) return Error(ECHILD, "the server ended (" + wait_text(*ended) + ")");
    if (interrupted()) return Error(EINTR, "starting the server");
    if (std::chrono::steady_clock::now() > until) return Error(ETIMEDOUT, "the server does not answer");
  }
  return server;
}

Usage::Usage(std::function<double()> load_cpu_s, const Daemon* daemon)
    : load_cpu_s_(std::move(load_cpu_s)), daemon_(daemon), load_(load_cpu_s_()) {
  if (daemon_ == nullptr) return;
  swapd_ = process_cpu_s(daemon_->pid());
  programs_ = programs_s();
}

double Usage::programs_s() const {
  double sum = 0;
  for (const auto& cost : sys::bpf_costs(daemon_->pid())) sum += static_cast<double>(cost.total.count());
  return sum / 1e9;
}

void Usage::add_to(Run& run) const {
  run.load_cpu_s = load_cpu_s_() - load_;
  if (daemon_ == nullptr || run.load_cpu_s <= 0) return;
  run.swapd_share = (process_cpu_s(daemon_->pid()) - swapd_) / run.load_cpu_s;
  run.programs_share = (programs_s() - programs_) / run.load_cpu_s;
}

bool client_is_important(const Options& options) { return options.important == "client"; }

// It has its priority in each configuration, and its group's where it has a session of its own.
void make_important(Spawn& generator, const Options& options) {
  generator.attr = options.client;
  if (options.split && !generator.attr->realtime()) generator.autogroup_nice = generator.attr->nice;
}

bool in_turns(const Options& options) {
  if (std::ranges::any_of(options.apps, is_batch)) return false;
  if (client_is_important(options)) return options.observe == "bpf";
  return options.observe == "bpf" && std::ranges::find(options.under, "swapd") != options.under.end();
}

Result<std::vector<nlohmann::json>> run_apps(const Context& context) {
  const Options& options = context.options;
  auto dir = TempDir::create();
  if (!dir) return dir.error();
  if (::chmod(dir->path().c_str(), 0711) != 0) return errno_error(dir->path());
  Bench bench(context, dir->path());
  for (const std::string& app : options.apps)
    if (const auto prepared = bench.prepare(app); !prepared) return prepared.error();
  if (client_is_important(options)) return measure_important_clients(bench, options);
  Runs runs;
  auto rows = in_turns(options) ? measure_turns(bench, runs, options) : measure_runs(bench, runs, options);
  if (!rows) return rows.error();
  for (Row& row : *rows) add_figures(row, runs);
  return lines(*rows, options);
}

// All processes are other programs.
Status apps_role(Role&) { return Error(EINVAL, "apps has no roles"); }

}  // namespace swapd::bench
