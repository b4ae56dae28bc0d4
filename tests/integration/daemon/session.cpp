#include "session.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "patience.h"
#include "programs/pid_namespace.h"
#include "sys/procfs/procfs.h"
#include "sys/sched/scheduler.h"

namespace swapd::test {

namespace {

using Clock = std::chrono::steady_clock;

// One CPU for everything of a test, hogs included: the other one is swapd's and the test's own.
void pin_to_first_cpu() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(0, &cpus);
  ::sched_setaffinity(0, sizeof cpus, &cpus);
}

pid_t spawn(const std::vector<std::string>& argv, int out, int err, bool pin) {
  std::vector<char*> raw;
  for (const std::string& a : argv) raw.push_back(const_cast<char*>(a.c_str()));
  raw.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  if (out >= 0) ::dup2(out, 1);
  if (err >= 0) ::dup2(err, 2);
  if (pin) pin_to_first_cpu();
  ::execvp(raw[0], raw.data());
  ::_exit(127);
}

int wait_for(pid_t pid, std::chrono::milliseconds limit) {
  const auto end = Clock::now() + limit * patience();
  int status = 0;
  for (;;) {
    const pid_t got = ::waitpid(pid, &status, WNOHANG);
    if (got == pid) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (got < 0 || Clock::now() > end) return -1;
    ::usleep(1000);
  }
}

std::string drain(int fd) {
  std::string text;
  std::array<char, 4096> part{};
  for (;;) {
    const ssize_t n = ::read(fd, part.data(), part.size());
    if (n <= 0) return text;
    text.append(part.data(), static_cast<std::size_t>(n));
  }
}

}  // namespace

bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds limit) {
  const auto end = Clock::now() + limit * patience();
  while (!condition()) {
    if (Clock::now() > end) return condition();
    ::usleep(2000);
  }
  return true;
}

Output run(const std::vector<std::string>& argv, std::chrono::seconds limit) {
  const std::string base = std::filesystem::temp_directory_path() / ("swapd-run-" + std::to_string(::getpid()));
  const int out = ::open((base + ".out").c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const int err = ::open((base + ".err").c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  ::unlink((base + ".out").c_str());
  ::unlink((base + ".err").c_str());
  const pid_t pid = spawn(argv, out, err, false);
  Output result;
  result.status = wait_for(pid, limit);
  if (result.status == -1) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  ::lseek(out, 0, SEEK_SET);
  ::lseek(err, 0, SEEK_SET);
  result.out = drain(out);
  result.err = drain(err);
  ::close(out);
  ::close(err);
  return result;
}

Output run_in_pid_namespace(const std::string& filter, std::chrono::seconds limit) {
  return run(in_pid_namespace({std::filesystem::read_symlink("/proc/self/exe"), "--gtest_filter=" + filter}), limit);
}

Session::Session(std::vector<std::string> extra, const std::string& config, std::vector<std::string> before) {
  if (::geteuid() != 0) {
    failure_ = "root is needed";
    return;
  }
  std::string name = std::filesystem::temp_directory_path() / "swapd-test-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) {
    failure_ = "no temporary directory";
    return;
  }
  dir_ = name;
  command_ = std::move(before);
  command_.insert(command_.end(), {SWAPD_BINARY, "--foreground", "--socket", path("s"), "--state-dir", path("state")});
  const bool lends = config.find("[donation]") != std::string::npos;
  std::ofstream(path("config.toml")) << (lends ? "" : "[donation]\nceiling_share = 1\n") << config;
  command_.insert(command_.end(), {"--config", path("config.toml")});
  command_.insert(command_.end(), extra.begin(), extra.end());
  start_daemon();
}

void Session::start_daemon() {
  std::array<int, 2> ready{};
  if (::pipe(ready.data()) != 0) return;
  std::vector<std::string> argv = command_;
  argv.insert(argv.end(), {"--ready-fd", std::to_string(ready[1])});
  ::fcntl(ready[0], F_SETFD, FD_CLOEXEC);
  pid_ = spawn(argv, -1, -1, false);
  ::close(ready[1]);
  pollfd wait{.fd = ready[0], .events = POLLIN, .revents = 0};
  char byte = 0;
  if (::poll(&wait, 1, 20000) != 1 || ::read(ready[0], &byte, 1) != 1) failure_ = "swapd did not become ready";
  ::close(ready[0]);
}

void Session::start_again() {
  if (wait_for(pid_, std::chrono::seconds(10)) == -1) failure_ = "the swapd before has not ended";
  start_daemon();
}

Session::~Session() {
  for (const pid_t child : children_) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  if (pid_ > 0) {
    ::kill(pid_, SIGTERM);
    if (wait_for(pid_, std::chrono::seconds(10)) == -1) {
      ADD_FAILURE() << "swapd did not end within 10 s of SIGTERM";
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }
  std::error_code ignored;
  if (!dir_.empty()) std::filesystem::remove_all(dir_, ignored);
}

std::string Session::pair() const { return PAIR_PROGRAM; }

pid_t Session::daemon_pid() { return json({"status"}).value("pid", -1); }

Output Session::ctl(std::vector<std::string> arguments) const {
  std::vector<std::string> argv{SWAPCTL_BINARY, "--socket", path("s")};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return run(argv);
}

nlohmann::json Session::json(std::vector<std::string> arguments) const {
  arguments.emplace_back("--json");
  const Output output = ctl(std::move(arguments));
  auto parsed = nlohmann::json::parse(output.out, nullptr, false);
  EXPECT_FALSE(parsed.is_discarded()) << output.status << ": " << output.out << output.err;
  return parsed;
}

pid_t Session::start(std::vector<std::string> options, std::vector<std::string> command) {
  std::vector<std::string> argv{SWAPCTL_BINARY, "--socket", path("s"), "run"};
  argv.insert(argv.end(), options.begin(), options.end());
  argv.emplace_back("--");
  argv.insert(argv.end(), command.begin(), command.end());
  const pid_t pid = start_plain(std::move(argv));
  std::error_code ended;
  const std::filesystem::path test = std::filesystem::read_symlink("/proc/self/exe", ended);
  const auto started = [&] {
    const auto program = std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/exe", ended);
    return program.filename() != "swapctl" && program != test;
  };
  eventually(started);
  return pid;
}

pid_t Session::start_plain(std::vector<std::string> argv) {
  const pid_t pid = spawn(argv, -1, -1, true);
  children_.push_back(pid);
  return pid;
}

int Session::wait(pid_t pid, std::chrono::seconds limit) {
  const int status = wait_for(pid, limit);
  if (status != -1) std::erase(children_, pid);
  return status;
}

void Session::kill(pid_t pid, int signal) {
  ::kill(pid, signal);
  if (signal == SIGKILL && std::ranges::find(children_, pid) != children_.end()) {
    ::waitpid(pid, nullptr, 0);
    std::erase(children_, pid);
  }
}

int Session::stop(int signal) {
  ::kill(pid_, signal);
  const int status = wait_for(pid_, std::chrono::seconds(10));
  if (status != -1) pid_ = -1;
  return status;
}

void Session::raise(const std::string& flag) const { std::ofstream(path(flag)) << ""; }
void Session::lower(const std::string& flag) const { std::filesystem::remove(path(flag)); }

KernelAttr kernel_attr(pid_t tid) {
  static const sys::LinuxScheduler scheduler;
  const auto attr = scheduler.get(tid);
  if (!attr) return {.policy = "gone"};
  return {.policy = std::string(name(attr->policy)),
          .nice = attr->nice,
          .rt_priority = attr->rt_priority,
          .slice_ns = attr->runtime_ns};
}

std::string status_field(pid_t pid, const std::string& key) {
  return status_field("/proc/" + std::to_string(pid), key);
}

std::string status_field(const std::string& directory, const std::string& key) {
  std::ifstream in(directory + "/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(key + ":")) return line.substr(line.find_first_not_of(" \t", key.size() + 1));
  return "";
}

pid_t only_child(pid_t pid) {
  const auto children = sys::Procfs().children(pid);
  return children && children->size() == 1 ? children->front() : -1;
}

std::size_t thread_count(pid_t pid) {
  const auto threads = sys::Procfs().threads(pid);
  return threads ? threads->size() : 0;
}

bool blocked_in(pid_t tid, int call) {
  const auto state = sys::Procfs().syscall(tid);
  if (!state || !state->in_call || state->nr != call) return false;
  const std::string proc = "/proc/" + std::to_string(tid);
  std::error_code none;
  const std::string program = std::filesystem::read_symlink(proc + "/exe", none).filename();
  if (program == "chrt" || program == "swapctl") return false;  // it has yet to start the program
  if (call != SYS_read) return true;
  const std::string source = std::filesystem::read_symlink(proc + "/fd/" + std::to_string(state->args[0]), none);
  return !source.ends_with(".so") && source.find(".so.") == std::string::npos;
}

std::vector<std::string> sockets_of(pid_t pid) {
  std::vector<std::string> out;
  for (int fd = 0; fd < 64; ++fd) {
    std::error_code none;
    auto target =
        std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd), none).string();
    if (!target.starts_with("socket:")) continue;
    std::erase_if(target, [](char c) { return c == '[' || c == ']'; });
    out.push_back(std::move(target));
  }
  return out;
}

}  // namespace swapd::test
