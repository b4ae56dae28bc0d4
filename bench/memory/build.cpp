// build: how long a command takes whose processes together need more memory than they may have, as a parallel compile
// does. It is run by /bin/sh in a control group with a limit and swap, after another command has brought back the state
// that it begins with. A process that the kernel kills for want of memory counts, and so does a command that fails.
//
// Under swapd policies/desktop.toml holds, with what keeps memory for what matters; the command's processes are of its
// class of applications.
#include "memory/build.h"

#include <csignal>
#include <fstream>
#include <thread>

#include "harness/rates.h"
#include "harness/workload.h"
#include "memory/memory_load.h"
#include "memory/thrash.h"
#include "shipped_policies.h"

namespace swapd::bench {
namespace {

constexpr std::chrono::minutes command_limit{30};  // of a command
constexpr const char* shell = "/bin/sh";

// Until it has stopped itself.
Status await_stop(pid_t pid) {
  for (int tries = 0; tries < 1000; ++tries) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
    std::string stat;
    std::getline(in, stat);
    const auto end = stat.rfind(')');
    if (end != std::string::npos && stat.size() > end + 2 && stat[end + 2] == 'T') return Done{};
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return Error(ETIMEDOUT, "the command does not begin");
}

Status prepare(const std::string& command) {
  int status = 0;
  const auto text = run_for_output({shell, "-c", command}, status, command_limit);
  if (!text) return text.error();
  return status == 0 ? Status(Done{}) : Status(Error(ECHILD, "'" + command + "' fails (" + wait_text(status) + ")"));
}

Result<Measured> one_build(const Context& context, const Setup& setup) {
  const Options& options = context.options;
  const std::int64_t limit = std::int64_t{options.response.memory_mib} << 20;
  if (!options.build.clean.empty())
    if (Status done = prepare(options.build.clean); !done) return done.error();
  auto made = Team::make(context, setup);
  if (!made) return made.error();
  Team& team = **made;
  auto swap = SwapSpace::make(options.response.swap, 4 * limit, team.dir());
  if (!swap) return swap.error();
  auto group = MemoryGroup::make(limit);
  if (!group) return group.error();
  Spawn spawn;
  spawn.argv = {shell, "-c", "kill -STOP $$; " + options.build.command};
  spawn.cpus = context.cpus;
  spawn.own_session = true;
  spawn.errors = "/dev/null";
  auto command = Child::start(spawn);
  if (!command) return command.error();
  if (Status stopped = await_stop(command->pid()); !stopped) return stopped.error();
  if (Status taken = (*group)->take(command->pid()); !taken) return taken.error();
  if (team.daemon() != nullptr)
    if (Status managed = team.daemon()->order({"enroll", "--class", "application", std::to_string(command->pid())});
        !managed)
      return managed.error();
  std::vector<Child> children;
  children.push_back(std::move(*command));
  const auto meter = Meter::start(team.daemon(), children);
  if (!meter) return meter.error();
  const std::uint64_t out_before = vmstat("pswpout"), in_before = vmstat("pswpin");
  const auto began = std::chrono::steady_clock::now();
  children.front().signal(SIGCONT);
  auto status = children.front().wait(command_limit);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  if (!status) return std::move(status).error().in("waiting for the command");
  const std::uint64_t out = vmstat("pswpout") - out_before, in = vmstat("pswpin") - in_before;
  const auto cost = meter->stop();
  if (!cost) return cost.error();
  const std::uint64_t killed = (*group)->killed();
  auto measured = team.finish_after_done();
  if (!measured) return measured;
  measured->samples_ms = {seconds * 1e3};
  measured->extra["seconds"] = rounded(seconds);
  measured->extra["failed"] = *status != 0;
  measured->extra["killed"] = killed;
  measured->extra["swapped_out"] = out;
  measured->extra["swapped_in"] = in;
  if (team.daemon() != nullptr) measured->extra["swapd_cpu_share"] = rounded(cost->swapd_cpu_s / cost->wall_s);
  return measured;
}

}  // namespace

Result<std::vector<nlohmann::json>> run_build(const Context& context) {
  const Options& options = context.options;
  std::vector<Case> cases;
  for (Setup& one : spread({.mechanism = "build", .hogs_free = true, .iterations = 1}, options)) {
    one.extra["memory_mib"] = options.response.memory_mib;
    one.extra["build"] = options.build.command;
    cases.push_back({std::move(one), [&context](const Setup& s) { return one_build(context, s); }});
  }
  const auto rows = measure(cases, options.repeat, options.progress);
  if (!rows) return rows.error();
  return lines(*rows, options);
}

void build_options(CLI::App& app, Options& options) {
  app.add_option("--command", options.build.command, "What is run by /bin/sh, such as 'make -C DIR -j8'")->required();
  app.add_option("--clean", options.build.clean, "What is run before each time, such as 'make -C DIR clean'");
  app.add_option("--memory-mib", options.response.memory_mib, "What all its processes together may have (default 1024)")
      ->check(CLI::Range(70, 65'536));
  swap_option(app, options);
}

void build_defaults(const CLI::App& chosen, Options& options) {
  if (chosen.count("--hogs") == 0) options.hogs = {0};
  if (chosen.count("--memory-mib") == 0) options.response.memory_mib = 1024;
  options.policy = std::string(desktop_policy) + with_memory;
}

}  // namespace swapd::bench
