// tap-disk and tap-network: what one of two gives up the other gets [TAP08 §5]. Both run at once; the class of the
// first is limited step by step, while they run. `limited_mib_s` and `other_mib_s` are what each moved in a step,
// `sum_to_first` their sum against that of the first step, without a limit.
//
// tap-disk: two dd read files off a slow disk (slow_disk.h), as /proc/PID/io counts it; and one dd reads while another
// writes, both past the cache, on a disk that does so much of both together, as swapd counts it. tap-network: two nginx
// send a file to a wrk each, over one link of 200 Mbit/s to a network namespace, as wrk counts it.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <memory>
#include <thread>

#include "apps/apps.h"
#include "base/size.h"
#include "harness/plot.h"
#include "harness/workload.h"
#include "shaping/slow_disk.h"
#include "sys/procfs/io_counters.h"

namespace swapd::bench {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t share_disk_rate = 20 << 20, reader_file = std::uint64_t{1300} << 20;

struct Rates {
  double limited = 0, other = 0;  // MiB a second
};

// What there is to be shared, and who shares it: class "limited" and class "other".
class Pair {
 public:
  Pair() = default;
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;
  virtual ~Pair() = default;
  [[nodiscard]] virtual Status begin(const Daemon& daemon, const std::string& swapctl) = 0;
  [[nodiscard]] virtual Result<Rates> step(const Daemon& daemon, double length_s) = 0;
  [[nodiscard]] virtual bool network() const { return false; }

 protected:
  static std::vector<std::string> in_class(const Daemon& daemon, const std::string& swapctl, const std::string& name,
                                           const std::vector<std::string>& argv) {
    std::vector<std::string> out = {swapctl, "--socket", daemon.socket(), "run", "--filter", "--class", name, "--"};
    out.insert(out.end(), argv.begin(), argv.end());
    return out;
  }
  static void rest(double length_s) { std::this_thread::sleep_for(milliseconds(std::llround(length_s * 1000))); }
};

class TwoReaders final : public Pair {
 public:
  explicit TwoReaders(SlowDisk& disk) : disk_(disk) {}
  ~TwoReaders() override { end_all(readers_); }
  Status begin(const Daemon& daemon, const std::string& swapctl) override {
    for (const Status& done : {disk_.throttle(false), disk_.forget(), disk_.throttle(true)})
      if (!done) return done;
    for (const char* name : {"limited", "other"}) {
      auto reader = Child::start(
          {.argv = in_class(daemon, swapctl, name,
                            {"/bin/dd", "if=" + disk_.path() + "/" + name, "of=/dev/null", "bs=64k", "status=none"})});
      if (!reader) return reader.error();
      readers_.push_back(std::move(*reader));
    }
    return Done{};
  }
  Result<Rates> step(const Daemon& /*daemon*/, double length_s) override {
    const auto before = moved();
    rest(length_s);
    const auto after = moved();
    return Rates{(after.limited - before.limited) / length_s, (after.other - before.other) / length_s};
  }

 private:
  [[nodiscard]] Rates moved() const {
    const auto of = [&](std::size_t i) {
      const auto io = sys::process_io("/proc", readers_[i].pid());
      return io ? static_cast<double>(io->read_bytes) / mebibyte : 0.0;
    };
    return {of(0), of(1)};
  }
  SlowDisk& disk_;
  std::vector<Child> readers_;
};

class ReaderAndWriter final : public Pair {
 public:
  explicit ReaderAndWriter(SlowDisk& disk) : disk_(disk) {}
  ~ReaderAndWriter() override { end_all(both_); }
  Status begin(const Daemon& daemon, const std::string& swapctl) override {
    for (const Status& done : {disk_.throttle(false), disk_.forget(), disk_.throttle(true)})
      if (!done) return done;
    const std::string file = disk_.path() + "/";
    const std::pair<const char*, std::string> work[] = {
        {"limited", "dd if=/dev/zero of=" + file + "limited bs=256k count=1024 oflag=direct conv=notrunc status=none"},
        {"other", "dd if=" + file + "other of=/dev/null bs=256k iflag=direct status=none"}};
    for (const auto& [name, line] : work) {
      auto one = Child::start(
          {.argv = in_class(daemon, swapctl, name, {"/bin/sh", "-c", "while :; do " + line + " || exit; done"}),
           .own_session = true});
      if (!one) return one.error();
      both_.push_back(std::move(*one));
    }
    return Done{};
  }
  Result<Rates> step(const Daemon& daemon, double length_s) override {
    const auto before = moved(daemon);
    rest(length_s);
    const auto after = moved(daemon);
    if (!before || !after) return before ? after.error() : before.error();
    return Rates{(after->limited - before->limited) / length_s, (after->other - before->other) / length_s};
  }

 private:
  static Result<Rates> moved(const Daemon& daemon) {
    Rates out;
    for (auto& [name, to] : {std::pair<const char*, double*>{"limited", &out.limited}, {"other", &out.other}}) {
      const auto shown = daemon.ask({"class", "show", name});
      if (!shown) return shown.error();
      for (const auto& device : (*shown)["classes"][0]["devices"])
        *to += (device["read_bytes"].get<double>() + device["written_bytes"].get<double>()) / mebibyte;
    }
    return out;
  }
  SlowDisk& disk_;
  std::vector<Child> both_;
};

// A link of 200 Mbit/s to a network namespace, and a server for each class at its near end.
class TwoServers final : public Pair {
 public:
  explicit TwoServers(std::string dir) : dir_(std::move(dir)), space_("swapbench-" + std::to_string(::getpid())) {}
  ~TwoServers() override {
    for (Child& server : servers_) server.signal(SIGTERM);
    for (Child& server : servers_) (void)server.wait(std::chrono::seconds(5));
    (void)run({"/usr/sbin/ip", "netns", "del", space_});  // and both ends of the link with it
  }
  Status set_up() const {
    const std::vector<std::vector<std::string>> commands = {
        {"/usr/sbin/ip", "netns", "add", space_},
        {"/usr/sbin/ip", "link", "add", link_, "type", "veth", "peer", "name", "far", "netns", space_},
        {"/usr/sbin/ip", "addr", "add", near_ + "/30", "dev", link_},
        {"/usr/sbin/ip", "link", "set", link_, "up"},
        {"/usr/sbin/ip", "-n", space_, "addr", "add", far_ + "/30", "dev", "far"},
        {"/usr/sbin/ip", "-n", space_, "link", "set", "far", "up"},
        {"/usr/sbin/tc", "qdisc", "add", "dev", link_, "root", "tbf", "rate", "200mbit", "burst", "256kb", "latency",
         "50ms"}};
    for (const auto& command : commands)
      if (Status done = run(command); !done) return done;
    std::ofstream(dir_ + "/blob") << std::string(1 << 20, 'x');
    return Done{};
  }
  Status begin(const Daemon& daemon, const std::string& swapctl) override {
    int port = 8080;
    for (const char* name : {"limited", "other"}) {
      const std::string own = dir_ + "/" + name;
      std::ofstream(own) << "worker_processes 1;\ndaemon off;\nuser root;\npid " << own << ".pid;\nerror_log " << own
                         << ".log;\nevents {}\nhttp { access_log off; sendfile on; server { listen " << near_ << ":"
                         << ++port << "; root " << dir_ << "; } }\n";
      auto server = Child::start({.argv = in_class(daemon, swapctl, name, {path_of("nginx"), "-c", own})});
      if (!server) return server.error();
      servers_.push_back(std::move(*server));
    }
    rest(1);
    return Done{};
  }
  Result<Rates> step(const Daemon& /*daemon*/, double length_s) override {
    Result<double> limited = Error(EIO, "wrk"), other = limited;
    std::thread first([&] { limited = load(8081, length_s); });
    other = load(8082, length_s);
    first.join();
    if (!limited || !other) return limited ? other.error() : limited.error();
    return Rates{*limited, *other};
  }
  [[nodiscard]] bool network() const override { return true; }

 private:
  static Status run(const std::vector<std::string>& command) {
    int status = 0;
    const auto output = run_for_output(command, status, std::chrono::seconds(20));
    if (!output) return output.error();
    if (status == 0) return Done{};
    std::string line;
    for (const std::string& word : command) line += word + " ";
    return Error(EIO, line + "ended with " + wait_text(status));
  }
  // MiB a second, of "Transfer/sec:     11.50MB".
  Result<double> load(int port, double length_s) const {
    int status = 0;
    const auto output = run_for_output({"/usr/sbin/ip", "netns", "exec", space_, path_of("wrk"), "-t1", "-c4", "-d",
                                        std::to_string(std::llround(length_s)) + "s", "--timeout", "20s",
                                        "http://" + near_ + ":" + std::to_string(port) + "/blob"},
                                       status, std::chrono::seconds(60 + std::llround(length_s)));
    if (!output) return output.error();
    const auto number = number_behind(*output, "Transfer/sec:");
    if (status != 0 || !number) return Error(EPROTO, "wrk: " + wait_text(status));
    const std::string rest = output->substr(output->find("Transfer/sec:"));
    const std::size_t unit = rest.find_first_of("KMGB", std::string_view("Transfer/sec:").size());
    const double scale = unit == std::string::npos || rest[unit] == 'B' ? 1 / mebibyte
                         : rest[unit] == 'K'                            ? 1 / 1024.0
                         : rest[unit] == 'G'                            ? 1024.0
                                                                        : 1.0;
    return *number * scale;
  }
  std::string dir_, space_;
  const std::string link_ = "swapbench0", near_ = "10.98.76.1", far_ = "10.98.76.2";
  std::vector<Child> servers_;
};

Result<std::vector<nlohmann::json>> share(const Context& context, const std::string& mechanism, Pair& pair,
                                          const std::vector<std::string>& limits) {
  auto dir = TempDir::create();
  if (!dir) return dir.error();
  auto daemon = Daemon::start(context.options, dir->path());
  if (!daemon) return daemon.error();
  for (const char* name : {"limited", "other"}) {
    // Counted, and never held.
    std::vector<std::string> made = {"class", "create", name, "--both", "1TiB"};
    if (pair.network()) made.emplace_back("--network");
    if (Status done = daemon->order(made); !done) return done.error();
  }
  if (Status begun = pair.begin(*daemon, context.options.swapctl); !begun) return begun.error();
  std::vector<nlohmann::json> lines;
  for (const std::string& limit : limits) {
    std::vector<std::string> set = {"class", "set", "limited", "--both", limit == "none" ? "1TiB" : limit};
    if (pair.network()) set.emplace_back("--network");
    if (Status done = daemon->order(set); !done) return done.error();
    std::this_thread::sleep_for(std::chrono::seconds(1));  // what is under way
    if (interrupted()) return Error(EINTR, "interrupted");
    const auto rates = pair.step(*daemon, context.options.seconds);
    if (!rates) return rates.error();
    const double sum = rates->limited + rates->other;
    lines.push_back({{"workload", context.options.workload},
                     {"mechanism", mechanism},
                     {"under", "swapd"},
                     {"limit", limit},
                     {"limited_mib_s", rounded(rates->limited)},
                     {"other_mib_s", rounded(rates->other)},
                     {"sum_mib_s", rounded(sum)}});
    lines.back()["sum_to_first"] = rounded(sum / lines.front()["sum_mib_s"].get<double>());
    if (context.options.progress) std::fprintf(stderr, "swapbench: %s\n", lines.back().dump().c_str());
  }
  return lines;
}

}  // namespace

Result<std::vector<nlohmann::json>> run_tap_disk(const Context& context) {
  auto disk = SlowDisk::make(2 * reader_file + (std::uint64_t{256} << 20), share_disk_rate);
  if (!disk) return disk.error();
  for (const char* name : {"limited", "other"})
    if (Status made = (*disk)->write_file(name, reader_file); !made) return made.error();
  std::vector<nlohmann::json> all;
  {
    TwoReaders readers(**disk);
    auto lines = share(context, "two-readers", readers, {"none", "8MiB", "6MiB", "4MiB", "2MiB", "512KiB"});
    if (!lines) return lines;
    all = std::move(*lines);
  }
  disk->reset();
  auto second = SlowDisk::make(std::uint64_t{1} << 30, share_disk_rate, SlowDisk::Budget::both);
  if (!second) return second.error();
  for (const char* name : {"limited", "other"})
    if (Status made = (*second)->write_file(name, std::uint64_t{256} << 20); !made) return made.error();
  ReaderAndWriter both(**second);
  auto lines = share(context, "reader-writer", both, {"none", "8MiB", "6MiB", "4MiB", "2MiB", "512KiB"});
  if (!lines) return lines;
  all.insert(all.end(), lines->begin(), lines->end());
  return all;
}

Result<std::vector<nlohmann::json>> run_tap_network(const Context& context) {
  for (const char* program : {"nginx", "wrk"})
    if (path_of(program).empty())
      return Error(ENOENT, std::string(program) + " is missing (scripts/packages.txt, apps)");
  auto dir = TempDir::create();
  if (!dir) return dir.error();
  TwoServers servers(dir->path());
  if (Status set = servers.set_up(); !set) return set.error();
  return share(context, "two-nginx", servers, {"none", "10MiB", "8MiB", "6MiB", "4MiB", "2MiB", "512KiB"});
}

std::string plot_tap_share(const std::vector<nlohmann::json>& lines) {
  Figure figure{.title = "What one of two gives up the other gets",
                .x_label = "limit of the first",
                .y_label = "MiB/s",
                .categories = {},
                .series = {{"limited", {}}, {"other", {}}, {"sum", {}}}};
  for (const auto& line : lines) {
    if (line["mechanism"] != lines.front()["mechanism"]) continue;
    figure.categories.push_back(line["limit"]);
    figure.series[0].values.push_back(line["limited_mib_s"]);
    figure.series[1].values.push_back(line["other_mib_s"]);
    figure.series[2].values.push_back(line["sum_mib_s"]);
    figure.title = line["workload"].get<std::string>() + ", " + line["mechanism"].get<std::string>() +
                   ": what one gives up the other gets";
  }
  return curves(figure);
}

}  // namespace swapd::bench
