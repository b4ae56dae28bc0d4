// soak: one swapd for a long time, under loads like those of a day: a chat, redis and nginx with important clients that
// come and go, beside hogs that do. What must not happen: that swapd's memory or CPU time grows, or that a thread keeps
// a boost when all loads have ended.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "apps/apps_runs.h"
#include "chat.h"
#include "harness/plot.h"
#include "harness/usage.h"
#include "sys/procfs/procfs.h"
#include "sys/sched/scheduler.h"

namespace swapd::bench {
namespace {

using SoakClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::chrono::seconds sample_each{1}, hogs_each{7}, load_lasts{8}, pause_between{3}, quiet_within{10};
constexpr int redis_guess = 30'000;  // requests a second: for redis-benchmark, which counts requests and not seconds
constexpr std::size_t points_drawn = 40;

double seconds_since(SoakClock::time_point begin) {
  return std::chrono::duration<double>(SoakClock::now() - begin).count();
}

std::string text_in(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// A server that runs all the time, and its load generator, run after run.
class AppLoad {
 public:
  AppLoad(const Context& context, const Daemon& daemon, std::string name)
      : context_(context), daemon_(daemon), name_(std::move(name)), app_(make_app(name_)) {}
  AppLoad(AppLoad&&) = delete;
  AppLoad& operator=(AppLoad&&) = delete;
  ~AppLoad() {
    end_load();
    if (!server_.running()) return;
    server_.signal(app_->stop_signal());
    (void)server_.wait(std::chrono::seconds(20));
  }

  Status open(const std::string& dir) {
    dir_ = dir + "/" + name_;
    if (::mkdir(dir_.c_str(), 0711) != 0) return errno_error(dir_);
    if (Status prepared = app_->prepare(dir_); !prepared) return Error(prepared.error()).in(name_);
    auto server = start_server(context_, *app_, front({}), dir_ + "/server.log");
    if (!server) return Error(server.error()).in(name_);
    server_ = std::move(*server);
    return Done{};
  }
  // Starts the generator, or notes what it found when it has ended.
  Status tick() {
    if (!load_.running()) return SoakClock::now() < next_ ? Status(Done{}) : start_load();
    const auto ended = load_.wait(milliseconds(0));
    if (!ended) return Done{};
    next_ = SoakClock::now() + pause_between;
    if (*ended != 0) return Error(EPROTO, name_ + "'s load generator ended with " + wait_text(*ended));
    const auto rate = app_->throughput(text_in(log()));
    if (!rate) return Error(rate.error()).in(name_);
    rates_.push_back(*rate);
    return Done{};
  }
  void end_load() { load_.kill(); }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] pid_t server() const { return server_.pid(); }
  [[nodiscard]] const std::vector<double>& rates() const { return rates_; }

 private:
  [[nodiscard]] std::string log() const { return dir_ + "/load.log"; }
  [[nodiscard]] std::vector<std::string> front(const std::vector<std::string>& priority) const {
    std::vector<std::string> words = {context_.options.swapctl, "--socket", daemon_.socket(), "run"};
    words.insert(words.end(), priority.begin(), priority.end());
    words.emplace_back("--");
    return words;
  }
  Status start_load() {
    ::unlink(log().c_str());
    Spawn spawn = app_spawn(context_, front(priority_words(context_.options.client)),
                            app_->load(static_cast<double>(load_lasts.count()), redis_guess));
    spawn.output = log();
    spawn.errors = "/dev/null";
    auto load = Child::start(spawn);
    if (!load) return Error(load.error()).in(name_);
    load_ = std::move(*load);
    return Done{};
  }

  const Context& context_;
  const Daemon& daemon_;
  std::string name_;
  std::unique_ptr<App> app_;
  std::string dir_;
  Child server_, load_;
  SoakClock::time_point next_;
  std::vector<double> rates_;
};

// Chats, one after the other, each with processes of its own.
class ChatLoad {
 public:
  ChatLoad(const Context& context, const Daemon& daemon) : context_(context), daemon_(daemon) {}
  Status tick() {
    if (!chat_) return SoakClock::now() < next_ ? Status(Done{}) : start();
    const auto said = chat_->team().line_of(0, milliseconds(5));
    if (!said && said.error().code() == ETIMEDOUT)
      return SoakClock::now() < late_ ? Status(Done{}) : Status(Error(ETIMEDOUT, "the chat does not end"));
    if (!said) return Error(said.error()).in("chat");
    const auto rate = chat_->close();
    end_load();
    if (!rate) return Error(rate.error()).in("chat");
    rates_.push_back(*rate);
    next_ = SoakClock::now() + pause_between;
    return Done{};
  }
  void end_load() { chat_.reset(); }
  [[nodiscard]] const std::vector<double>& rates() const { return rates_; }

 private:
  Status start() {
    Setup setup = chat_setup(context_.options);
    setup.under = "swapd";
    auto chat = Chat::open(context_, setup, &daemon_);
    if (!chat) return Error(chat.error()).in("chat");
    chat_.emplace(std::move(*chat));
    if (Status begun = chat_->team().begin(); !begun) return Error(begun.error()).in("chat");
    late_ = SoakClock::now() + chat_->team().limit();
    return Done{};
  }
  const Context& context_;
  const Daemon& daemon_;
  std::optional<Chat> chat_;
  SoakClock::time_point next_, late_;
  std::vector<double> rates_;
};

// The threads of a server of nice 0 that are something else now.
int boosted_threads(pid_t server) {
  const sys::Procfs procfs;
  const sys::LinuxScheduler scheduler;
  int boosted = 0;
  for (const pid_t tid : procfs.threads(server).value_or({})) {
    const auto attr = scheduler.get(tid);
    if (attr && !(*attr == SchedAttr{})) ++boosted;
  }
  for (const pid_t child : procfs.children(server).value_or({})) boosted += boosted_threads(child);
  return boosted;
}

class Soak {
 public:
  Soak(const Context& context, Daemon daemon)
      : context_(context),
        daemon_(std::move(daemon)),
        redis_(context, daemon_, "redis"),
        nginx_(context, daemon_, "nginx"),
        chat_(context, daemon_) {}
  ~Soak() { end_all(hogs_); }
  Soak(const Soak&) = delete;
  Soak& operator=(const Soak&) = delete;

  Status open(const std::string& dir) {
    if (Status opened = redis_.open(dir); !opened) return opened;
    return nginx_.open(dir);
  }
  // Samples and the summary. What went wrong is in the summary, with all samples up to then.
  Result<std::vector<nlohmann::json>> run() {
    const Status passed = pass(context_.options.minutes * 60);
    if (interrupted()) return Error(EINTR, "interrupted");
    const double loaded_s = seconds_since(began_);
    redis_.end_load();
    nginx_.end_load();
    chat_.end_load();
    end_all(hogs_);
    nlohmann::json summary = summary_of(loaded_s);
    std::string failure = passed ? "" : passed.error().text();
    if (const auto left = await_quiet(summary); !left && failure.empty()) failure = left.error().text();
    if (Status stopped = daemon_.stop(); !stopped && failure.empty()) failure = stopped.error().text();
    if (!failure.empty()) summary["failure"] = failure;
    samples_.push_back(std::move(summary));
    return samples_;
  }

 private:
  Status pass(double for_s) {
    began_ = SoakClock::now();
    auto next_sample = began_, next_hogs = began_;
    for (std::size_t turn = 0; seconds_since(began_) < for_s;) {
      if (SoakClock::now() >= next_hogs) {
        if (Status changed = change_hogs(turn++); !changed) return changed;
        next_hogs += hogs_each;
      }
      for (AppLoad* load : {&redis_, &nginx_})
        if (Status ticked = load->tick(); !ticked) return ticked;
      if (Status ticked = chat_.tick(); !ticked) return ticked;
      if (SoakClock::now() >= next_sample) {
        if (Status sampled = sample(); !sampled) return sampled;
        next_sample = std::max(next_sample + sample_each, SoakClock::now());
      }
      if (interrupted()) return Error(EINTR, "interrupted");
      ::usleep(20'000);
    }
    return Done{};
  }
  Status change_hogs(std::size_t turn) {
    const auto& counts = context_.options.hogs;
    end_all(hogs_);
    auto hogs = start_free_hogs(counts[turn % counts.size()], {context_.cpus, context_.options.split, 10 * hogs_each});
    if (!hogs) return hogs.error();
    hogs_ = std::move(*hogs);
    return Done{};
  }
  [[nodiscard]] nlohmann::json line(const char* mechanism) const {
    const Options& options = context_.options;
    return {{"workload", options.workload},
            {"mechanism", mechanism},
            {"under", "swapd"},
            {"observer", observer_},
            {"hogs", hogs_.size()},
            {"cpus", options.cpus},
            {"client", text(options.client)},
            {"rooms", options.chat.rooms},
            {"users", options.chat.users},
            {"messages", options.chat.messages}};
  }
  Status sample() {
    const double now_s = seconds_since(began_), used_s = tree_cpu_s(daemon_.pid());
    const auto status = daemon_.ask({"status"});
    if (!status) return Error(status.error()).in("asking swapd");
    observer_ = status->value("observer", std::string());
    nlohmann::json one = line("sample");
    one["t_s"] = rounded(now_s);
    one["rss_bytes"] = rss_bytes(daemon_.pid());
    if (sampled_s_ >= 0) one["swapd_cpu_share"] = rounded((used_s - used_s_) / (now_s - sampled_s_));
    for (const char* field : {"donations_active", "donations_total", "events_lost", "managed_threads"})
      if (status->contains(field)) one[field] = (*status)[field];
    sampled_s_ = now_s;
    used_s_ = used_s;
    samples_.push_back(std::move(one));
    return Done{};
  }
  [[nodiscard]] nlohmann::json summary_of(double loaded_s) const {
    nlohmann::json summary = line("summary");
    std::vector<double> shares, sizes;
    for (const auto& one : samples_) {
      if (one.contains("swapd_cpu_share")) shares.push_back(one["swapd_cpu_share"].get<double>());
      sizes.push_back(one["rss_bytes"].get<double>());
    }
    summary.update({{"minutes", rounded(loaded_s / 60)},
                    {"samples", samples_.size()},
                    {"swapd_cpu_share", rounded(median(shares))},
                    {"swapd_cpu_share_max", rounded(percentile(shares, 100))},
                    {"rss_bytes_first", sizes.empty() ? 0 : sizes.front()},
                    {"rss_bytes_max", percentile(sizes, 100)},
                    {"rss_bytes", sizes.empty() ? 0 : sizes.back()},
                    {"chat_runs", chat_.rates().size()},
                    {"chat_throughput", rounded(median(chat_.rates()))}});
    for (const AppLoad* load : {&redis_, &nginx_}) {
      summary[load->name() + "_runs"] = load->rates().size();
      summary[load->name() + "_throughput"] = rounded(median(load->rates()));
    }
    return summary;
  }
  // Until no thread is boosted any more, and swapd says so too.
  Status await_quiet(nlohmann::json& summary) const {
    const auto ended = SoakClock::now();
    for (;;) {
      const auto status = daemon_.ask({"status"});
      if (!status) return Error(status.error()).in("asking swapd");
      const int boosted = boosted_threads(redis_.server()) + boosted_threads(nginx_.server());
      const auto active = status->value("donations_active", 0);
      summary.update({{"threads_left_boosted", boosted},
                      {"donations_left", active},
                      {"quiet_after_s", rounded(seconds_since(ended))},
                      {"donations_total", (*status)["donations_total"]},
                      {"events_lost", (*status)["events_lost"]}});
      if (boosted == 0 && active == 0) return Done{};
      if (interrupted()) return Error(EINTR, "interrupted");
      if (SoakClock::now() > ended + quiet_within)
        return Error(EPROTO, std::to_string(boosted) + " threads boosted and " + std::to_string(active) +
                                 " donations in force after all loads have ended");
      ::usleep(50'000);
    }
  }

  const Context& context_;
  Daemon daemon_;
  AppLoad redis_, nginx_;
  ChatLoad chat_;
  std::vector<Child> hogs_;
  SoakClock::time_point began_;
  std::string observer_;
  double sampled_s_ = -1, used_s_ = 0;
  std::vector<nlohmann::json> samples_;
};

// So many points that each can be told from the next: means of neighbours.
std::vector<double> thinned(const std::vector<double>& values) {
  const std::size_t each = std::max<std::size_t>(1, (values.size() + points_drawn - 1) / points_drawn);
  std::vector<double> thin;
  for (std::size_t i = 0; i < values.size(); i += each) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(i);
    thin.push_back(mean({begin, begin + static_cast<std::ptrdiff_t>(std::min(each, values.size() - i))}));
  }
  return thin;
}

}  // namespace

Result<std::vector<nlohmann::json>> run_soak(const Context& context) {
  auto state = TempDir::create();
  if (!state) return state.error();
  auto dir = TempDir::create();
  if (!dir) return dir.error();
  if (::chmod(dir->path().c_str(), 0711) != 0) return errno_error(dir->path());
  auto daemon = Daemon::start(context.options, state->path());
  if (!daemon) return daemon.error();
  Soak soak(context, std::move(*daemon));
  if (Status opened = soak.open(dir->path()); !opened) return opened.error();
  return soak.run();
}

std::string plot_soak(const std::vector<nlohmann::json>& lines) {
  Figure figure{.title = "soak: swapd beside chat, redis and nginx",
                .x_label = "minutes",
                .y_label = "% of a CPU, MiB, donations",
                .categories = {},
                .series = {}};
  struct Curve {
    const char *name, *field;
    double factor;
  };
  std::vector<double> minutes;
  for (const auto& line : lines)
    if (line.contains("t_s")) minutes.push_back(line["t_s"].get<double>() / 60);
  for (const double minute : thinned(minutes)) {
    char label[16];
    std::snprintf(label, sizeof label, "%.1f", minute);
    figure.categories.emplace_back(label);
  }
  for (const auto& [name, field, factor] :
       {Curve{"swapd, % of a CPU", "swapd_cpu_share", 100}, Curve{"memory, MiB", "rss_bytes", 1 / mebibyte},
        Curve{"donations in force", "donations_active", 1}}) {
    std::vector<double> values;
    for (const auto& line : lines)
      if (line.contains("t_s")) values.push_back(factor * line.value(field, 0.0));
    figure.series.push_back({name, thinned(values)});
  }
  return curves(figure);
}

}  // namespace swapd::bench
