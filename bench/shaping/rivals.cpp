// shape-rivals: what people limit programs with today, beside swapd [TAP08 §4]: trickle for the network, the block
// controller of cgroups and ionice for the disk.
//
// One program moves blocks as fast as it may, limited to the same rate by each of them in turn: past the page cache,
// out of it, into it, and over TCP. `deviation` is how far what it moved is off the limit; `throughput` what it reaches
// under a limit far above that, as a share of what it reaches on its own; `unprivileged` whether an ordinary user may
// use it. ionice knows no limits, only who comes first.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "apps/apps.h"
#include "base/size.h"
#include "harness/workload.h"
#include "shaping/shape.h"
#include "shaping/slow_disk.h"

namespace swapd::bench {
namespace {

constexpr std::uint64_t disk_size = std::uint64_t{512} << 20, file_size = std::uint64_t{256} << 20;
constexpr int block_size = 64 << 10;
constexpr double unlimited = std::uint64_t{1} << 40;
constexpr uid_t nobody = 65534;
constexpr const char* limited_class = "limited";

struct Movement {
  const char* name;
  const char* target;  // of a Mover
  bool network;
};
constexpr Movement movements[] = {{"read-uncached", "disk-device", false},
                                  {"read-cached", "disk-logical", false},
                                  {"write-buffered", "write", false},
                                  {"send-tcp", "tcp", true}};

struct Rival {
  const char* name;
  bool disk, network;
  bool limits;
};
constexpr Rival rivals[] = {
    {"vanilla", true, true, false},        {"swapd", true, true, true},  // logical: whatever a call moves
    {"swapd-device", true, false, true},                                 // what the disk moves
    {"block-throttle", true, false, true}, {"ionice", true, false, false}, {"trickle", false, true, true}};

bool is_swapd(const std::string& under) { return under.starts_with("swapd"); }

class Comparison {
 public:
  Comparison(const Context& context, SlowDisk& disk) : context_(context), disk_(disk) {}

  // Bytes a second.
  Result<double> rate_of(const Movement& work, const std::string& under, double limit) {
    Setup setup{.mechanism = work.name, .under = is_swapd(under) ? "swapd" : "vanilla", .iterations = 1};
    auto made = Team::make(context_, setup);
    if (!made) return made.error();
    Team& team = **made;
    Sink sink;
    if (work.network)
      if (Status open = sink.open(true); !open) return open.error();
    RoleSpec spec;
    spec.role.role = "mover";
    spec.role.mechanism = work.target;
    spec.role.block = block_size;
    spec.role.word = work.network ? std::to_string(sink.port()) : disk_.path() + "/data";
    auto prefix = limited_by(team, work, under, limit);
    if (!prefix) return prefix.error();
    spec.prefix = std::move(*prefix);
    if (is_swapd(under)) spec.class_name = limited_class;
    ::sync();
    if (Status added = team.add(spec); !added) return added.error();
    const auto begin = std::chrono::steady_clock::now();
    if (Status begun = team.begin(); !begun) return begun.error();
    const std::chrono::milliseconds length(std::llround(context_.options.seconds * 1000));
    if (const auto early = team.line_of(0, length); early || early.error().code() != ETIMEDOUT)
      return early ? Error(EPROTO, "the mover said '" + *early + "'") : early.error();
    const double bytes = team.shared().sample_ms.at(0);
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (const auto ended = team.finish_after_done(); !ended) return ended.error();
    return bytes / took;
  }

  // Whether a user without privileges may limit a program of their own so.
  Result<bool> unprivileged(const std::string& under) {
    std::vector<std::string> words;
    std::unique_ptr<TempDir> dir;
    std::unique_ptr<Daemon> daemon;
    if (under == "trickle") {
      words = {path_of("trickle"), "-s", "-u", "100", "/bin/true"};
    } else if (under == "ionice") {
      words = {path_of("ionice"), "-c", "3", "/bin/true"};
    } else if (under == "block-throttle") {
      const auto group = disk_.limited_group(1 << 20);
      if (!group) return group.error();
      words = {"/bin/sh", "-c", "echo 0 >" + *group + "/cgroup.procs"};
    } else if (is_swapd(under)) {
      auto made = TempDir::create();
      if (!made) return made.error();
      dir = std::make_unique<TempDir>(std::move(*made));
      auto started = Daemon::start(context_.options, dir->path());
      if (!started) return started.error();
      daemon = std::make_unique<Daemon>(std::move(*started));
      // So that it is swapd who says no.
      if (::chmod(dir->path().c_str(), 0711) != 0 || ::chmod(daemon->socket().c_str(), 0666) != 0)
        return errno_error(dir->path());
      words = {context_.options.swapctl, "--socket", daemon->socket(), "class", "create", "mine", "--read", "1MiB"};
    } else {
      return true;
    }
    words.insert(words.begin(), {path_of("setpriv"), "--reuid", std::to_string(nobody), "--regid",
                                 std::to_string(nobody), "--clear-groups"});
    int status = 0;
    const auto output = run_for_output(Spawn{.argv = words, .errors = "/dev/null"}, status, std::chrono::seconds(10));
    if (!output) return output.error();
    return status == 0;
  }

 private:
  // What to start it with.
  Result<std::vector<std::string>> limited_by(const Team& team, const Movement& work, const std::string& under,
                                              double limit) {
    using Words = std::vector<std::string>;
    if (is_swapd(under)) {
      Words verb = {"class",
                    "create",
                    limited_class,
                    "--both",
                    std::to_string(std::llround(limit)),
                    "--mode",
                    under == "swapd-device" ? "device" : "logical"};
      if (work.network) verb.emplace_back("--network");
      if (Status set = team.daemon()->order(verb); !set) return set.error();
      return Words{};
    }
    // It counts in an int.
    const std::string kib = std::to_string(std::llround(std::min(limit / 1024, 2e6)));
    if (under == "trickle") return Words{path_of("trickle"), "-s", "-u", kib, "-d", kib};
    if (under == "ionice") return Words{path_of("ionice"), "-c", "3"};
    if (under == "block-throttle") {
      const auto group = disk_.limited_group(static_cast<std::uint64_t>(limit));
      if (!group) return group.error();
      return Words{"/bin/sh", "-c", "echo $$ >" + *group + "/cgroup.procs && exec \"$@\"", "sh"};
    }
    return Words{};
  }

  const Context& context_;
  SlowDisk& disk_;
};

struct Cell {
  const Movement* work;
  const Rival* rival;
  std::vector<double> limited, free;  // bytes a second, of each repeat
};

}  // namespace

Result<std::vector<nlohmann::json>> run_shape_rivals(const Context& context) {
  for (const char* program : {"trickle", "ionice", "setpriv"})
    if (path_of(program).empty())
      return Error(ENOENT, std::string(program) + " is missing (scripts/packages.txt, taps)");
  auto disk = SlowDisk::make(disk_size, disk_size);
  if (!disk) return disk.error();
  if (Status made = (*disk)->write_file("data", file_size); !made) return made.error();
  Comparison comparison(context, **disk);
  const double limit = static_cast<double>(*parse_size(context.options.rates.front()));

  std::vector<Cell> cells;
  for (const Movement& work : movements)
    for (const Rival& rival : rivals)
      if (work.network ? rival.network : rival.disk) cells.push_back({&work, &rival, {}, {}});
  for (int r = 0; r < context.options.repeat; ++r) {
    for (Cell& cell : cells) {
      for (auto& [rates, at] : {std::pair{&cell.free, unlimited}, std::pair{&cell.limited, limit}}) {
        if (at == limit && !cell.rival->limits) continue;
        const auto rate = comparison.rate_of(*cell.work, cell.rival->name, at);
        if (!rate) return Error(rate.error()).in(std::string(cell.work->name) + " under " + cell.rival->name);
        if (context.options.progress)
          std::fprintf(stderr, "swapbench: %s, %s, %s: %.0f MiB/s\n", cell.work->name, cell.rival->name,
                       at == limit ? "limited" : "free", *rate / (1 << 20));
        rates->push_back(*rate);
      }
    }
  }

  std::vector<nlohmann::json> lines;
  const Cell* plain = nullptr;
  for (const Cell& cell : cells) {
    const std::string under = cell.rival->name;
    if (under == "vanilla") plain = &cell;
    nlohmann::json line = {{"workload", context.options.workload},
                           {"mechanism", cell.work->name},
                           {"under", under},
                           {"rate_mib_s", rounded(median(cell.free) / (1 << 20))}};
    if (under != "vanilla") {
      const auto may = comparison.unprivileged(under);
      if (!may) return may.error();
      std::vector<double> throughputs;
      for (std::size_t i = 0; i < cell.free.size(); ++i) throughputs.push_back(cell.free[i] / plain->free[i]);
      line["throughput"] = rounded(median(throughputs));
      add_interval(line, "throughput", throughputs);
      if (cell.rival->limits) {
        line["limit"] = context.options.rates.front();
        line["limited_mib_s"] = rounded(median(cell.limited) / (1 << 20));
        line["deviation"] = rounded(median(cell.limited) / limit - 1);
        std::vector<double> deviations;
        for (const double rate : cell.limited) deviations.push_back(rate / limit - 1);
        add_interval(line, "deviation", deviations);
      }
      line["unprivileged"] = *may ? "yes" : "no";
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace swapd::bench
