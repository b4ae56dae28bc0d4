// multi-server [SWAP04 §5.2]: five servers of unlike speed, any of which may answer; the good choice is learnt.
//
// One System V semaphore set: semaphore 0 is the answer, 1…5 are the requests to each server, 6 counts the servers that
// have started (all have used the set before the first request, as in any program that has run for a while). Every
// request restarts all servers: they look at the number of the current request about every millisecond of work and drop
// an old one. Only the first to finish posts. The servers are started slowest first, so that the order of arrival
// favours the wrong ones.
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/types.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "harness/plot.h"
#include "harness/why.h"
#include "harness/workload.h"

namespace swapd::bench {

namespace {

constexpr double unit_ms = 100;
constexpr std::array<int, 5> units = {10, 10, 5, 5, 2};
constexpr int servers = static_cast<int>(units.size());
constexpr int fastest = servers - 1;

class SemaphoreSet {
 public:
  SemaphoreSet() : id_(::semget(IPC_PRIVATE, servers + 2, IPC_CREAT | 0600)) {}
  SemaphoreSet(const SemaphoreSet&) = delete;
  SemaphoreSet& operator=(const SemaphoreSet&) = delete;
  ~SemaphoreSet() {
    if (id_ >= 0) ::semctl(id_, 0, IPC_RMID);
  }
  [[nodiscard]] int id() const { return id_; }

 private:
  int id_;
};

Status change(int id, std::vector<sembuf> operations) {
  if (::semop(id, operations.data(), operations.size()) != 0) return errno_error("semop");
  return Done{};
}

// `alone`: the fastest server has no rivals.
Result<Measured> one_race(const Context& context, const Setup& setup, bool alone) {
  auto made = Team::make(context, setup);
  if (!made) return made.error();
  Team& team = **made;
  const SemaphoreSet set;
  if (set.id() < 0) return errno_error("semget");
  RoleSpec client;
  client.role.role = "client";
  client.role.word = std::to_string(set.id());
  client.important = true;
  if (const auto added = team.add(client); !added) return added.error();
  std::set<pid_t> pids;
  for (int i = alone ? fastest : 0; i < servers; ++i) {
    RoleSpec server;
    server.role.role = "server";
    server.role.word = client.role.word;
    server.role.index = i;
    // By hand one would favour the one that is known to be the fastest.
    server.no_donation = i != fastest;
    if (const auto added = team.add(server); !added) return added.error();
    pids.insert(team.pid_of(pids.size() + 1));
  }
  if (const auto begun = team.begin(); !begun) return begun.error();
  nlohmann::json extra = nlohmann::json::object();
  if (context.options.show_why && team.daemon() != nullptr) {
    // Asked once in each iteration: does the client ever stand without a candidate?
    int fewest = servers;
    for (int i = 1; i <= setup.iterations; ++i) {
      if (const auto waited = wait_for_iteration(team, static_cast<std::uint32_t>(i)); !waited) return waited.error();
      const auto why = ask_why(*team.daemon(), team.pid_of(0), pids, 3);
      if (!why) return why.error();
      if (team.shared().samples == 0) fewest = std::min(fewest, why->named);
    }
    extra["fewest_candidates"] = fewest;
  }
  auto measured = team.finish();
  if (measured) measured->extra.update(extra);
  return measured;
}

// Iteration by iteration the median over the repeats.
std::vector<double> by_iteration(const Row& row) {
  std::vector<double> out;
  for (std::size_t i = 0; i < row.samples.at(0).size(); ++i) {
    std::vector<double> values;
    for (const auto& samples : row.samples) values.push_back(samples.at(i));
    out.push_back(median(std::move(values)));
  }
  return out;
}

}  // namespace

Result<std::vector<nlohmann::json>> run_multi_server(const Context& context) {
  const Options& options = context.options;
  Setup setup{.mechanism = "sem", .iterations = options.iterations, .work_ms = unit_ms, .demand_ms = 10 * unit_ms};
  setup.extra["quantum_ms"] = options.quantum_ms > 0 ? options.quantum_ms : 20.0;
  setup.extra["feedback"] = options.feedback.empty() ? "wait" : options.feedback;
  Setup alone = setup;
  alone.under = "vanilla";
  alone.iterations = 3;
  alone.extra["alone"] = true;
  std::vector<Case> cases = {{alone, [&context](const Setup& s) { return one_race(context, s, true); }}};
  for (Setup& one : spread(setup, options)) {
    cases.push_back({std::move(one), [&context](const Setup& s) { return one_race(context, s, false); }});
  }
  auto rows = measure(cases, options.repeat, options.progress);
  if (!rows) return rows.error();
  const double alone_ms = rows->front().median.mean;
  for (Row& row : *rows) {
    const std::vector<double> samples = by_iteration(row);
    row.extra["samples_ms"] = samples;
    row.extra["fastest_alone_ms"] = alone_ms;
    // The worst and the mean of the iterations from the third and from the eighth on, against the fastest alone. Once a
    // second the kernel's fair server gives ordinary tasks 50 ms, so with hogs one iteration in five takes that much
    // longer, whoever donates what: the mean tells whether the right server is chosen, the worst alone does not.
    for (const std::size_t from : {std::size_t{3}, std::size_t{8}}) {
      if (samples.size() < from) continue;
      const double worst = *std::max_element(samples.begin() + static_cast<std::ptrdiff_t>(from) - 1, samples.end());
      row.extra["to_fastest_from_" + std::to_string(from)] = worst / alone_ms;
      const double sum = std::accumulate(samples.begin() + static_cast<std::ptrdiff_t>(from) - 1, samples.end(), 0.0);
      row.extra["mean_to_fastest_from_" + std::to_string(from)] =
          sum / static_cast<double>(samples.size() - from + 1) / alone_ms;
    }
  }
  return lines(*rows, options);
}

Status multi_server_role(Role& role) {
  const int id = std::stoi(role.options().word);
  Shared& shared = role.shared();
  if (!role.is("client"))
    if (const auto started = change(id, {{servers + 1, 1, 0}}); !started) return started;
  if (const auto go = role.wait_for_go(); !go) return go;
  if (role.is("client")) {
    return role.iterate(
        [&]() -> Status {
          ++shared.generation;
          std::vector<sembuf> requests;
          for (unsigned short i = 1; i <= servers; ++i) requests.push_back({i, 1, 0});
          if (const auto asked = change(id, requests); !asked) return asked;
          return change(id, {{0, -1, 0}});
        },
        0);
  }
  const int index = role.options().index;
  const auto request = static_cast<unsigned short>(index + 1);
  for (std::uint32_t mine = 1;; ++mine) {
    if (const auto asked = change(id, {{request, -1, 0}}); !asked) return asked;
    const auto wanted = [&] { return shared.generation == mine; };
    if (!role.work().run_ms_while(units.at(static_cast<std::size_t>(index)) * unit_ms, wanted)) continue;
    std::uint32_t before = mine - 1;
    if (!shared.answered.compare_exchange_strong(before, mine)) continue;
    if (const auto answered = change(id, {{0, 1, 0}}); !answered) return answered;
  }
}

}  // namespace swapd::bench
