// tap-stream: a stream beside twelve greedy readers ([TAP08 §5]: "VLC"). ffmpeg plays a film off a slow disk at its
// pace, and whoever watches counts the frames that are not there in time; three seconds later twelve cats read other
// files off the same disk. Without limits, with limits set by hand, and with one that swapd finds (class `batch`
// protects class `stream`, which needs the film's rate).
//
// The viewer begins once a second of the film is there. `missed`: frames in the first ten seconds of the load, which
// swapd may take; `missed_later`: after that. `others_mib_s`: what the cats moved after those ten seconds, and
// `to_best` its part of what they moved under the highest limit by hand under which nothing was missed later.
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <map>
#include <thread>

#include "apps/apps.h"
#include "base/size.h"
#include "harness/plot.h"
#include "harness/workload.h"
#include "shaping/slow_disk.h"
#include "sys/procfs/io_counters.h"

namespace swapd::bench {
namespace {

using SteadyTime = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int cats = 12;
constexpr std::uint64_t stream_disk_rate = 20 << 20, disk_size = std::uint64_t{3072} << 20, cat_file = 160 << 20;
constexpr double film_bits = 16e6;  // a second; constant, so that a byte's place says when it is due
constexpr double film_rate = film_bits / 8, frame_s = 0.04, prebuffer_s = 1;
constexpr std::chrono::seconds lead{3}, taken{10};

// Reads the film out of a FIFO, and sees for each frame whether it is there when it is due.
class Viewer {
 public:
  explicit Viewer(const std::string& fifo)
      : fifo_(::open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)), thread_([this] { watch(); }) {}
  ~Viewer() { stop(); }
  Viewer(const Viewer&) = delete;
  Viewer& operator=(const Viewer&) = delete;
  void stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  [[nodiscard]] bool playing() const { return playing_; }
  // When the missed ones were due. Once it is stopped.
  [[nodiscard]] const std::vector<SteadyTime::time_point>& missed() const { return missed_; }
  [[nodiscard]] int frames() const { return frames_; }

 private:
  void take(std::chrono::nanoseconds within) {
    pollfd entry{fifo_.get(), POLLIN, 0};
    const auto ms = std::chrono::ceil<milliseconds>(within).count();
    if (::poll(&entry, 1, static_cast<int>(std::max<long>(ms, 0))) != 1) return;
    const ssize_t n = ::read(fifo_.get(), buffer_.data(), buffer_.size());
    if (n > 0) got_ += static_cast<double>(n);
    if (n == 0) std::this_thread::sleep_for(milliseconds(1));  // nobody writes yet, or any more
  }
  void watch() {
    while (!stop_ && got_ < film_rate * prebuffer_s) take(milliseconds(20));
    playing_ = true;
    const auto begun = SteadyTime::now();
    while (!stop_) {
      const auto due = begun + std::chrono::duration_cast<SteadyTime::duration>(
                                   std::chrono::duration<double>(frame_s * (frames_ + 1)));
      while (!stop_ && SteadyTime::now() < due) take(due - SteadyTime::now());
      ++frames_;
      if (got_ < film_rate * frame_s * frames_) missed_.push_back(due);
    }
  }
  Fd fifo_;
  std::vector<char> buffer_ = std::vector<char>(256 << 10);
  double got_ = 0;
  int frames_ = 0;
  std::vector<SteadyTime::time_point> missed_;
  std::atomic<bool> stop_{false}, playing_{false};
  std::thread thread_;
};

Status make_film(const SlowDisk& disk, double length_s) {
  int status = 0;
  const auto made = run_for_output({path_of("ffmpeg"),
                                    "-v",
                                    "error",
                                    "-y",
                                    "-f",
                                    "lavfi",
                                    "-i",
                                    "testsrc2=size=640x480:rate=25",
                                    "-t",
                                    std::to_string(length_s),
                                    "-c:v",
                                    "mpeg2video",
                                    "-b:v",
                                    "14M",
                                    "-minrate",
                                    "14M",
                                    "-maxrate",
                                    "14M",
                                    "-bufsize",
                                    "2M",
                                    "-f",
                                    "mpegts",
                                    "-muxrate",
                                    std::to_string(static_cast<long>(film_bits)),
                                    disk.path() + "/film.ts"},
                                   status, std::chrono::seconds(300));
  if (!made) return made.error();
  return status == 0 ? Status(Done{}) : Status(Error(EIO, "ffmpeg: " + wait_text(status)));
}

double read_bytes(const std::vector<Child>& readers) {
  double sum = 0;
  for (const Child& one : readers)
    if (const auto io = sys::process_io("/proc", one.pid())) sum += static_cast<double>(io->read_bytes);
  return sum;
}

Status limit(const Daemon& daemon, const std::string& batch) {
  if (Status made = daemon.order({"class", "create", "stream"}); !made) return made;
  std::vector<std::string> verb = {"class", "create", "batch"};
  const std::vector<std::string> found = {"--protects", "stream", "--need-rate",
                                          std::to_string(static_cast<long>(film_rate))};
  const std::vector<std::string> by_hand = {"--both", batch};
  const auto& more = batch == "auto" ? found : by_hand;
  verb.insert(verb.end(), more.begin(), more.end());
  return daemon.order(verb);
}

Result<Measured> run_once(const Context& context, SlowDisk& disk, const Setup& setup) {
  auto dir = TempDir::create();
  if (!dir) return dir.error();
  for (const Status& done : {disk.throttle(false), disk.forget(), disk.throttle(true)})
    if (!done) return done.error();
  std::optional<Daemon> daemon;
  const auto in_class = [&](const std::string& name, std::vector<std::string> argv) {
    if (!daemon) return argv;
    std::vector<std::string> front = {
        context.options.swapctl, "--socket", daemon->socket(), "run", "--filter", "--class", name, "--"};
    front.insert(front.end(), argv.begin(), argv.end());
    return front;
  };
  if (setup.under != "vanilla") {
    auto started = Daemon::start(context.options, dir->path());
    if (!started) return started.error();
    daemon.emplace(std::move(*started));
    if (Status set = limit(*daemon, setup.extra["limit"]); !set) return set.error();
  }
  const std::string fifo = dir->path() + "/film";
  if (::mkfifo(fifo.c_str(), 0600) != 0) return errno_error(fifo);
  Viewer viewer(fifo);
  auto film =
      Child::start({.argv = in_class("stream", {path_of("ffmpeg"), "-nostdin", "-v", "quiet", "-re", "-i",
                                                disk.path() + "/film.ts", "-c", "copy", "-f", "mpegts", "-muxrate",
                                                std::to_string(static_cast<long>(film_bits)), "pipe:1"}),
                    .output = fifo,
                    .errors = "/dev/null"});
  if (!film) return film.error();
  const auto give_up = SteadyTime::now() + std::chrono::seconds(30);
  while (!viewer.playing() && SteadyTime::now() < give_up && !interrupted()) ::usleep(10'000);
  if (!viewer.playing()) return Error(ETIMEDOUT, "the film does not begin");
  std::this_thread::sleep_for(lead);
  std::vector<Child> readers;
  for (int i = 0; i < cats; ++i) {
    auto cat = Child::start(
        {.argv = in_class("batch", {"/bin/cat", disk.path() + "/f" + std::to_string(i)}), .errors = "/dev/null"});
    if (!cat) return cat.error();
    readers.push_back(std::move(*cat));
  }
  const auto loaded = SteadyTime::now();
  std::vector<double> moved;
  const int length = static_cast<int>(context.options.seconds);
  for (int second = 0; second <= length; ++second) {
    while (SteadyTime::now() < loaded + std::chrono::seconds(second) && !interrupted()) ::usleep(10'000);
    moved.push_back(read_bytes(readers));
  }
  viewer.stop();
  film->kill();
  end_all(readers);
  if (daemon)
    if (Status stopped = daemon->stop(); !stopped) return stopped.error();

  Measured out;
  std::vector<double> missed_by_second(static_cast<std::size_t>(length), 0);
  double before = 0, later = 0;
  for (const auto& due : viewer.missed()) {
    if (due < loaded) continue;
    const auto second = static_cast<std::size_t>((due - loaded) / std::chrono::seconds(1));
    if (second < missed_by_second.size()) ++missed_by_second[second];
    ++(due < loaded + taken ? before : later);
  }
  std::vector<double> mib_by_second;
  for (std::size_t i = 1; i < moved.size(); ++i) mib_by_second.push_back(rounded((moved[i] - moved[i - 1]) / mebibyte));
  out.samples_ms = missed_by_second;
  const auto from = static_cast<std::size_t>(taken / std::chrono::seconds(1));
  out.extra = {{"missed", before},
               {"missed_later", later},
               {"others_mib_s", rounded((moved.back() - moved[from]) / mebibyte /
                                        static_cast<double>(length - taken / std::chrono::seconds(1)))},
               {"missed_by_second", missed_by_second},
               {"others_mib_by_second", mib_by_second}};
  return out;
}

// What repeats gave, one after the other: medians, and all of them.
nlohmann::json line_of(const Options& options, const Setup& setup, const std::vector<Measured>& all) {
  nlohmann::json line = {
      {"workload", options.workload}, {"mechanism", setup.mechanism}, {"under", setup.under}, {"repeat", all.size()}};
  line.update(setup.extra);
  for (const char* key : {"missed", "missed_later", "others_mib_s"}) {
    std::vector<double> values;
    for (const Measured& one : all) values.push_back(one.extra[key]);
    line[key] = rounded(median(values));
    line[std::string(key) + "_all"] = values;
    add_interval(line, key, values);
  }
  for (const char* key : {"missed_by_second", "others_mib_by_second"}) line[key] = all.back().extra[key];
  return line;
}

void compare(std::vector<nlohmann::json>& lines) {
  double best = 0;
  for (const auto& line : lines)
    if (line["under"] == "hand-set" && line["missed_later"] == 0.0)
      best = std::max(best, line["others_mib_s"].get<double>());
  for (auto& line : lines)
    if (best > 0) line["to_best"] = rounded(line["others_mib_s"].get<double>() / best);
}

}  // namespace

Result<std::vector<nlohmann::json>> run_tap_stream(const Context& context) {
  if (path_of("ffmpeg").empty()) return Error(ENOENT, "ffmpeg is missing (Debian package ffmpeg)");
  const Options& options = context.options;
  if (options.seconds < 15) return Error(EINVAL, "tap-stream: --seconds is 15 or more");
  auto disk = SlowDisk::make(disk_size, stream_disk_rate);
  if (!disk) return disk.error();
  const double length = options.seconds + 10 + std::chrono::duration<double>(lead).count();
  if (Status made = make_film(**disk, length); !made) return made.error();
  for (int i = 0; i < cats; ++i)
    if (Status made = (*disk)->write_file("f" + std::to_string(i), cat_file); !made) return made.error();
  std::vector<Setup> setups;
  const auto add = [&](const std::string& under, const std::string& with) {
    if (std::ranges::find(options.under, under) == options.under.end()) return;
    Setup setup{.mechanism = "ffmpeg", .under = under};
    setup.extra["limit"] = with;
    setups.push_back(std::move(setup));
  };
  add("vanilla", "none");
  for (const std::string& by_hand : options.limits) add("hand-set", by_hand);
  add("swapd", "auto");
  std::vector<std::vector<Measured>> measured(setups.size());
  for (int r = 0; r < options.repeat; ++r) {
    for (std::size_t i = 0; i < setups.size(); ++i) {
      if (options.progress)
        std::fprintf(stderr, "swapbench: repeat %d of %d: %s, limit %s\n", r + 1, options.repeat,
                     setups[i].under.c_str(), setups[i].extra["limit"].get<std::string>().c_str());
      auto one = run_once(context, **disk, setups[i]);
      if (interrupted()) return Error(EINTR, "interrupted");
      if (!one) return Error(one.error()).in("under " + setups[i].under);
      measured[i].push_back(std::move(*one));
    }
  }
  std::vector<nlohmann::json> lines;
  for (std::size_t i = 0; i < setups.size(); ++i) lines.push_back(line_of(options, setups[i], measured[i]));
  compare(lines);
  return lines;
}

std::string plot_tap_stream(const std::vector<nlohmann::json>& lines) {
  Figure figure{.title = "tap-stream: frames missed in each second beside twelve cats",
                .x_label = "seconds of load",
                .y_label = "frames of 25",
                .categories = {},
                .series = {}};
  for (const auto& line : lines) {
    Series series{line["under"].get<std::string>() + " " + line["limit"].get<std::string>(),
                  line["missed_by_second"].get<std::vector<double>>()};
    while (figure.categories.size() < series.values.size())
      figure.categories.push_back(std::to_string(figure.categories.size() + 1));
    figure.series.push_back(std::move(series));
  }
  return curves(figure);
}

}  // namespace swapd::bench
