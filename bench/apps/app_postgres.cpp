// PostgreSQL and pgbench. The server refuses root, so it runs as another account, whose directory is within ours.
#include <pwd.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <utility>

#include "apps/apps.h"
#include "harness/process.h"

namespace swapd::bench {

namespace {

const passwd* account() {
  const passwd* found = ::getpwnam("postgres");
  return found != nullptr ? found : ::getpwnam("nobody");
}

// What `pgbench -l` writes: a line for each transaction, in a file for each of its threads, whose fifth and sixth
// numbers are when it ended.
class TransactionLog {
 public:
  explicit TransactionLog(std::filesystem::path prefix) : prefix_(std::move(prefix)) {}

  Result<App::Progress> progress() {
    using std::chrono::system_clock;
    const double now = std::chrono::duration<double>(system_clock::now().time_since_epoch()).count();
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    for (;;) {
      find_files();
      bool complete = !files_.empty();
      for (auto& [path, at] : files_) complete = read(path, at, now) && complete;
      if (complete) return App::Progress{.at_s = now, .requests = transactions_};
      if (interrupted()) return Error(EINTR, "pgbench's log");
      if (std::chrono::steady_clock::now() > give_up) return Error(ETIMEDOUT, "pgbench logs no transactions");
      ::usleep(5'000);  // it writes some 100 lines at once
    }
  }

 private:
  void find_files() {
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(prefix_.parent_path(), none))
      if (entry.path().filename().string().starts_with(prefix_.filename().string() + "."))
        files_.try_emplace(entry.path(), 0);
  }
  // Counts what ended before `until`. True: it goes on after that.
  bool read(const std::filesystem::path& path, std::streamoff& at, double until) {
    std::ifstream in(path);
    in.seekg(at);
    for (std::string line; std::getline(in, line) && !in.eof(); at += std::ssize(line) + 1) {
      long seconds = 0, microseconds = 0;
      if (std::sscanf(line.c_str(), "%*s %*s %*s %*s %ld %ld", &seconds, &microseconds) != 2) continue;
      if (static_cast<double>(seconds) + static_cast<double>(microseconds) / 1e6 >= until) return true;
      ++transactions_;
    }
    return false;
  }
  std::filesystem::path prefix_;
  std::map<std::filesystem::path, std::streamoff> files_;  // and up to where they are counted
  double transactions_ = 0;
};

class Postgres final : public App {
 public:
  // connect: a connection for each transaction, hence a new process of the server.
  Postgres(bool select_only, bool connect) : select_only_(select_only), connect_(connect) {}

  Status prepare(const std::string& dir) override {
    dir_ = dir + "/pg";
    data_ = dir_ + "/data";
    std::filesystem::create_directory(dir_);
    if (::geteuid() == 0) {
      const passwd* user = account();
      if (user == nullptr) return Error(ENOENT, "looking for an account for PostgreSQL (postgres or nobody)");
      if (::chown(dir_.c_str(), user->pw_uid, user->pw_gid) != 0) return errno_error("chown " + dir_);
      as_user_ = {path_of("setpriv"), "--reuid=" + std::to_string(user->pw_uid),
                  "--regid=" + std::to_string(user->pw_gid), "--clear-groups",
                  // The parent-death signal is forgotten where the user changes (prctl(2)).
                  "--pdeathsig=INT"};
    }
    std::vector<std::string> words = as_user_;
    words.insert(words.end(), {path_of("initdb"), "-D", data_, "--auth=trust", "--username=bench", "--encoding=UTF8",
                               "--locale=C", "--no-sync"});
    if (Status done = run(words, std::chrono::seconds(120)); !done) return done;
    return fill();
  }
  std::vector<std::string> server() const override {
    std::vector<std::string> words = as_user_;
    words.insert(words.end(), {path_of("postgres"), "-D", data_, "-k", dir_, "-c", "listen_addresses=", "-c",
                               "fsync=off", "-c", "autovacuum=off", "-c", "max_wal_size=4GB"});
    return words;
  }
  int stop_signal() const override { return SIGINT; }  // "fast": without waiting for clients
  bool answers() const override {
    int status = 0;
    return run_for_output({path_of("pg_isready"), "-q", "-h", dir_, "-U", "bench"}, status, std::chrono::seconds(5)) &&
           status == 0;
  }
  std::vector<std::string> load(double seconds, double) const override {
    std::vector<std::string> words = pgbench();
    words.insert(words.end(), {"-n", "-c", "4", "-j", "2", "-T", std::to_string(std::max(1L, std::lround(seconds)))});
    if (select_only_) words.emplace_back("-S");
    if (connect_) words.emplace_back("-C");
    words.emplace_back("postgres");
    return words;
  }
  std::vector<std::string> live_load(double seconds, double guess, const std::string& log) override {
    std::vector<std::string> words = load(seconds, guess);
    words.insert(words.end() - 1, {"-l", "--log-prefix=" + log});
    log_.emplace(log);
    return words;
  }
  Result<Progress> progress() override {
    if (!log_) return Error(ENOENT, "pgbench's log");
    return log_->progress();
  }
  Result<double> throughput(const std::string& output) const override { return number_behind(output, "tps = "); }

 private:
  std::vector<std::string> pgbench() const { return {path_of("pgbench"), "-h", dir_, "-U", "bench"}; }
  static Status run(const std::vector<std::string>& words, std::chrono::seconds at_most) {
    int status = 0;
    const auto output = run_for_output(words, status, at_most);
    if (!output) return output.error();
    if (status != 0) return Error(EPROTO, words.at(0) + " … ended with " + wait_text(status));
    return Done{};
  }
  // The tables, with a server that runs for that alone.
  Status fill() const {
    Spawn spawn;
    spawn.argv = server();
    spawn.errors = "/dev/null";
    auto child = Child::start(spawn);
    if (!child) return child.error();
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!answers()) {
      if (interrupted()) return Error(EINTR, "starting PostgreSQL");
      if (std::chrono::steady_clock::now() > until) return Error(ETIMEDOUT, "starting PostgreSQL");
      ::usleep(50'000);
    }
    std::vector<std::string> words = pgbench();
    words.insert(words.end(), {"-i", "-q", "-s", "5", "postgres"});
    Status filled = run(words, std::chrono::seconds(120));
    child->signal(stop_signal());
    const auto ended = child->wait(std::chrono::seconds(20));
    if (!filled) return filled;
    return ended ? Status(Done{}) : Status(ended.error());
  }

  bool select_only_, connect_;
  std::optional<TransactionLog> log_;
  std::string dir_, data_;
  std::vector<std::string> as_user_;
};

}  // namespace

std::unique_ptr<App> make_postgres(std::string_view name) {
  if (name == "pgbench-select") return std::make_unique<Postgres>(true, false);
  if (name == "pgbench-tpcb") return std::make_unique<Postgres>(false, false);
  if (name == "pgbench-connect") return std::make_unique<Postgres>(true, true);
  return nullptr;
}

}  // namespace swapd::bench
