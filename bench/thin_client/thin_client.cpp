// thin-client: sessions of a thin-client server ([SWAP04 §5.3]). Each has an X server of its own (Xvnc), a viewer that
// takes every update of the screen, and a video player. One more session's program is important, and its X server is an
// ordinary process: as long as the X servers and players of the others want more CPU than there is, the important
// player waits for a server that waits for a CPU.
//
// mplayer plays a film at its pace, asks the X server to draw each frame and waits until that is done (XSync). It then
// says so on its standard output, and these lines are counted. It drops no frame: a delay of up to 200 ms it makes up
// for in a burst, so that only the frames that came in time tell what there was to see.
#include "thin_client/thin_client.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "harness/usage.h"
#include "harness/workload.h"
#include "thin_client/audience.h"
#include "thin_client/pages.h"
#include "thin_client/session.h"

namespace swapd::bench {
namespace {

using SteadyTime = std::chrono::steady_clock;
using Times = std::vector<SteadyTime::time_point>;

constexpr std::chrono::seconds sessions_begin{90};
constexpr double sessions_settle_s = 2, player_gives_up_s = 0.2, film_spare_s = 60;

struct SessionRun {
  double figure = 0;  // frames in time a second, or seconds a page
  double speed = 0;   // the same so that more is better
  double drawn_per_s = 0, others_updates_per_s = 0, updates_per_s = 0, swapd_share = 0;
  double events_lost = 0, donations = 0, engine_share = 0, worker_share = 0;
};

Status let_pass(std::vector<Session>& sessions, double seconds) {
  const auto until = SteadyTime::now() + std::chrono::duration<double>(seconds);
  while (SteadyTime::now() < until) {
    if (interrupted()) return Error(EINTR, "interrupted");
    ::usleep(20'000);
  }
  for (Session& session : sessions)
    if (const auto gone = session.ended()) return Error(ECHILD, *gone + " has ended");
  return Done{};
}

Window window_of(const Times& all, SteadyTime::time_point from, SteadyTime::time_point to) {
  Window window{.length_s = std::chrono::duration<double>(to - from).count(), .at_s = {}};
  for (const auto& at : all)
    if (at >= from && at < to) window.at_s.push_back(std::chrono::duration<double>(at - from).count());
  return window;
}

// One configuration: the sessions, the important one first, and all that looks at them.
class Server {
 public:
  Server(const Context& context, const Setup& setup, std::string film, std::string dir)
      : context_(context), setup_(setup), film_(std::move(film)), dir_(std::move(dir)) {}
  ~Server() { end_sessions(sessions_); }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  Result<SessionRun> measure() {
    if (setup_.under == "swapd") {
      auto started = Daemon::start(context_.options, dir_);
      if (!started) return started.error();
      daemon_.emplace(std::move(*started));
    }
    for (const auto& step : {&Server::open_servers, &Server::start_programs, &Server::await_load})
      if (Status done = (this->*step)(); !done) return done.error();
    if (Status settled = let_pass(sessions_, sessions_settle_s); !settled) return settled.error();
    auto run = window();
    end_sessions(sessions_);
    if (daemon_)
      if (Status stopped = daemon_->stop(); run && !stopped) return stopped.error();
    return run;
  }

 private:
  [[nodiscard]] bool browser() const { return setup_.mechanism == "vnc-browser"; }
  [[nodiscard]] int others() const { return setup_.extra["sessions"].get<int>(); }
  Status open_servers() {
    const SchedAttr& client = context_.options.client;
    for (int i = 0; i <= others(); ++i) {
      const bool by_hand_too = i == 0 && setup_.under == "hand-set";
      auto session = Session::open(dir_ + "/" + std::to_string(i), context_.cpus,
                                   by_hand_too ? std::optional(by_hand(client)) : std::nullopt);
      if (!session) return session.error();
      sessions_.push_back(std::move(*session));
      if (Status added = audience_.add_viewer(sessions_.back().viewer_socket()); !added) return added;
    }
    return Done{};
  }
  Status start_programs() {
    const SchedAttr& client = context_.options.client;
    Status important = Done{};
    if (browser()) {
      if (Status served = pages_.start(); !served) return served;
      important = sessions_.front().browse(pages_.first(), client);
    } else {
      const std::string fifo = dir_ + "/frames";
      if (::mkfifo(fifo.c_str(), 0600) != 0) return errno_error(fifo);
      if (Status added = audience_.add_player(fifo); !added) return added;
      important = sessions_.front().play(film_, client, fifo);
    }
    audience_.start();
    for (std::size_t i = 1; important && i < sessions_.size(); ++i)
      important = sessions_[i].play(film_, std::nullopt, "/dev/null");
    return important;
  }
  [[nodiscard]] Times shown() const { return browser() ? pages_.requests() : audience_.frames(); }
  // Until every session has drawn, and swapd manages all programs.
  Status await_load() {
    const auto give_up = SteadyTime::now() + sessions_begin;
    const std::size_t programs = 2 * sessions_.size();
    for (std::string lacking = "-"; !lacking.empty();) {
      if (Status passed = let_pass(sessions_, 0.2); !passed) return passed;
      const auto updates = audience_.updates();
      lacking.clear();
      if (shown().empty()) lacking = "the important program has drawn nothing";
      if (std::ranges::any_of(updates, [](int count) { return count < 3; })) lacking = "a session shows nothing";
      if (lacking.empty() && daemon_) {
        const auto status = daemon_->ask({"status"});
        if (!status) return status.error();
        if ((*status)["managed_processes"].get<std::size_t>() < programs)
          lacking = "swapd does not manage all programs";
      }
      if (SteadyTime::now() > give_up) return Error(ETIMEDOUT, lacking.empty() ? "the sessions are slow" : lacking);
    }
    return Done{};
  }
  Result<nlohmann::json> counters() const {
    if (!daemon_) return nlohmann::json{};
    return daemon_->ask({"status"});
  }
  Result<SessionRun> window() {
    const auto counted = counters();
    if (!counted) return counted.error();
    const auto updates = audience_.updates();
    const double swapd_s = daemon_ ? process_cpu_s(daemon_->pid()) : 0;
    const auto from = SteadyTime::now();
    if (Status passed = let_pass(sessions_, context_.options.seconds); !passed) return passed.error();
    const auto to = SteadyTime::now();
    const Window all = window_of(shown(), from, to);
    SessionRun run;
    run.swapd_share = daemon_ ? (process_cpu_s(daemon_->pid()) - swapd_s) / all.length_s : 0;
    const auto later = audience_.updates();
    for (std::size_t i = 0; i < later.size(); ++i) {
      const double each = (later[i] - updates[i]) / all.length_s;
      (i == 0 ? run.updates_per_s : run.others_updates_per_s) += i == 0 ? each : each / others();
    }
    run.figure = browser() ? seconds_each(all) : rate_in_time(all, 1 / film_frames_per_s, player_gives_up_s);
    run.speed = browser() ? 1 / run.figure : run.figure;
    run.drawn_per_s = rate_of_all(all);
    if (!daemon_) return run;
    const auto counted_later = counters();
    if (!counted_later) return counted_later.error();
    const auto since = [&](const char* field) {
      return (*counted_later)[field].get<double>() - (*counted)[field].get<double>();
    };
    run.events_lost = since("events_lost");
    run.donations = since("donations_total");
    run.engine_share = since("engine_cpu_s") / all.length_s;
    run.worker_share = since("worker_cpu_s") / all.length_s;
    return run;
  }

  const Context& context_;
  const Setup& setup_;
  std::string film_, dir_;
  std::optional<Daemon> daemon_;  // outlives what it manages
  PageServer pages_;
  std::vector<Session> sessions_;
  Audience audience_;
};

// By player, sessions and under; a run for each repeat.
using SessionRuns = std::map<std::tuple<std::string, int, std::string>, std::vector<SessionRun>>;

std::vector<double> figures_of(const std::vector<SessionRun>& runs, double SessionRun::*member) {
  std::vector<double> values;
  values.reserve(runs.size());
  for (const SessionRun& run : runs) values.push_back(run.*member);
  return values;
}

void add_thin_figures(Row& row, SessionRuns& runs) {
  const std::string& player = row.setup.mechanism;
  const auto& own = runs[{player, row.setup.extra["sessions"], row.setup.under}];
  const auto& unloaded = runs[{player, 0, "vanilla"}];
  const bool browser = player == "vnc-browser";
  const char* figure = browser ? "page_s" : "frames_per_s";
  const auto figures = figures_of(own, &SessionRun::figure);
  row.extra[figure] = rounded(median(figures));
  add_interval(row.extra, figure, figures);
  row.extra["updates_per_s"] = rounded(median(figures_of(own, &SessionRun::updates_per_s)));
  row.extra["others_updates_per_s"] = rounded(median(figures_of(own, &SessionRun::others_updates_per_s)));
  if (!browser) row.extra["drawn_per_s"] = rounded(median(figures_of(own, &SessionRun::drawn_per_s)));
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(own.size(), unloaded.size()); ++i)
    if (unloaded[i].speed > 0) ratios.push_back(own[i].speed / unloaded[i].speed);
  row.extra["ratio"] = rounded(median(ratios));
  add_interval(row.extra, "ratio", ratios);
  row.extra["n"] = own.size();
  if (row.setup.under != "swapd") return;
  row.extra["swapd_cpu_share"] = rounded(median(figures_of(own, &SessionRun::swapd_share)));
  row.extra["engine_cpu_share"] = rounded(median(figures_of(own, &SessionRun::engine_share)));
  row.extra["worker_cpu_share"] = rounded(median(figures_of(own, &SessionRun::worker_share)));
  row.extra["events_lost"] = median(figures_of(own, &SessionRun::events_lost));
  row.extra["donations"] = median(figures_of(own, &SessionRun::donations));
}

std::vector<Setup> thin_setups(const Options& options) {
  std::vector<Setup> setups;
  for (const std::string& player : options.thin.players) {
    const auto add = [&](const std::string& under, int sessions) {
      Setup setup{.mechanism = player, .under = under, .iterations = 1};
      setup.extra = {{"sessions", sessions}, {"seconds", options.seconds}};
      if (std::ranges::none_of(setups, [&](const Setup& s) { return s.under == under && s.group() == setup.group(); }))
        setups.push_back(std::move(setup));
    };
    add("vanilla", 0);  // what all are compared with
    for (const int sessions : options.thin.sessions)
      for (const std::string& under : options.under) add(under, sessions);
  }
  return setups;
}

Result<SessionRun> one_server(const Context& context, const Setup& setup, const std::string& film) {
  auto dir = TempDir::create();
  if (!dir) return dir.error();
  if (context.options.progress)
    std::fprintf(stderr, "swapbench: %d background sessions\n", setup.extra["sessions"].get<int>());
  Server stage(context, setup, film, dir->path());
  return stage.measure();
}

}  // namespace

double rate_of_all(const Window& window) {
  return window.length_s > 0 ? static_cast<double>(window.at_s.size()) / window.length_s : 0;
}

double rate_in_time(const Window& window, double period_s, double gives_up_s) {
  if (window.at_s.empty() || window.length_s <= 0) return 0;
  int in_time = 0;
  double due = window.at_s.front();
  for (const double at : window.at_s) {
    due = std::min(due, at);  // the player is never early: the frames before were late
    const double late = at - due;
    if (late <= period_s / 2) ++in_time;
    due = (late > gives_up_s ? at : due) + period_s;
  }
  return in_time / window.length_s;
}

double seconds_each(const Window& window) {
  return window.length_s / std::max(1.0, static_cast<double>(window.at_s.size()));
}

Result<std::vector<nlohmann::json>> run_thin_client(const Context& context) {
  const Options& options = context.options;
  auto dir = TempDir::create();
  if (!dir) return dir.error();
  const std::string film = dir->path() + "/film.mpg";
  if (Status made = make_test_film(film, options.seconds + film_spare_s); !made) return made.error();
  SessionRuns runs;
  std::vector<Case> cases;
  for (Setup& setup : thin_setups(options)) {
    cases.push_back({std::move(setup), [&](const Setup& s) -> Result<Measured> {
                       auto run = one_server(context, s, film);
                       if (!run) return run.error();
                       runs[{s.mechanism, s.extra["sessions"], s.under}].push_back(*run);
                       return Measured{.samples_ms = {1000 / std::max(run->speed, 1 / options.seconds)}};
                     }});
  }
  auto rows = measure(cases, options.repeat, options.progress);
  if (!rows) return rows.error();
  for (Row& row : *rows) add_thin_figures(row, runs);
  auto all = lines(*rows, options);
  for (auto& line : all)  // "idle" would be the same sessions without hogs, of which there are none
    for (const char* field : {"to_idle", "p50_to_idle"}) line.erase(field);
  return all;
}

}  // namespace swapd::bench
