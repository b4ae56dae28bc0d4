// thrash: how much work programs do that together use more memory than they may have [Peachey84 §5.3]. A number of
// loads is done by so many processes as --hogs says: each takes the next one until there is none. A process has a
// seventh of the memory, so that six fit; what more of them have is in swap.
//
// Under swapd policies/desktop.toml holds, and all of them are of its class of applications: none matters more.
#include "memory/thrash.h"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "harness/rates.h"
#include "harness/workload.h"
#include "memory/memory_load.h"
#include "shipped_policies.h"

namespace swapd::bench {
namespace {

constexpr int fit = 7;                           // so many would need all of the memory
constexpr std::uint64_t pages_a_load = 200'000;  // touched: about half a second of CPU time
constexpr std::chrono::minutes time_limit{15};

double user_time_of_children() {
  rusage used{};
  ::getrusage(RUSAGE_CHILDREN, &used);
  return static_cast<double>(used.ru_utime.tv_sec) + static_cast<double>(used.ru_utime.tv_usec) / 1e6;
}

Status await_all(std::vector<Child>& children) {
  const auto until = std::chrono::steady_clock::now() + time_limit;
  for (Child& child : children) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    auto status = child.wait(std::max(left, std::chrono::milliseconds(1)));
    if (!status) return std::move(status).error().in("waiting for a process with loads");
    if (*status != 0) return Error(ECHILD, "a process with loads has not done them (" + wait_text(*status) + ")");
  }
  return Done{};
}

Result<Measured> one_thrash(const Context& context, const Setup& setup) {
  auto made = Team::make(context, setup);
  if (!made) return made.error();
  Team& team = **made;
  const Options::Response& asked = context.options.response;
  const std::int64_t limit = std::int64_t{asked.memory_mib} << 20;
  const int count = setup.extra.value("processes", 1);
  auto swap = SwapSpace::make(asked.swap, 4 * limit, team.dir());
  if (!swap) return swap.error();
  auto group = MemoryGroup::make(limit);
  if (!group) return group.error();
  const double user_before = user_time_of_children();
  const std::uint64_t out_before = vmstat("pswpout"), in_before = vmstat("pswpin");
  const auto began = std::chrono::steady_clock::now();
  auto hogs = MemoryHogs::start(count, limit / fit, **group, context.cpus,
                                {.count = static_cast<std::uint64_t>(setup.iterations), .pages = pages_a_load});
  if (!hogs) return hogs.error();
  if (team.daemon() != nullptr)
    for (const Child& child : (*hogs)->children())
      if (Status managed = team.daemon()->order({"enroll", "--class", "application", std::to_string(child.pid())});
          !managed)
        return managed.error();
  const auto meter = Meter::start(team.daemon(), (*hogs)->children());
  if (!meter) return meter.error();
  if (Status done = await_all((*hogs)->children()); !done) return done.error();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  const double user = user_time_of_children() - user_before;
  const std::uint64_t out = vmstat("pswpout") - out_before, in = vmstat("pswpin") - in_before;
  const auto cost = meter->stop();
  if (!cost) return cost.error();
  hogs->reset();
  auto measured = team.finish_after_done();
  if (!measured) return measured;
  measured->samples_ms = {seconds * 1e3 / setup.iterations};
  measured->extra["loads_per_min"] = rounded(60 * setup.iterations / seconds);
  measured->extra["swapped_out"] = out;
  measured->extra["swapped_in"] = in;
  measured->extra["user_cpu_share"] = rounded(user / seconds / static_cast<double>(context.cpus.size()));
  if (team.daemon() != nullptr) measured->extra["swapd_cpu_share"] = rounded(cost->swapd_cpu_s / cost->wall_s);
  return measured;
}

}  // namespace

Result<std::vector<nlohmann::json>> run_thrash(const Context& context) {
  const Options& options = context.options;
  std::vector<Case> cases;
  for (Setup& one : spread({.mechanism = "loads", .hogs_free = true, .iterations = options.iterations}, options)) {
    one.extra["processes"] = std::exchange(one.hogs, 0);
    one.extra["memory_mib"] = options.response.memory_mib;
    one.extra["scheme"] = options.response.scheme;
    cases.push_back({std::move(one), [&context](const Setup& s) { return one_thrash(context, s); }});
  }
  const auto rows = measure(cases, options.repeat, options.progress);
  if (!rows) return rows.error();
  return lines(*rows, options);
}

void swap_option(CLI::App& app, Options& options) {
  app.add_option("--swap", options.response.swap, "Where what does not fit goes")
      ->check(CLI::IsMember({"zram", "file"}));
}

void thrash_options(CLI::App& app, Options& options) {
  app.add_option("--memory-mib", options.response.memory_mib,
                 "What all processes together may have; each uses a seventh of it (default 420)")
      ->check(CLI::Range(70, 16'384));
  swap_option(app, options);
  app.add_option("--scheme", options.response.scheme,
                 "What swapd does: levels for interactive programs, memory for what matters, or both")
      ->check(CLI::IsMember({"levels", "memory", "both"}));
}

void thrash_defaults(const CLI::App& chosen, Options& options) {
  if (chosen.count("--iterations") == 0) options.iterations = 36;
  if (chosen.count("--hogs") == 0) options.hogs = {1, 2, 3, 4, 6, 9, 12, 18};
  if (chosen.count("--memory-mib") == 0) options.response.memory_mib = 420;
  const std::string& scheme = options.response.scheme;
  options.policy = scheme == "memory" ? "[class.application]\n" : std::string(desktop_policy);
  if (scheme != "levels") options.policy += with_memory;
}

}  // namespace swapd::bench
