#include <unistd.h>

#include "apps_runs.h"
#include "sys/bpf_usage.h"
#include "usage.h"

namespace swapd::bench {
namespace {

using SteadyTime = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds settles{300}, sampled{100};
constexpr double seconds_to_spare = 30, most_faster = 2;  // than guessed

Status sleep_for(double seconds) {
  const auto until = SteadyTime::now() + std::chrono::duration<double>(seconds);
  while (SteadyTime::now() < until) {
    if (interrupted()) return Error(EINTR, "interrupted");
    ::usleep(10'000);
  }
  return Done{};
}

class Stage {
 public:
  Stage(const Context& context, const App& app, std::string dir)
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
    Spawn generator = app_spawn(on(load_cpus_), {}, app_.live_load(seconds, most_faster * guess));
    generator.output = generator.errors = said();
    auto load = Child::start(generator);
    if (!load) return load.error();
    load_ = std::move(*load);
    return sleep_for(1);
  }
  // After swapd has come and gone: starting it moves the load's threads from CPU to CPU, which then stays for a while.
  Result<Run> vanilla() { return visit(false); }
  Result<Run> under_swapd() { return visit(true); }

 private:
  [[nodiscard]] Context on(const std::vector<int>& cpus) const {
    return {context_.options, context_.work, cpus, context_.self};
  }
  [[nodiscard]] std::string said() const { return dir_ + "/load.log"; }
  Result<Run> visit(bool stays) {
    const auto state = TempDir::create();  // of its own: it remembers nothing
    if (!state) return state.error();
    auto daemon = Daemon::start(context_.options, state->path());
    if (!daemon) return daemon.error();
    for (const Child* one : {&server_, &load_})
      if (Status taken = daemon->order({"enroll", "--tree", std::to_string(one->pid())}); !taken) return taken.error();
    if (stays) {
      auto run = window(&*daemon);
      if (Status stopped = daemon->stop(); run && !stopped) return stopped.error();
      return run;
    }
    if (Status stopped = daemon->stop(); !stopped) return stopped.error();
    return window(nullptr);
  }
  Result<Run> window(const Daemon* daemon) {
    if (Status waited = sleep_for(std::chrono::duration<double>(settles).count()); !waited) return waited.error();
    const auto before = app_.progress(said());
    if (!before) return before.error();
    const Usage usage([this] { return tree_cpu_s(server_.pid()) + tree_cpu_s(load_.pid()); }, daemon);
    if (Status waited = sleep_for(context_.options.seconds - std::chrono::duration<double>(sampled).count()); !waited)
      return waited.error();
    const auto after = app_.progress(said());
    if (!after) return after.error();
    const bool ended = load_.wait(std::chrono::milliseconds(0)).ok();
    if (ended || after->at_s <= before->at_s || after->requests <= before->requests)
      return Error(EPROTO, "the load has come to a stop");
    Run run{.throughput = (after->requests - before->requests) / (after->at_s - before->at_s)};
    usage.add_to(run);
    return run;
  }

  const Context& context_;
  const App& app_;
  std::string dir_;
  std::vector<int> server_cpus_, load_cpus_;
  Child server_, load_;
};

}  // namespace

Result<Turns> take_turns(const Context& context, const App& app, double guess) {
  auto dir = TempDir::create();
  if (!dir) return dir.error();
  const Options& options = context.options;
  const double in_all = (options.repeat + 2) * (2 * options.seconds + 5) + seconds_to_spare;
  Stage stage(context, app, dir->path());
  if (Status open = stage.open(in_all, guess); !open) return open.error();
  Turns turns;
  auto before = stage.vanilla();
  if (!before) return before.error();
  for (int r = 0; r < options.repeat; ++r) {
    auto with = stage.under_swapd();
    if (!with) return with.error();
    turns.swapd.push_back(*with);
    auto after = stage.vanilla();
    if (!after) return after.error();
    turns.vanilla.push_back({.throughput = (before->throughput + after->throughput) / 2,
                             .load_cpu_s = (before->load_cpu_s + after->load_cpu_s) / 2});
    before = std::move(after);
  }
  const auto measuring = sys::measure_bpf_costs();
  if (!measuring) return measuring.error();
  const auto with = stage.under_swapd();
  if (!with) return Error(with.error()).in("the programs' times");
  turns.programs_share = with->programs_share;
  return turns;
}

}  // namespace swapd::bench
