#include "reexec.h"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "config.h"
#include "guard/guard_process.h"
#include "sys/process/pidfd.h"
#include "sys/procfs/procfs.h"

namespace swapd::daemon {
namespace {

constexpr const char* reexec_variable = "SWAPD_REBORN";
constexpr auto start_within = std::chrono::seconds(5);

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

// Its exit status; -1: it cannot be started, or does not end.
int status_of(const std::string& program, std::vector<std::string> words) {
  words.insert(words.begin(), program);
  posix_spawn_file_actions_t silent;
  ::posix_spawn_file_actions_init(&silent);
  for (const int fd : {1, 2}) ::posix_spawn_file_actions_addopen(&silent, fd, "/dev/null", 1 /* O_WRONLY */, 0);
  pid_t pid = -1;
  const int failed = ::posix_spawn(&pid, program.c_str(), &silent, nullptr, pointers(words).data(), environ);
  ::posix_spawn_file_actions_destroy(&silent);
  if (failed != 0) return -1;
  const auto pidfd = sys::open_pidfd(pid);
  pollfd end{pidfd ? pidfd->get() : -1, POLLIN, 0};
  if (::poll(&end, 1, static_cast<int>(start_within / std::chrono::milliseconds(1))) != 1) ::kill(pid, SIGKILL);
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

CommandLine own_command_line(int argc, char** argv) {
  std::error_code none;
  CommandLine out;
  out.program = sys::Procfs().own_exe().value_or("");
  out.arguments.assign(argv, argv + argc);
  out.directory = std::filesystem::current_path(none).string();
  return out;
}

Status can_reexec(const CommandLine& command, const std::string& config) {
  if (status_of(command.program, {"--version"}) != 0)
    return Error(EINVAL, command.program + " does not run; nothing was changed");
  std::vector<std::string> check = {"--check-config"};
  if (!config.empty()) check.push_back(config);
  if (const auto files = policy_files(config); (!files || !files->empty()) && status_of(command.program, check) != 0)
    return Error(EINVAL, "the new swapd refuses " + (config.empty() ? "its policy" : config) +
                             " (swapd --check-config says why); nothing was changed");
  return Done{};
}

Status reexec(const CommandLine& command) {
  CommandLine copy = command;
  ::setenv(reexec_variable, "1", 1);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (::chdir(copy.directory.c_str()) == 0) ::execv(copy.program.c_str(), pointers(copy.arguments).data());
  return errno_error("starting " + copy.program + " again");
}

bool is_reexec() {
  const bool is = ::getenv(reexec_variable) != nullptr;
  ::unsetenv(reexec_variable);
  return is;
}

unsigned restart_count() {
  const char* text = ::getenv(deaths_name);
  const unsigned count = text == nullptr ? 0 : static_cast<unsigned>(std::strtoul(text, nullptr, 10));
  ::unsetenv(deaths_name);
  return count;
}

}  // namespace swapd::daemon
