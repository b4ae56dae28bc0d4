// shape-accuracy: does what a class's members move keep to its limit? [TAP08 §5]
//
// A run is one limit, one size of block, so many members, one target: they move as fast as they may for some seconds.
// What they moved in all is held against rate · time; `worst` is the most that was ever moved above burst + rate ·
// time, in blocks a member (at most 1). Beside it the same without a limit (vanilla), which tells what can be reached.
//
// shape-overhead: what a call costs that is not delayed. In turns, batch by batch, of a plain process, of one under a
// bare supervisor, of one in a class whose limit is never reached, and of one in a class without limits.
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/size.h"
#include "harness/supervisor.h"
#include "harness/workload.h"
#include "shaping/shape.h"

namespace swapd::bench {
namespace {

using SteadyTime = std::chrono::steady_clock;

constexpr std::size_t moved_file_size = 256 << 20;
constexpr const char* shaped_class = "limited";
constexpr const char* huge = "1TiB";
constexpr double min_burst = 4 << 10;

double burst_of(double rate) { return std::max(rate / 20, min_burst); }

// verb: create or set.
Status set_limit(const Team& team, const char* verb, const std::string& target, const std::string& rate) {
  if (team.daemon() == nullptr) return Done{};
  const bool network = target == "tcp" || target == "udp";
  const char* mode = target == "disk-device" || target == "disk-cold" ? "device" : "logical";
  std::vector<std::string> words = {"class", verb, shaped_class, "--both", rate, "--mode", mode};
  if (network) words.emplace_back("--network");
  return team.daemon()->order(words);
}

// ---- accuracy ----

Result<Measured> move_once(const Context& context, const Setup& setup) {
  auto made = Team::make(context, setup);
  if (!made) return made.error();
  Team& team = **made;
  const std::string target = setup.mechanism;
  const double rate = setup.extra["rate"];
  const int members = setup.extra["members"];
  if (const auto made_class = set_limit(team, "create", target, huge); !made_class) return made_class.error();
  Sink sink;
  const bool network = target == "tcp" || target == "udp";
  if (network)
    if (const auto open = sink.open(target == "tcp"); !open) return open.error();
  for (int i = 0; i < members; ++i) {
    RoleSpec spec;
    spec.role.role = "mover";
    spec.role.mechanism = target;
    spec.role.index = i;
    spec.role.block = setup.extra["block"];
    spec.role.word = network ? std::to_string(sink.port()) : context.options.file;
    spec.class_name = shaped_class;
    if (const auto added = team.add(spec); !added) return added.error();
  }
  // Not before: where their program is not in memory, what they have read of it by now would be paid for at this rate.
  if (const auto ready = team.await_ready(); !ready) return ready.error();
  if (const auto set = set_limit(team, "set", target, std::to_string(static_cast<long long>(rate))); !set)
    return set.error();
  const auto begin = SteadyTime::now();
  if (const auto begun = team.begin(); !begun) return begun.error();
  // A call may be held for minutes: what has been moved by now counts.
  if (const auto early = team.line_of(0, std::chrono::milliseconds(std::llround(context.options.seconds * 1000)));
      early || early.error().code() != ETIMEDOUT)
    return early ? Error(EPROTO, "a mover said '" + *early + "'") : early.error();
  const double seconds = std::chrono::duration<double>(SteadyTime::now() - begin).count();
  double bytes = 0, calls = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(members); ++i) {
    bytes += team.shared().sample_ms.at(2 * i);
    calls += team.shared().sample_ms.at(2 * i + 1);
  }
  auto measured = team.finish_after_done();
  if (!measured) return measured;
  const double block = setup.extra["block"], wanted = rate * seconds;
  measured->samples_ms = {seconds * 1000};
  measured->extra["moved_bytes"] = bytes;
  measured->extra["calls_a_second"] = rounded(calls / seconds);
  measured->extra["rate_reached"] = rounded(bytes / seconds);
  if (setup.under == "swapd") {
    // "≤ 2 % plus one block a member": how far it is off without those blocks.
    const double off = std::max(std::abs(bytes - wanted) - block * members, 0.0);
    measured->extra["off"] = rounded(off / wanted);
    measured->extra["deviation"] = rounded((bytes - wanted) / wanted);
    measured->extra["above_blocks"] = rounded((bytes - wanted - burst_of(rate)) / (block * members));
  }
  return measured;
}

std::vector<Setup> accuracy_setups(const Options& options) {
  std::vector<Setup> setups;
  for (const std::string& target : options.targets) {
    for (const int members : options.members) {
      for (const std::string& block_text : options.blocks) {
        const auto block = *parse_size(block_text);
        if (target == "udp" && block > 60'000) continue;  // no such datagram
        for (const std::string& rate_text : options.rates) {
          const auto rate = *parse_size(rate_text);
          for (const std::string& under : options.under) {
            // Without a limit once for all rates.
            if (under == "vanilla" && rate_text != options.rates.front()) continue;
            Setup setup{.mechanism = target, .under = under, .iterations = 1};
            setup.extra = {{"rate", rate}, {"block", block}, {"members", members}};
            if (under == "vanilla") setup.extra["rate"] = 0;
            setups.push_back(std::move(setup));
          }
        }
      }
    }
  }
  return setups;
}

Status mover_role(Role& role) {
  const RoleOptions& options = role.options();
  auto mover = Mover::make(options.mechanism, static_cast<std::size_t>(options.block), options.word);
  if (!mover) return mover.error();
  const auto place = 2 * static_cast<std::uint32_t>(options.index);
  if (Status go = role.wait_for_go(); !go) return go;
  double bytes = 0, calls = 0;
  for (;;) {  // until the harness ends it
    const ssize_t n = mover->move();
    if (n < 0 && errno != ENOBUFS && errno != ECONNREFUSED && errno != EINTR) return errno_error("moving");
    bytes += static_cast<double>(std::max<ssize_t>(n, 0));
    role.note_sample(place, bytes);
    role.note_sample(place + 1, ++calls);
  }
}

// ---- overhead ----

struct Price {
  const char* name;
  const char* target;
  int nr;
  std::size_t block;
  int batch;
};
constexpr Price prices[] = {{"read 4 KiB", "disk-logical", SYS_pread64, 4096, 2000},
                            {"write 4 KiB", "write", SYS_pwrite64, 4096, 2000},
                            {"read 64 KiB", "disk-logical", SYS_pread64, 64 << 10, 500},
                            {"send 4 KiB", "tcp", SYS_sendto, 4096, 1000},
                            {"read 64 KiB uncached", "disk-cold", SYS_pread64, 64 << 10, 800},
                            {"read 1 MiB uncached", "disk-cold", SYS_pread64, 1 << 20, 50},
                            {"read 4 MiB uncached", "disk-cold", SYS_pread64, 4 << 20, 12},
                            {"read 64 KiB direct", "disk-device", SYS_pread64, 64 << 10, 200},
                            {"read 1 MiB direct", "disk-device", SYS_pread64, 1 << 20, 50},
                            {"read 4 MiB direct", "disk-device", SYS_pread64, 4 << 20, 12}};

Result<Subject> start_subject(const Context& context, const Price& price, const std::string& under, int port) {
  Setup setup{.mechanism = price.name, .under = under, .iterations = price.batch};
  Setup with = setup;
  if (under == "no-limit") with.under = "swapd";
  auto team = Team::make(context, with);
  if (!team) return team.error();
  const std::string target = price.target;
  if (under == "swapd")
    if (const auto set = set_limit(**team, "create", target, huge); !set) return set.error();
  RoleSpec spec;
  spec.role.role = "caller";
  spec.role.mechanism = target;
  spec.role.block = static_cast<int>(price.block);
  spec.role.word = target == "tcp" ? std::to_string(port) : context.options.file;
  spec.role.bare_call = under == "bare" ? price.nr : -1;
  if (under == "swapd") spec.class_name = shaped_class;
  if (const auto added = (*team)->add(spec); !added) return added.error();
  if (const auto begun = (*team)->begin(); !begun) return begun.error();
  return Subject{setup, std::move(*team), {}};
}

Result<std::vector<Row>> price_of(const Context& context, const Price& price) {
  Sink sink;
  if (const auto open = sink.open(true); !open) return open.error();
  std::vector<Subject> subjects;
  for (const char* under : {"vanilla", "bare", "swapd", "no-limit"}) {
    auto subject = start_subject(context, price, under, sink.port());
    if (!subject) return Error(subject.error()).in(std::string(price.name) + " under " + under);
    subjects.push_back(std::move(*subject));
  }
  for (int r = -1; r < context.options.repeat; ++r) {  // the first round warms up
    for (std::size_t i = 0; i < subjects.size(); ++i) {
      Subject& subject = subjects[(i + static_cast<std::size_t>(r + 1)) % subjects.size()];  // each is first at times
      const auto took_ms = subject.team->run_batch();
      if (!took_ms) return took_ms.error();
      if (r >= 0) subject.batches_ms.push_back(*took_ms);
    }
  }
  std::vector<Row> rows = rows_of_calls(subjects);
  const auto &plain = rows[0].samples[0], &bare = rows[1].samples[0];
  for (std::size_t i = 1; i < rows.size(); ++i) {
    std::vector<double> added, ratios, throughputs;
    for (std::size_t b = 0; b < plain.size(); ++b) {
      added.push_back((rows[i].samples[0][b] - plain[b]) * 1000);
      throughputs.push_back(plain[b] / rows[i].samples[0][b]);
      if (bare[b] > plain[b]) ratios.push_back((rows[i].samples[0][b] - plain[b]) / (bare[b] - plain[b]));
    }
    rows[i].extra["added_us"] = rounded(median(added));
    rows[i].extra["throughput"] = rounded(median(throughputs));
    add_interval(rows[i].extra, "added_us", added);
    add_interval(rows[i].extra, "throughput", throughputs);
    if (i > 1) {
      rows[i].extra["ratio_to_bare"] = rounded(median(ratios));
      add_interval(rows[i].extra, "ratio_to_bare", ratios);
    }
  }
  return rows;
}

Status caller_role(Role& role) {
  const RoleOptions& options = role.options();
  if (options.bare_call >= 0)  // which forks: a buffer made before would be copied page by page
    if (Status put = put_under_bare_supervisor(options.bare_call); !put) return put;
  auto mover = Mover::make(options.mechanism, static_cast<std::size_t>(options.block), options.word);
  if (!mover) return mover.error();
  if (Status go = role.wait_for_go(); !go) return go;
  for (;;) {  // until the harness closes the channel
    if (const auto asked = role.hear(); !asked) return Done{};
    mover->drop_cache();
    const auto before = SteadyTime::now();
    for (int i = 0; i < options.iterations; ++i)
      if (mover->move() <= 0) return errno_error("moving");
    const double ms = std::chrono::duration<double, std::milli>(SteadyTime::now() - before).count();
    if (Status said = role.say(nlohmann::json(ms / options.iterations).dump()); !said) return said;
  }
}

Result<Options> with_file(const Context& context, const TempDir& dir) {
  Options options = context.options;
  options.file = dir.path() + "/data";
  if (Status made = make_file(options.file, moved_file_size); !made) return made.error();
  return options;
}

}  // namespace

Result<std::vector<nlohmann::json>> run_shape_accuracy(const Context& context) {
  const auto dir = TempDir::create();
  if (!dir) return dir.error();
  const auto options = with_file(context, *dir);
  if (!options) return options.error();
  const Context with{*options, context.work, context.cpus, context.self};
  std::vector<Case> cases;
  for (Setup& setup : accuracy_setups(*options))
    cases.push_back({std::move(setup), [&with](const Setup& s) { return move_once(with, s); }});
  const auto rows = measure(cases, options->repeat, options->progress);
  if (!rows) return rows.error();
  return lines(*rows, *options);
}

Result<std::vector<nlohmann::json>> run_shape_overhead(const Context& context) {
  const auto dir = TempDir::create();
  if (!dir) return dir.error();
  const auto options = with_file(context, *dir);
  if (!options) return options.error();
  const Context with{*options, context.work, context.cpus, context.self};
  std::vector<Row> all;
  for (const Price& price : prices) {
    auto rows = price_of(with, price);
    if (!rows) return rows.error();
    std::move(rows->begin(), rows->end(), std::back_inserter(all));
  }
  return lines(all, *options);
}

Status shape_role(Role& role) { return role.is("mover") ? mover_role(role) : caller_role(role); }

}  // namespace swapd::bench
