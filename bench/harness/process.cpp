#include "harness/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <utility>

#include "sys/process/pidfd.h"
#include "sys/procfs/procfs.h"
#include "sys/sched/scheduler.h"

namespace swapd::bench {

namespace {

volatile sig_atomic_t interrupt_seen = 0;

void note_interrupt(int) { interrupt_seen = 1; }

// The child's own half of the start; a message on stderr and -1 when something is not allowed here.
int prepare(const Spawn& spawn, pid_t parent) {
  const auto fail = [](const char* what) {
    std::fprintf(stderr, "swapbench: %s: %s\n", what, std::strerror(errno));
    return -1;
  };
  ::prctl(PR_SET_PDEATHSIG, spawn.death_signal);
  if (::getppid() != parent) return -1;  // the parent died before the line above
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(number, SIG_DFL);
  if (spawn.own_session && ::setsid() < 0) return fail("setsid");
  if (spawn.network >= 0 && ::setns(spawn.network, CLONE_NEWNET) != 0) return fail("setns");
  if (spawn.autogroup_nice) {
    // proc(5), /proc/PID/autogroup: the nice value of the session's group; not there when autogroups are not built in.
    const Fd group(::open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC));
    const std::string text = std::to_string(*spawn.autogroup_nice);
    if (group && ::write(group.get(), text.data(), text.size()) < 0) return fail("autogroup");
  }
  const sys::LinuxScheduler scheduler;
  if (!spawn.cpus.empty()) {
    if (const auto set = scheduler.set_affinity(0, cpu_set_of(spawn.cpus)); !set) {
      errno = set.error().code();
      return fail("sched_setaffinity");
    }
  }
  if (const auto set = scheduler.set(0, spawn.attr.value_or(SchedAttr{})); !set) {
    errno = set.error().code();
    return fail("sched_setattr");
  }
  const auto open_for_append = [](const std::string& path) {
    return Fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  };
  const Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const Fd out = open_for_append(spawn.output);
  if (!null || !out) return fail("opening standard input and output");
  ::dup2(null.get(), STDIN_FILENO);
  ::dup2(out.get(), STDOUT_FILENO);
  if (!spawn.errors.empty()) {
    const Fd errors = open_for_append(spawn.errors);
    if (!errors) return fail("opening standard error");
    ::dup2(errors.get(), STDERR_FILENO);
  }
  for (const int fd : spawn.inherit) ::fcntl(fd, F_SETFD, 0);
  return 0;
}

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = note_interrupt;  // without SA_RESTART: waits must end
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(number, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

bool interrupted() { return interrupt_seen != 0; }

void become_harness() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  auto own = sys::LinuxScheduler().get(0);
  if (!own || own->realtime()) return;
  own->nice = -20;
  (void)sys::LinuxScheduler().set(0, *own);  // not allowed: slower, nothing else
}

std::vector<std::string> reap_left_behind() {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (std::chrono::steady_clock::now() < until) {
    const pid_t pid = ::waitpid(-1, nullptr, WNOHANG);
    if (pid < 0) return {};  // ECHILD: nobody
    if (pid == 0) ::usleep(5000);
  }
  std::vector<std::string> killed;
  const sys::Procfs procfs;
  for (const pid_t pid : procfs.children(::getpid()).value_or({})) {
    killed.push_back(std::to_string(pid) + " (" + procfs.comm(pid).value_or("?") + ")");
    ::kill(pid, SIGKILL);
  }
  while (::waitpid(-1, nullptr, 0) > 0) {
  }
  return killed;
}

Result<std::vector<int>> usable_cpus(int count) {
  const auto allowed = sys::LinuxScheduler().affinity(0);
  if (!allowed) return allowed.error();
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE && static_cast<int>(cpus.size()) < count; ++cpu) {
    if (CPU_ISSET(cpu, &*allowed)) cpus.push_back(cpu);
  }
  if (static_cast<int>(cpus.size()) < count) {
    return Error(EINVAL, "--cpus " + std::to_string(count) + ": only " + std::to_string(cpus.size()) + " to be had");
  }
  return cpus;
}

cpu_set_t cpu_set_of(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  return set;
}

Child::Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)), pidfd_(std::move(other.pidfd_)) {}

Child& Child::operator=(Child&& other) noexcept {
  if (this != &other) {
    kill();
    pid_ = std::exchange(other.pid_, -1);
    pidfd_ = std::move(other.pidfd_);
  }
  return *this;
}

void Child::leave(int status) { ::_exit(status); }

Result<Child> Child::fork_into(const Spawn& spawn) {
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error("fork");
  if (pid == 0) {
    if (prepare(spawn, parent) != 0) ::_exit(126);
    return Child(0, Fd());
  }
  Child child(pid, Fd());
  auto pidfd = sys::open_pidfd(pid);
  if (!pidfd) return pidfd.error();
  child.pidfd_ = std::move(*pidfd);
  return child;
}

Result<Child> Child::start(const Spawn& spawn) {
  auto forked = fork_into(spawn);
  if (!forked || forked->pid_ != 0) return forked;
  std::vector<char*> argv;
  for (const std::string& word : spawn.argv) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::execv(argv[0], argv.data());
  std::fprintf(stderr, "swapbench: %s: %s\n", argv[0], std::strerror(errno));
  ::_exit(127);
}

Result<int> Child::wait(std::chrono::milliseconds at_most) {
  if (pid_ <= 0) return Error(ECHILD, "waiting for a process");
  pollfd wanted{pidfd_.get(), POLLIN, 0};
  const int ready = ::poll(&wanted, 1, static_cast<int>(at_most.count()));
  if (ready < 0) return errno_error("waiting for a process");
  if (ready == 0) return Error(ETIMEDOUT, "waiting for a process");
  int status = 0;
  if (::waitpid(pid_, &status, 0) != pid_) return errno_error("waitpid");
  pid_ = -1;
  return status;
}

void Child::signal(int number) const {
  if (pid_ > 0) ::kill(pid_, number);
}

void Child::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

std::string wait_text(int status) {
  if (WIFEXITED(status)) return "exit " + std::to_string(WEXITSTATUS(status));
  return "signal " + std::to_string(WTERMSIG(status));
}

Result<std::string> run_for_output(const std::vector<std::string>& argv, int& status,
                                   std::chrono::milliseconds at_most) {
  Spawn spawn;
  spawn.argv = argv;
  return run_for_output(std::move(spawn), status, at_most);
}

Result<std::string> run_for_output(Spawn spawn, int& status, std::chrono::milliseconds at_most) {
  Fd file(::memfd_create("output", MFD_CLOEXEC));
  if (!file) return errno_error("memfd_create");
  spawn.errors = "/dev/null";
  spawn.output = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(file.get());
  auto child = Child::start(spawn);
  if (!child) return child.error();
  const auto ended = child->wait(at_most);
  if (!ended) return Error(ended.error()).in(spawn.argv[0]);
  status = *ended;
  std::string text;
  char part[4096];
  ::lseek(file.get(), 0, SEEK_SET);
  for (ssize_t size = 0; (size = ::read(file.get(), part, sizeof part)) > 0;)
    text.append(part, static_cast<std::size_t>(size));
  return text;
}

namespace {

Result<Child> start_hog(const Hogs& hogs) {
  Spawn spawn;
  spawn.cpus = hogs.cpus;
  spawn.own_session = hogs.split;
  // By the hog itself: set from outside, it would be overwritten by the hog's own half of the start.
  spawn.attr = SchedAttr{.nice = static_cast<std::int8_t>(hogs.nice)};
  return Child::fork(spawn, [&] {
    ::close_range(3, ~0U, 0);  // no end of a pipe of the workload shall seem to be held here
    ::alarm(static_cast<unsigned>(hogs.at_most.count()));
    for (unsigned long turns = 0;; ++turns) {
      asm volatile("" : : "r"(turns));
    }
    return 0;
  });
}

}  // namespace

Result<std::vector<Child>> start_hogs(int per_cpu, const Hogs& hogs) {
  std::vector<Child> started;
  for (const int cpu : hogs.cpus) {
    Hogs here = hogs;
    here.cpus = {cpu};
    auto some = start_free_hogs(per_cpu, here);
    if (!some) return some.error();
    std::ranges::move(*some, std::back_inserter(started));
  }
  return started;
}

Result<std::vector<Child>> start_free_hogs(int count, const Hogs& hogs) {
  std::vector<Child> started;
  for (int i = 0; i < count; ++i) {
    auto hog = start_hog(hogs);
    if (!hog) return hog.error();
    started.push_back(std::move(*hog));
  }
  return started;
}

void end_all(std::vector<Child>& children) {
  for (const Child& child : children) child.signal(SIGKILL);
  children.clear();
}

Result<TempDir> TempDir::create() {
  std::error_code error;
  std::string path = std::filesystem::temp_directory_path(error).string() + "/swapbench-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) return errno_error(path);
  TempDir dir;
  dir.path_ = std::move(path);
  return dir;
}

TempDir::TempDir(TempDir&& other) noexcept : path_(std::exchange(other.path_, {})) {}

TempDir::~TempDir() {
  std::error_code error;
  if (!path_.empty()) std::filesystem::remove_all(path_, error);
}

}  // namespace swapd::bench
