#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "harness/team.h"
#include "sys/process/pidfd.h"
#include "sys/procfs/procfs.h"

namespace swapd::bench {

namespace {

std::string config_text(const Options& options) {
  std::string text;
  if (options.quantum_ms > 0 || !options.feedback.empty()) {
    text += "[model]\n";
    if (options.quantum_ms > 0) text += "quantum_ms = " + nlohmann::json(options.quantum_ms).dump() + "\n";
    if (!options.feedback.empty()) text += "feedback = \"" + options.feedback + "\"\n";
  }
  if (options.strict) text += "[donation]\nstrict = true\n";
  if (!options.history.empty()) text += "[observe]\nhistory = \"" + options.history + "\"\n";
  return text + options.policy;
}

std::string last_line(const std::string& path) {
  std::ifstream in(path);
  std::string line, last;
  while (std::getline(in, line)) {
    if (!line.empty()) last = line;
  }
  return last;
}

struct Left {
  pid_t pid = -1;
  Fd pidfd;
};

// Swapd's guard: it leaves after swapd, and has a socket in the state directory until then.
std::vector<Left> children_of(pid_t swapd) {
  std::vector<Left> children;
  for (const pid_t pid : sys::Procfs().children(swapd).value_or({}))
    if (auto pidfd = sys::open_pidfd(pid)) children.push_back({pid, std::move(*pidfd)});
  return children;
}

// They have become the harness's (become_harness()).
void await_end(const std::vector<Left>& children, std::chrono::milliseconds at_most) {
  for (const Left& child : children) {
    pollfd wanted{child.pidfd.get(), POLLIN, 0};
    if (::poll(&wanted, 1, static_cast<int>(at_most.count())) > 0) (void)::waitpid(child.pid, nullptr, WNOHANG);
  }
}

}  // namespace

Result<Daemon> Daemon::start(const Options& options, const std::string& dir, const DaemonPlace& place) {
  Daemon daemon;
  daemon.swapctl_ = options.swapctl;
  daemon.socket_ = dir + "/s";
  daemon.log_ = dir + "/swapd.log";
  Spawn spawn;
  spawn.cpus = place.cpus;
  spawn.network = place.network;
  spawn.argv = {options.swapd,  "--foreground", "--bus", "none",      "--socket",
                daemon.socket_, "--state-dir",  dir,     "--observe", options.observe};
  if (const std::string text = config_text(options); !text.empty()) {
    const std::string path = dir + "/swapd.toml";
    std::ofstream(path) << text;
    spawn.argv.insert(spawn.argv.end(), {"--config", path});
  }
  if (options.wrong_providers > 0)
    spawn.argv.insert(spawn.argv.end(), {"--inject-wrong-provider", wrong_provider_name});
  spawn.own_session = true;  // as a service has it: what swapd does to its own autogroup stays there
  spawn.output = spawn.errors = daemon.log_;
  spawn.death_signal = SIGTERM;
  auto child = Child::start(spawn);
  if (!child) return child.error();
  daemon.child_ = std::move(*child);

  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(15);
  while (std::chrono::steady_clock::now() < until && !interrupted()) {
    const auto ended = daemon.child_.wait(std::chrono::milliseconds(10));
    if (ended) return Error(ECHILD, "swapd ended (" + wait_text(*ended) + "): " + last_line(daemon.log_));
    if (::access(daemon.socket_.c_str(), F_OK) == 0 && daemon.ask({"status"})) return daemon;
  }
  if (interrupted()) return Error(EINTR, "starting swapd");
  return Error(ETIMEDOUT, "swapd does not answer: " + last_line(daemon.log_));
}

Result<nlohmann::json> Daemon::ask(const std::vector<std::string>& verb) const {
  std::vector<std::string> argv = {swapctl_, "--socket", socket_};
  argv.insert(argv.end(), verb.begin(), verb.end());
  argv.emplace_back("--json");
  int status = 0;
  const auto text = run_for_output(argv, status, std::chrono::seconds(10));
  if (!text) return text.error();
  if (status != 0) return Error(EPROTO, "swapctl " + verb.at(0) + ": " + wait_text(status));
  auto json = nlohmann::json::parse(*text, nullptr, false);
  if (json.is_discarded()) return Error(EPROTO, "swapctl " + verb.at(0) + ": not JSON");
  return json;
}

Status Daemon::order(const std::vector<std::string>& verb) const {
  std::vector<std::string> argv = {swapctl_, "--socket", socket_};
  argv.insert(argv.end(), verb.begin(), verb.end());
  int status = 0;
  if (const auto text = run_for_output(argv, status, std::chrono::seconds(10)); !text) return text.error();
  if (status != 0) return Error(EPROTO, "swapctl " + verb.at(0) + ": " + wait_text(status));
  return Done{};
}

Status Daemon::stop() {
  if (!child_.running()) return Done{};
  const std::vector<Left> left = children_of(child_.pid());
  child_.signal(SIGTERM);
  const auto ended = child_.wait(std::chrono::seconds(10));
  if (!ended) return Error(ended.error()).in("ending swapd");
  await_end(left, std::chrono::seconds(5));
  if (*ended != 0) return Error(EPROTO, "swapd ended with " + wait_text(*ended) + ": " + last_line(log_));
  return Done{};
}

}  // namespace swapd::bench
