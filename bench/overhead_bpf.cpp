// overhead --observe bpf: what it costs to be watched where nothing is trapped.
//
// (1) An iteration of client-server without work, of each mechanism. (2) A call that does not block. (3) Loads of
// nothing but waits and wakes, or programs that come and go, under swapd's care and beside it: every switch of the
// machine asks whether a thread is managed. (4) The same loads once more while the kernel measures swapd's programs,
// which is dear itself and therefore not counted in (3).
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "harness/loads.h"
#include "harness/usage.h"
#include "overhead.h"
#include "sys/bpf/bpf_run_stats.h"

namespace swapd::bench {

namespace {

constexpr Probe no_wait = {"getppid", nullptr, SYS_getppid, 50, 5};
constexpr int round_trips = 1000, programs = 50;  // a sample
constexpr std::uint64_t enough_runs = 500;        // fewer, into cold caches, have no mean to speak of

Status add_ping_pong(Team& team, bool managed) {
  int there[2], back[2];
  if (::pipe2(there, O_CLOEXEC) != 0) return errno_error("pipe");
  const Fd there_read(there[0]), there_write(there[1]);
  if (::pipe2(back, O_CLOEXEC) != 0) return errno_error("pipe");
  const Fd back_read(back[0]), back_write(back[1]);
  RoleSpec ping, pong;
  ping.role.role = "ping";
  ping.role.fds = {back[0], there[1]};
  ping.important = managed;  // hence watched
  pong.role.role = "pong";
  pong.role.fds = {there[0], back[1]};
  ping.outside = pong.outside = !managed;
  if (Status added = team.add(ping); !added) return added;
  return team.add(pong);
}

// Somebody for swapd to manage, where the load is not, and somebody important: with nobody to watch swapd would follow
// no switches and no wakes.
Status add_idlers(Team& team) {
  for (const bool important : {false, true}) {
    RoleSpec idler;
    idler.role.role = "idler";
    idler.important = important;
    if (Status added = team.add(idler); !added) return added;
  }
  return Done{};
}

// costs: of swapd's programs, at the end of the load.
Result<Measured> load_once(const Context& context, const Setup& setup,
                           std::vector<sys::BpfProgramCost>* costs = nullptr) {
  auto made = Team::make(context, setup);
  if (!made) return made.error();
  Team& team = **made;
  const bool managed = setup.extra["managed"];
  if (setup.mechanism == "ping-pong") {
    if (const auto added = add_ping_pong(team, managed); !added) return added.error();
  } else {
    RoleSpec load;
    load.role.role = setup.mechanism == "spawn" ? "spawn" : "hack";
    load.outside = !managed;
    if (const auto added = team.add(load); !added) return added.error();
  }
  if (const auto added = add_idlers(team); !added) return added.error();
  if (const auto begun = team.begin(); !begun) return begun.error();
  const double swapd_before = team.daemon() != nullptr ? process_cpu_s(team.daemon()->pid()) : 0;
  const auto done = team.line_of(0, team.limit());
  if (!done) return done.error();
  nlohmann::json extra = nlohmann::json::object();
  const double load_s =
      tree_cpu_s(team.pid_of(0)) + (setup.mechanism == "ping-pong" ? process_cpu_s(team.pid_of(1)) : 0);
  extra["load_cpu_s"] = rounded(load_s);
  if (const Daemon* daemon = team.daemon(); daemon != nullptr) {
    extra["swapd_cpu_share"] = rounded((process_cpu_s(daemon->pid()) - swapd_before) / load_s);
    if (costs != nullptr) *costs = sys::bpf_costs(daemon->pid());
  }
  auto measured = team.finish_after_done();
  if (measured) measured->extra.update(extra);
  return measured;
}

std::vector<Setup> load_setups(const Options& options) {
  std::vector<Setup> setups;
  for (const char* load : {"ping-pong", "hackbench", "spawn"}) {
    for (const bool managed : {false, true}) {
      for (const std::string& under : options.under) {
        Setup setup{.mechanism = load, .under = under, .iterations = options.iterations};
        if (setup.mechanism != "hackbench") setup.iterations = std::max(1, options.iterations / 100);
        const char* measure = setup.mechanism == "ping-pong" ? "round-trip"
                              : setup.mechanism == "spawn"   ? "start-to-end"
                                                             : "cpu-time";
        setup.extra = {{"measure", measure}, {"managed", managed}};
        setups.push_back(std::move(setup));
      }
    }
  }
  return setups;
}

using Cost = sys::BpfProgramCost;

double each_ns(const Cost& cost) {
  return static_cast<double>(cost.total.count()) / static_cast<double>(std::max<std::uint64_t>(cost.runs, 1));
}

// A row each, the empty programs' among them. The share is of the load's CPU time, and is what all events of the
// machine cost meanwhile.
std::vector<Row> program_rows(const Setup& setup, const Measured& measured, const std::vector<Cost>& costs) {
  std::vector<Row> rows;
  const double load_ns = measured.extra["load_cpu_s"].get<double>() * 1e9;
  for (const Cost& cost : costs) {
    if (cost.runs < enough_runs) continue;
    Row row{.setup = setup};
    row.setup.extra["measure"] = "program";
    row.setup.extra["program"] = cost.name;
    row.repeats = {summarize({each_ns(cost) / 1e6})};
    row.median = row.repeats[0];
    row.extra = {{"ns_a_run", rounded(each_ns(cost))},
                 {"runs", cost.runs},
                 {"cpu_share", rounded(static_cast<double>(cost.total.count()) / load_ns)}};
    const auto empty = std::ranges::find_if(costs, [&](const Cost& other) {
      return cost.name.starts_with("on_") && other.name == "empty_" + cost.name.substr(3);
    });
    if (empty != costs.end()) row.extra["above_empty_ns"] = rounded(each_ns(cost) - each_ns(*empty));
    rows.push_back(std::move(row));
  }
  return rows;
}

Result<std::vector<Row>> program_prices(const Context& context) {
  std::vector<Row> rows;
  if (std::ranges::find(context.options.under, "swapd") == context.options.under.end()) return rows;
  const auto measuring = sys::measure_bpf_costs();
  if (!measuring) return measuring.error();
  for (const Setup& setup : load_setups(context.options)) {
    if (setup.under != "swapd") continue;
    const auto beside = sys::EmptyPrograms::attach();
    if (!beside) return beside.error();
    std::vector<Cost> costs;
    auto measured = load_once(context, setup, &costs);
    if (!measured) return Error(measured.error()).in("the programs' times");
    std::ranges::move(sys::bpf_costs(::getpid()), std::back_inserter(costs));
    for (Row& row : program_rows(setup, *measured, costs)) rows.push_back(std::move(row));
  }
  return rows;
}

// Repeat by repeat against vanilla's run just before it: what drifts from one repeat to the next falls out.
void add_differences(std::vector<Row>& rows) {
  for (Row& row : rows) {
    const auto plain = std::find_if(rows.begin(), rows.end(), [&](const Row& other) {
      return other.setup.under == "vanilla" && other.setup.group() == row.setup.group();
    });
    if (plain == rows.end() || row.setup.under == "vanilla") continue;
    std::vector<double> differences, ratios;
    for (std::size_t i = 0; i < std::min(row.repeats.size(), plain->repeats.size()); ++i) {
      differences.push_back((row.repeats[i].p50 - plain->repeats[i].p50) * 1000);
      ratios.push_back(row.repeats[i].p50 / plain->repeats[i].p50);
    }
    row.extra["added_us"] = rounded(median(differences));
    row.extra["added_us_from"] = rounded(percentile(differences, 0));
    row.extra["added_us_to"] = rounded(percentile(differences, 100));
    row.extra["ratio"] = rounded(median(ratios));
    add_interval(row.extra, "added_us", differences);
    add_interval(row.extra, "ratio", ratios);
  }
}

// Batch by batch, in nanoseconds a call.
Result<std::vector<Row>> call_prices(const Context& context) {
  auto rows = price_per_call(context, no_wait, false);
  if (!rows || rows->size() != 2) return rows;
  std::vector<double> differences;
  const auto &plain = (*rows)[0].samples[0], &managed = (*rows)[1].samples[0];
  for (std::size_t i = 0; i < std::min(plain.size(), managed.size()); ++i) {
    differences.push_back((managed[i] - plain[i]) * 1e6);
  }
  (*rows)[1].extra["added_ns"] = rounded(median(differences));
  add_interval((*rows)[1].extra, "added_ns", differences);
  return rows;
}

}  // namespace

Result<std::vector<Row>> overhead_of_bpf(const Context& context) {
  std::vector<Row> all;
  const auto take = [&](Result<std::vector<Row>> rows, bool paired) -> Status {
    if (!rows) return rows.error();
    if (paired) add_differences(*rows);
    std::move(rows->begin(), rows->end(), std::back_inserter(all));
    return Done{};
  };
  if (const auto taken = take(price_per_iteration(context, context.options.repeat), true); !taken) return taken.error();
  if (const auto taken = take(call_prices(context), false); !taken) return taken.error();
  std::vector<Case> loads;
  for (Setup& setup : load_setups(context.options)) {
    loads.push_back({std::move(setup), [&context](const Setup& s) { return load_once(context, s); }});
  }
  if (const auto taken = take(measure(loads, context.options.repeat, context.options.progress), true); !taken) {
    return taken.error();
  }
  if (const auto taken = take(program_prices(context), false); !taken) return taken.error();
  return all;
}

Status load_role(Role& role) {
  if (role.is("ping")) return ping_role(role, round_trips);
  if (role.is("pong")) return pong_role(role);
  if (role.is("spawn")) return spawn_role(role, programs);
  if (role.is("hack")) return hack_role(role, std::max(1, role.options().iterations / 2));
  if (Status go = role.wait_for_go(); !go) return go;
  (void)role.hear();  // the idler: until the harness ends it
  return Done{};
}

}  // namespace swapd::bench
