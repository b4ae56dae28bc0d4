// swapd: options, the processes (the foreground proxy, the guard, the daemon), and what becomes of them.
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <optional>

#include "config.h"
#include "daemon.h"
#include "daemonize.h"
#include "guard/fd_store.h"
#include "guard/guard.h"
#include "log/log.h"
#include "oci_profile_file.h"
#include "options.h"
#include "record/replay_file.h"
#include "reexec.h"
#include "restore.h"
#include "simulate_file.h"
#include "sys/process/privilege.h"

namespace swapd::daemon {
namespace {

class Log {
 public:
  explicit Log(const std::string& level) { start_log(level); }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  ~Log() { stop_log(); }
};

// Tells the process that started swapd that clients are answered.
void say_ready(Fd ready, int ready_fd) {
  const char byte = 1;
  for (const int fd : {ready.get(), ready_fd})
    if (fd >= 0) (void)!::write(fd, &byte, 1);
  if (ready_fd >= 0) ::close(ready_fd);
}

// Empty: it did not start, which the log says.
std::optional<Daemon::End> run(const Daemon::Inputs& inputs, Fd ready) {
  Daemon::block_signals();
  sys::keep_needed_capabilities();
  const Log log(inputs.options.log_level);
  auto daemon = Daemon::open(inputs);
  Status started = Done{};
  if (daemon)
    started = (*daemon)->start();
  else
    started = daemon.error();
  if (!started) {
    spdlog::error("{}", started.error().text());
    return std::nullopt;
  }
  say_ready(std::move(ready), inputs.options.ready_fd);
  return (*daemon)->run();
}

int main_of(int argc, char** argv) {
  int status = 0;
  auto options = parse_options(argc, argv, status);
  if (!options) return status;
  if (options->check_config) {
    const auto policy = load_policy(*options->check_config);
    if (!policy) {
      std::cerr << "swapd: " << policy.error().context() << '\n';
      return 2;
    }
    const auto files = policy_files(*options->check_config);
    for (const std::string& file : files ? *files : std::vector<std::string>()) std::cout << file << ": good\n";
    return 0;
  }
  if (!options->replay.empty()) return replay_file(options->replay, options->json);
  if (options->oci_profile) return print_oci_profile(*options);
  if (!options->simulate.empty()) return simulate_file(options->simulate);
  if (options->restore) return restore_left(options->state_dir);
  const auto policy = load_policy(options->config);
  if (!policy) {
    std::cerr << "swapd: " << policy.error().context() << '\n';
    return 2;
  }
  const CommandLine command = own_command_line(argc, argv);
  const bool reexeced = is_reexec();
  const unsigned before = restart_count();
  if (reexeced || before > 0) options->ready_fd = -1;  // a number of the first one's
  auto ready = reexeced ? Result<Fd>(Fd()) : daemonize(options->foreground);
  if (!ready) {
    std::cerr << "swapd: " << ready.error().text() << '\n';
    return 1;
  }
  std::error_code unknown;
  options->state_dir = std::filesystem::absolute(options->state_dir, unknown);
  GuardOptions guard_options{
      .program = find_guard(), .stale = policy->policy.observe.guard_stale, .state_dir = options->state_dir};
  guard_options.restart_count = before;
  if (options->respawn || (!options->foreground && options->exit_with_pid == 0)) {
    guard_options.respawn = {command.directory, command.program};
    guard_options.respawn.insert(guard_options.respawn.end(), command.arguments.begin(), command.arguments.end());
  } else if (options->guard_socket.empty() && !options->dry_run) {  // else the guard's parent starts swapd again
    guard_options.respawn = {command.directory, command.program, "swapd",
                             "--restore",       "--state-dir",   options->state_dir};
  }
  guard_options.socket = options->guard_socket;
  FdStore store = FdStore::open();
  auto guard = Guard::start(std::move(guard_options));
  if (!guard) {
    std::cerr << "swapd: " << guard.error().text() << '\n';
    return 1;
  }
  const auto end = run({*options, *policy, command, *guard, store}, std::move(ready).value());
  if (!end) return 1;
  if (*end == Daemon::End::stopped) return 0;
  const Status failed = reexec(command);
  std::cerr << "swapd: " << failed.error().text() << '\n';
  return 1;
}

}  // namespace
}  // namespace swapd::daemon

int main(int argc, char** argv) { return swapd::daemon::main_of(argc, argv); }
