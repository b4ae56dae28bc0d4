#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <set>

#include "apps/apps_runs.h"
#include "harness/usage.h"
#include "sys/bpf/bpf_run_stats.h"
#include "sys/procfs/procfs.h"
#include "sys/sched/scheduler.h"

namespace swapd::bench {
namespace {

using SteadyTime = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds drawn_each{50}, pinned{2};
constexpr double seconds_between_windows = 5;            // starting and stopping swapd
constexpr double seconds_to_spare = 30, max_faster = 2;  // than guessed

Status sleep_for(double seconds) {
  const auto until = SteadyTime::now() + std::chrono::duration<double>(seconds);
  while (SteadyTime::now() < until) {
    if (interrupted()) return Error(EINTR, "interrupted");
    ::usleep(10'000);
  }
  return Done{};
}

void add_tree(pid_t pid, std::vector<pid_t>& threads) {
  const sys::Procfs procfs;
  for (const pid_t tid : procfs.threads(pid).value_or({})) threads.push_back(tid);
  for (const pid_t child : procfs.children(pid).value_or({})) add_tree(child, threads);
}

// Puts threads on CPUs drawn by lot, for a moment in which most of them sleep and wake, and leaves them to the
// scheduler again. The windows of a pair have the same lots.
class Lots {
 public:
  Lots(std::vector<pid_t> threads, const std::vector<int>& cpus, unsigned pair)
      : threads_(std::move(threads)), cpus_(cpus), all_(cpu_set_of(cpus)), random_(pair + 1) {}
  void draw() {
    for (const pid_t thread : threads_)
      (void)scheduler_.set_affinity(thread, cpu_set_of({cpus_[random_() % cpus_.size()]}));
    ::usleep(std::chrono::microseconds(pinned).count());
    for (const pid_t thread : threads_) (void)scheduler_.set_affinity(thread, all_);
  }

 private:
  sys::LinuxScheduler scheduler_;
  std::vector<pid_t> threads_;
  std::vector<int> cpus_;
  cpu_set_t all_;
  std::minstd_rand random_;
};

// A thread that is gone needs nothing.
Status set_if_there(pid_t tid, const SchedAttr& attr) {
  Status set = sys::LinuxScheduler().set(tid, attr);
  return set || set.error().gone() ? Status(Done{}) : set;
}

// Gives all threads of a server what a donation could give them at best, and takes it back. A server whose processes
// have sessions of their own (PostgreSQL's have) gets the nice value for their autogroups too, without which it would
// mean nothing.
class ByHand {
 public:
  explicit ByHand(pid_t server) : server_(server) {}
  Status give(const SchedAttr& client) {
    SchedAttr attr = by_hand(client);
    attr.reset_on_fork = false;  // processes that the server starts meanwhile have it as well
    return set_all(attr, client.realtime() ? 0 : client.nice);
  }
  Status take_back() { return set_all(SchedAttr{}, 0); }

 private:
  Status set_all(const SchedAttr& attr, int autogroup_nice) const {
    std::vector<pid_t> threads;
    add_tree(server_, threads);
    const sys::Procfs procfs;
    const pid_t own_session = ::getsid(0);
    for (const pid_t thread : threads) {
      if (Status set = set_if_there(thread, attr); !set) return Error(set.error()).in("setting the server by hand");
      const auto stat = procfs.stat(thread);
      if (!stat || stat->session == own_session) continue;
      std::ofstream("/proc/" + std::to_string(thread) + "/autogroup") << autogroup_nice;
    }
    return Done{};
  }
  pid_t server_;
};

class Stage {
 public:
  Stage(const Context& context, App& app, std::string dir, int hogs)
      : context_(context),
        app_(app),
        dir_(std::move(dir)),
        hogs_wanted_(hogs),
        server_cpus_(context.cpus),
        load_cpus_(context.cpus) {
    if (context.options.placement != "apart" || context.cpus.size() < 2) return;
    load_cpus_ = {context.cpus.front()};
    server_cpus_.erase(server_cpus_.begin());
  }
  ~Stage() {
    end_all(hogs_);
    load_.kill();
    server_.signal(app_.stop_signal());
    (void)server_.wait(std::chrono::seconds(20));
  }
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  Status open(double seconds, double guess) {
    auto server = start_server(on(server_cpus_), app_, {}, dir_ + "/server.log");
    if (!server) return server.error();
    server_ = std::move(*server);
    Spawn generator =
        app_spawn(on(load_cpus_), {}, app_.live_load(seconds, max_faster * guess, dir_ + "/transactions"));
    generator.output = generator.errors = dir_ + "/load.log";
    if (client_is_important(context_.options)) make_important(generator, context_.options);
    auto load = Child::start(generator);
    if (!load) return load.error();
    load_ = std::move(*load);
    if (context_.options.important == "sleeper") {
      Spawn idler = app_spawn(on(load_cpus_), {}, {"/bin/sleep", "infinity"});
      idler.attr = context_.options.client;
      auto started = Child::start(idler);
      if (!started) return started.error();
      beside_ = std::move(*started);
    }
    const std::chrono::seconds at_most(std::llround(seconds) + 60);
    auto hogs = start_free_hogs(hogs_wanted_, {context_.cpus, context_.options.split, at_most});
    if (!hogs) return hogs.error();
    hogs_ = std::move(*hogs);
    return sleep_for(1);
  }
  // A window without swapd comes after swapd has come and gone: starting it moves the load's threads from CPU to CPU,
  // which then stays for a while.
  Result<Run> visit(const std::string& under, unsigned turn) {
    if (!swapd_comes()) return alone(under, turn);
    const auto state = TempDir::create();  // of its own: it remembers nothing
    if (!state) return state.error();
    auto daemon = Daemon::start(context_.options, state->path());
    if (!daemon) return daemon.error();
    for (const Child* one : {&server_, &load_, &beside_})
      if (one->running())
        if (Status taken = daemon->order({"enroll", "--tree", std::to_string(one->pid())}); !taken)
          return taken.error();
    if (under == "swapd") {
      auto run = window(&*daemon, turn);
      if (Status stopped = daemon->stop(); run && !stopped) return stopped.error();
      return run;
    }
    if (Status stopped = daemon->stop(); !stopped) return stopped.error();
    return alone(under, turn);
  }

 private:
  [[nodiscard]] Context on(const std::vector<int>& cpus) const {
    return {context_.options, context_.work, cpus, context_.self};
  }
  [[nodiscard]] bool swapd_comes() const {
    return std::ranges::find(context_.options.under, "swapd") != context_.options.under.end();
  }
  Result<Run> alone(const std::string& under, unsigned turn) {
    if (under != "hand-set") return window(nullptr, turn);
    ByHand by_hand(server_.pid());
    if (Status given = by_hand.give(context_.options.client); !given) return given.error();
    auto run = window(nullptr, turn);
    if (Status taken = by_hand.take_back(); !taken) return taken.error();
    return run;
  }
  Status pass(double seconds, unsigned pair) const {
    if (context_.options.placement != "drawn" || context_.cpus.size() < 2) return sleep_for(seconds);
    std::vector<pid_t> threads;
    for (const Child* one : {&server_, &load_}) add_tree(one->pid(), threads);
    Lots lots(std::move(threads), context_.cpus, pair);
    const auto until = SteadyTime::now() + std::chrono::duration<double>(seconds);
    while (SteadyTime::now() < until) {
      lots.draw();
      const std::chrono::duration<double> left = until - SteadyTime::now();
      if (Status slept = sleep_for(std::min(left, std::chrono::duration<double>(drawn_each)).count()); !slept)
        return slept;
    }
    return Done{};
  }
  Result<Run> window(const Daemon* daemon, unsigned turn) {
    if (Status waited = sleep_for(context_.options.settle_s); !waited) return waited.error();
    const auto before = app_.progress();
    if (!before) return before.error();
    const auto meter = Meter::start(daemon, hogs_);
    if (!meter) return meter.error();
    const Usage usage([this] { return tree_cpu_s(server_.pid()) + tree_cpu_s(load_.pid()); }, daemon);
    if (Status waited = pass(context_.options.seconds, turn); !waited) return waited.error();
    Run run;
    usage.add_to(run);
    const auto cost = meter->stop();
    if (!cost) return cost.error();
    run.cost = *cost;
    const auto after = app_.progress();
    if (!after) return after.error();
    const bool ended = load_.wait(std::chrono::milliseconds(0)).ok();
    if (ended || after->at_s <= before->at_s || after->requests <= before->requests)
      return Error(EPROTO, "the load has come to a stop");
    run.throughput = (after->requests - before->requests) / (after->at_s - before->at_s);
    return run;
  }

  const Context& context_;
  App& app_;
  std::string dir_;
  int hogs_wanted_;
  std::vector<int> server_cpus_, load_cpus_;
  Child server_, load_, beside_;
  std::vector<Child> hogs_;
};

}  // namespace

Result<Turns> take_turns(const Context& context, App& app, double guess, int hogs) {
  auto dir = TempDir::create();
  if (!dir) return dir.error();
  const Options& options = context.options;
  const std::size_t kinds = options.under.size();
  const double a_window = options.seconds + options.settle_s + seconds_between_windows;
  const double in_all = (options.repeat + 1) * static_cast<double>(kinds) * a_window + seconds_to_spare;
  Stage stage(context, app, dir->path(), hogs);
  if (Status open = stage.open(in_all, guess); !open) return open.error();
  Turns turns;
  for (unsigned turn = 0; turn < static_cast<unsigned>(options.repeat); ++turn) {
    for (std::size_t i = 0; i < kinds; ++i) {
      const std::string& under = options.under[(i + turn) % kinds];
      auto run = stage.visit(under, turn);
      if (!run) return Error(run.error()).in(under);
      turns.runs[under].push_back(*run);
    }
  }
  if (!turns.runs.contains("swapd")) return turns;
  const auto measuring = sys::measure_bpf_costs();
  if (!measuring) return measuring.error();
  const auto with = stage.visit("swapd", 0);
  if (!with) return Error(with.error()).in("the programs' times");
  turns.programs_share = with->programs_share;
  if (with->cost.wall_s > 0) turns.programs_of_a_cpu = with->programs_share * with->load_cpu_s / with->cost.wall_s;
  return turns;
}

}  // namespace swapd::bench
