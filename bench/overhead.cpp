// overhead: what watching costs a program that needs no help.
//
// Three prices. (1) Per trapped call: a call that does nothing, in batches, of a plain process, of one under a bare
// supervisor and of one under swapd, all on one CPU in turns. (2) Per iteration of client-server without work on an
// idle machine [SWAP04 fig. 3]. (3) --loaded: ten such calls together, of a nice-0 program that wakes every 20 ms among
// hogs, where each notification is a chance to lose the CPU (70 ms with a badly placed receiver).
#include <fcntl.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "harness/supervisor.h"
#include "overhead.h"

namespace swapd::bench {

namespace {

using SteadyTime = std::chrono::steady_clock;

// With history "holders" swapd traps the semaphore calls among few others, with "calls" also write. glibc's semop(2) is
// semtimedop without a time.
constexpr Probe probes[] = {{"semop", "holders", SYS_semtimedop, 1, 1}, {"write", "calls", SYS_write, 1, 1}};

const Probe& probe_of(const std::string& call) { return call == probes[1].call ? probes[1] : probes[0]; }

class Semaphore {
 public:
  Semaphore() : id_(::semget(IPC_PRIVATE, 1, IPC_CREAT | 0600)) {}
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;
  ~Semaphore() {
    if (id_ >= 0) ::semctl(id_, 0, IPC_RMID);
  }
  [[nodiscard]] int id() const { return id_; }

 private:
  int id_;
};

Result<Subject> start_subject(const Context& context, const Setup& setup, const Semaphore& semaphore,
                              const char* role) {
  auto team = Team::make(context, setup);
  if (!team) return team.error();
  RoleSpec spec;
  spec.role.role = role;
  spec.role.mechanism = setup.mechanism;
  spec.role.word = std::to_string(semaphore.id());
  spec.role.index = setup.under == "bare" ? 1 : 0;
  spec.no_donation = true;
  if (const auto added = (*team)->add(spec); !added) return added.error();
  if (const auto begun = (*team)->begin(); !begun) return begun.error();
  return Subject{setup, std::move(*team), {}};
}

std::vector<Setup> probe_setups(const Context& context, const Probe& probe, bool bare = true) {
  std::vector<Setup> setups;
  std::vector<std::string> under = {"vanilla"};
  if (bare) under.emplace_back("bare");
  for (const std::string& u : context.options.under) {
    if (u == "swapd") under.push_back(u);
  }
  for (const std::string& u : under) {
    Setup setup{.mechanism = probe.call, .under = u, .iterations = context.options.iterations * probe.batch};
    if (probe.history != nullptr) setup.extra["history"] = setup.history = probe.history;
    setups.push_back(setup);
  }
  return setups;
}

// Added times in microseconds, and swapd's against the bare round trip; every row is compared by its p50.
void add_prices(std::vector<Row>& rows) {
  const auto of = [&](const Row& like, const char* under) -> const Row* {
    for (const Row& row : rows) {
      if (row.setup.under == under && row.setup.group() == like.setup.group()) return &row;
    }
    return nullptr;
  };
  for (Row& row : rows) {
    const Row* plain = of(row, "vanilla");
    const Row* bare = of(row, "bare");
    if (plain == nullptr || row.setup.under == "vanilla") continue;
    const double added = row.median.p50 - plain->median.p50;
    row.extra["added_us"] = added * 1000;
    if (bare == nullptr || row.setup.under != "swapd") continue;
    const double bare_added = bare->median.p50 - plain->median.p50;
    row.extra["bare_us"] = bare_added * 1000;
    if (bare_added > 0) row.extra["ratio_to_bare"] = added / bare_added;
  }
}

// Batch by batch against the batch of each other subject beside it.
void add_intervals(std::vector<Row>& rows) {
  for (std::size_t i = 1; i < rows.size(); ++i) {
    std::vector<double> added, ratios;
    for (std::size_t b = 0; b < std::min(rows[i].samples[0].size(), rows[0].samples[0].size()); ++b) {
      added.push_back((rows[i].samples[0][b] - rows[0].samples[0][b]) * 1000);
      if (rows[1].setup.under != "bare" || b >= rows[1].samples[0].size()) continue;
      const double bare = (rows[1].samples[0][b] - rows[0].samples[0][b]) * 1000;
      if (bare > 0) ratios.push_back(added.back() / bare);
    }
    add_interval(rows[i].extra, "added_us", added);
    if (rows[i].setup.under == "swapd") add_interval(rows[i].extra, "ratio_to_bare", ratios);
  }
}

Result<std::vector<Row>> loaded(const Context& context) {
  const Semaphore semaphore;
  const Probe& probe = context.options.history == "calls" ? probes[1] : probes[0];
  std::vector<Case> cases;
  for (const int hogs : context.options.hogs) {
    for (Setup setup : probe_setups(context, probe)) {
      setup.hogs = hogs;
      setup.demand_ms = 20;
      setup.extra["measure"] = "ten-calls";
      cases.push_back({setup, [&](const Setup& s) -> Result<Measured> {
                         auto subject = start_subject(context, s, semaphore, "sleeper");
                         if (!subject) return subject.error();
                         return subject->team->finish();
                       }});
    }
  }
  return measure(cases, context.options.repeat, context.options.progress);
}

}  // namespace

Result<std::vector<Row>> price_per_call(const Context& context, const Probe& probe, bool bare) {
  const Semaphore semaphore;
  std::vector<Subject> subjects;
  for (const Setup& setup : probe_setups(context, probe, bare)) {
    auto subject = start_subject(context, setup, semaphore, "caller");
    if (!subject) return Error(subject.error()).in(std::string(probe.call) + " under " + setup.under);
    subjects.push_back(std::move(*subject));
  }
  for (int r = -1; r < context.options.repeat * probe.rounds; ++r) {  // the first round warms up
    for (Subject& subject : subjects) {
      const auto took_ms = subject.team->run_batch();
      if (!took_ms) return took_ms.error();
      if (r >= 0) subject.batches_ms.push_back(*took_ms);
    }
  }
  std::vector<Row> rows = rows_of_calls(subjects);
  add_prices(rows);
  add_intervals(rows);
  return rows;
}

Result<std::vector<Row>> price_per_iteration(const Context& context, int repeat) {
  std::vector<Case> cases;
  for (const std::string& mechanism : context.options.mechanisms) {
    for (const std::string& under : context.options.under) {
      Setup setup{.mechanism = mechanism, .under = under, .iterations = context.options.iterations};
      setup.extra["measure"] = "iteration";
      cases.push_back({setup, [&context](const Setup& s) { return client_server_once(context, s); }});
    }
  }
  auto rows = measure(cases, repeat, context.options.progress);
  if (rows) add_prices(*rows);
  return rows;
}

Result<std::vector<nlohmann::json>> run_overhead(const Context& context) {
  if (context.options.loaded) {
    const auto rows = loaded(context);
    if (!rows) return rows.error();
    return lines(*rows, context.options);
  }
  if (context.options.observe == "bpf") {
    const auto rows = overhead_of_bpf(context);
    if (!rows) return rows.error();
    return lines(*rows, context.options);
  }
  std::vector<Row> all;
  for (const Probe& probe : probes) {
    if (!context.options.history.empty() && context.options.history != probe.history) continue;
    auto rows = price_per_call(context, probe, true);
    if (!rows) return rows.error();
    std::move(rows->begin(), rows->end(), std::back_inserter(all));
  }
  auto rows = price_per_iteration(context, std::min(context.options.repeat, 5));
  if (!rows) return rows.error();
  std::move(rows->begin(), rows->end(), std::back_inserter(all));
  return lines(all, context.options);
}

Status overhead_role(Role& role) {
  if (role.is("client") || role.is("server")) return client_server_role(role);
  if (!role.is("caller") && !role.is("sleeper")) return load_role(role);
  const bool waits = role.options().mechanism != "getppid";
  const Probe& probe = probe_of(role.options().mechanism);
  const int id = std::stoi(role.options().word);
  const Fd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (!null) return errno_error("/dev/null");
  if (role.options().index == 1) {
    if (Status put = put_under_bare_supervisor(probe.nr); !put) return put;
  }
  // Waiting for zero where it is zero: returns at once.
  const auto call = [&] {
    if (!waits) return ::syscall(SYS_getppid) > 0;
    sembuf nothing{0, 0, IPC_NOWAIT};
    if (probe.nr == SYS_semtimedop) return ::semtimedop(id, &nothing, 1, nullptr) == 0;
    return ::write(null.get(), "x", 1) == 1;
  };
  const auto calls_ms = [&](int count) -> Result<double> {
    const auto before = SteadyTime::now();
    for (int i = 0; i < count; ++i) {
      if (!call()) return errno_error(probe.call);
    }
    return std::chrono::duration<double, std::milli>(SteadyTime::now() - before).count();
  };
  if (Status go = role.wait_for_go(); !go) return go;
  const int iterations = role.options().iterations;
  if (role.is("sleeper")) {
    timespec next{};
    ::clock_gettime(CLOCK_MONOTONIC, &next);
    for (int i = 0; i < iterations; ++i) {
      next.tv_nsec += 20'000'000;
      next.tv_sec += next.tv_nsec / 1'000'000'000;
      next.tv_nsec %= 1'000'000'000;
      ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, nullptr);
      const auto ms = calls_ms(10);
      if (!ms) return ms.error();
      role.note_sample(static_cast<std::uint32_t>(i), *ms);
      // Late by a turn of the hogs: the next wake-up is counted from now, or the sleeps would vanish.
      ::clock_gettime(CLOCK_MONOTONIC, &next);
    }
    return role.finish(static_cast<std::uint32_t>(iterations));
  }
  for (;;) {  // until the harness closes the channel
    if (const auto asked = role.hear(); !asked) return Done{};
    const auto ms = calls_ms(iterations);
    if (!ms) return ms.error();
    if (Status said = role.say(nlohmann::json(*ms / iterations).dump()); !said) return said;
  }
}

}  // namespace swapd::bench
