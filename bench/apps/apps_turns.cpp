#include <unistd.h>

#include <algorithm>
#include <random>

#include "apps/apps_runs.h"
#include "harness/usage.h"
#include "sys/bpf/bpf_run_stats.h"
#include "sys/procfs/procfs.h"
#include "sys/sched/scheduler.h"

namespace swapd::bench {
namespace {

using SteadyTime = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds settles{200};  // what starting or stopping swapd leaves for the kernel to do
constexpr milliseconds drawn_each{50}, pinned{2};
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

class Stage {
 public:
  Stage(const Context& context, App& app, std::string dir)
      : context_(context), app_(app), dir_(std::move(dir)), server_cpus_(context.cpus), load_cpus_(context.cpus) {
    if (context.options.placement != "apart" || context.cpus.size() < 2) return;
    load_cpus_ = {context.cpus.front()};
    server_cpus_.erase(server_cpus_.begin());
  }
  ~Stage() {
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
    auto load = Child::start(generator);
    if (!load) return load.error();
    load_ = std::move(*load);
    if (context_.options.important_beside) {
      Spawn idler = app_spawn(on(load_cpus_), {}, {"/bin/sleep", "infinity"});
      idler.attr = context_.options.client;
      auto started = Child::start(idler);
      if (!started) return started.error();
      beside_ = std::move(*started);
    }
    return sleep_for(1);
  }
  // A window without swapd comes after swapd has come and gone: starting it moves the load's threads from CPU to CPU,
  // which then stays for a while.
  Result<Run> visit(bool stays, unsigned pair) {
    const auto state = TempDir::create();  // of its own: it remembers nothing
    if (!state) return state.error();
    auto daemon = Daemon::start(context_.options, state->path());
    if (!daemon) return daemon.error();
    for (const Child* one : {&server_, &load_, &beside_})
      if (one->running())
        if (Status taken = daemon->order({"enroll", "--tree", std::to_string(one->pid())}); !taken)
          return taken.error();
    if (stays) {
      auto run = window(&*daemon, pair);
      if (Status stopped = daemon->stop(); run && !stopped) return stopped.error();
      return run;
    }
    if (Status stopped = daemon->stop(); !stopped) return stopped.error();
    return window(nullptr, pair);
  }

 private:
  [[nodiscard]] Context on(const std::vector<int>& cpus) const {
    return {context_.options, context_.work, cpus, context_.self};
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
  Result<Run> window(const Daemon* daemon, unsigned pair) {
    if (Status waited = sleep_for(std::chrono::duration<double>(settles).count()); !waited) return waited.error();
    const auto before = app_.progress();
    if (!before) return before.error();
    const Usage usage([this] { return tree_cpu_s(server_.pid()) + tree_cpu_s(load_.pid()); }, daemon);
    if (Status waited = pass(context_.options.seconds, pair); !waited) return waited.error();
    const auto after = app_.progress();
    if (!after) return after.error();
    const bool ended = load_.wait(std::chrono::milliseconds(0)).ok();
    if (ended || after->at_s <= before->at_s || after->requests <= before->requests)
      return Error(EPROTO, "the load has come to a stop");
    Run run{.throughput = (after->requests - before->requests) / (after->at_s - before->at_s)};
    usage.add_to(run);
    return run;
  }

  const Context& context_;
  App& app_;
  std::string dir_;
  std::vector<int> server_cpus_, load_cpus_;
  Child server_, load_, beside_;
};

}  // namespace

Result<Turns> take_turns(const Context& context, App& app, double guess) {
  auto dir = TempDir::create();
  if (!dir) return dir.error();
  const Options& options = context.options;
  const double in_all = (options.repeat + 2) * (2 * options.seconds + 5) + seconds_to_spare;
  Stage stage(context, app, dir->path());
  if (Status open = stage.open(in_all, guess); !open) return open.error();
  Turns turns;
  for (unsigned pair = 0; pair < static_cast<unsigned>(options.repeat); ++pair) {
    for (const bool stays : {pair % 2 == 0, pair % 2 != 0}) {
      auto run = stage.visit(stays, pair);
      if (!run) return run.error();
      (stays ? turns.swapd : turns.vanilla).push_back(*run);
    }
  }
  const auto measuring = sys::measure_bpf_costs();
  if (!measuring) return measuring.error();
  const auto with = stage.visit(true, 0);
  if (!with) return Error(with.error()).in("the programs' times");
  turns.programs_share = with->programs_share;
  return turns;
}

}  // namespace swapd::bench
