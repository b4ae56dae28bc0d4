#include <fcntl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include "base/fd.h"
#include "cli/failure.h"
#include "cli/progress.h"
#include "cli/verbs/verbs.h"
#include "cli/words.h"

namespace swapd::cli {

namespace {

// The file, and what has gone into it. Lines begin with their type, so counting them needs no parser.
class File {
 public:
  explicit File(const std::string& name)
      : fd_(::open(name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600)), error_(fd_ ? 0 : errno) {}

  [[nodiscard]] int error() const { return error_; }

  bool write(std::string_view lines) {
    if (!begun_) (void)!::ftruncate(fd_.get(), 0);  // not before there is something to replace it with
    begun_ = true;
    count(lines);
    while (!lines.empty()) {
      const ssize_t n = ::write(fd_.get(), lines.data(), lines.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) {
        error_ = errno;
        return false;
      }
      lines.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }

  std::atomic<std::uint64_t> events{0}, decisions{0}, lost{0};
  bool whole = false;  // swapd has written the end

 private:
  void count(std::string_view lines) {
    while (!lines.empty()) {
      const std::size_t end = lines.find('\n');
      const std::string_view line = lines.substr(0, end);
      lines.remove_prefix(end == std::string_view::npos ? lines.size() : end + 1);
      const std::size_t begin = line.find(":\"");
      const std::string_view type =
          begin == std::string_view::npos ? "" : line.substr(begin + 2, line.find('"', begin + 2) - begin - 2);
      static constexpr std::array events_of = {"enrolled", "accessed", "released",     "blocked", "woken",
                                               "holders",  "execed",   "quantum-used", "exited"};
      if (type == "decided") ++decisions;
      if (type == "end") whole = true;
      if (std::find(events_of.begin(), events_of.end(), type) != events_of.end()) ++events;
      if (type == "gap")
        lost += static_cast<std::uint64_t>(std::max(0LL, cli::whole(Json::parse(line, nullptr, false), "lost")));
    }
  }

  Fd fd_;
  int error_;
  bool begun_ = false;
};

// SIGINT and SIGTERM end the recording, not the program: readable when one has come.
Fd stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  return Fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

int record(const Context& context, const std::string& name, double limit) {
  using Clock = std::chrono::steady_clock;
  Result<Client> client = Client::connect(context.socket);
  if (!client) return report(*context.err, client.error());
  const Fd stop = stop_signals();
  File file(name);
  const auto unwritable = [&] {
    return report(*context.err, failure("cannot write " + name + ": " + std::generic_category().message(file.error())));
  };
  if (file.error() != 0) return unwritable();
  const Clock::time_point begun = Clock::now();
  std::optional<Clock::time_point> until;
  if (limit > 0) until = begun + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limit));
  std::optional<Progress> progress(std::in_place, "recording for", STDERR_FILENO, [&] {
    return std::to_string(file.events) + " events, " + std::to_string(file.decisions) + " decisions";
  });
  const auto ended = client->record([&](std::string_view lines) { return file.write(lines); }, stop.get(), until);
  progress.reset();
  if (!ended) return report(*context.err, ended.error());
  if (*ended == Client::Ended::refused) return unwritable();
  const double seconds = std::round(std::chrono::duration<double>(Clock::now() - begun).count() * 1000) / 1000;
  if (context.json) {
    const Json summary = {{"events", file.events.load()},
                          {"decisions", file.decisions.load()},
                          {"lost", file.lost.load()},
                          {"whole", file.whole},
                          {"duration_s", seconds}};
    *context.out << summary.dump() << std::endl;
  } else {
    *context.out << name << ": " << file.events << " events, " << file.decisions << " decisions, " << file.lost
                 << " lost" << std::endl;
  }
  if (file.whole) return exit_done;
  return report(*context.err, failure("swapd at " + context.socket + " has not ended the recording; " + name +
                                      " is good up to its last whole line"));
}

}  // namespace

Action declare_record(CLI::App& app, Context& context) {
  auto name = std::make_shared<std::string>();
  auto seconds = std::make_shared<double>(0);
  app.add_option("FILE", *name, "Where to; an older one is replaced")->required()->type_name("");
  app.add_option("--seconds", *seconds, "End after so many seconds")
      ->check(CLI::Range(0.001, 1e9).description(""))
      ->type_name("S");
  app.footer(
      "Records until interrupted, or until swapd ends: what swapd has learnt, and what it decided. It may begin at "
      "any\n"
      "time. Where swapd is faster than the recorder, records are lost, counted, and noted in the file.\n\n"
      "Examples:\n  swapctl record --seconds 10 inversion.rec\n  swapd --replay inversion.rec");
  return [name, seconds, &context] { return record(context, *name, *seconds); };
}

}  // namespace swapd::cli
