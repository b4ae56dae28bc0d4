// Processes of a run: started with their attributes, watched by pidfd, ended by pid. Nothing outlives the harness: each
// has the parent-death signal, and every Child kills and reaps in its destructor.
#pragma once

#include <sched.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/sched_attr.h"

namespace swapd::bench {

// Makes the harness the parent of whatever its processes leave behind (a server's child, swapd's guard), and lets it
// run among its own hogs: it sleeps all the time, but must be there when a run ends.
void become_harness();
// Reaps what was left behind; what does not end by itself in five seconds is killed and named.
[[nodiscard]] std::vector<std::string> reap_left_behind();

// True once ^C (or SIGTERM, SIGHUP) has come; every wait of the harness ends then with EINTR.
void catch_interrupts();
[[nodiscard]] bool interrupted();

// CPUs 0…count-1 of those that this process may use.
[[nodiscard]] Result<std::vector<int>> usable_cpus(int count);
[[nodiscard]] cpu_set_t cpu_set_of(const std::vector<int>& cpus);

struct Spawn {
  std::vector<std::string> argv;      // argv[0] is the path
  std::vector<int> inherit;           // descriptors that stay open, at their numbers; all else is close-on-exec
  std::vector<int> cpus;              // empty: unpinned
  std::optional<SchedAttr> attr;      // none: nice 0, ordinary
  bool own_session = false;           // setsid, hence an autogroup of its own
  std::optional<int> autogroup_nice;  // with own_session
  std::string output = "/dev/null";   // where stdout goes
  std::string errors;                 // where stderr goes; empty: the harness's own
  int death_signal = 9;
  int network = -1;  // descriptor of its network namespace; -1: the harness's
};

class Child {
 public:
  Child() = default;
  Child(pid_t pid, Fd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { kill(); }

  [[nodiscard]] static Result<Child> start(const Spawn& spawn);
  // Forks without exec: runs body() and exits with what it returns.
  template <typename Body>
  [[nodiscard]] static Result<Child> fork(const Spawn& spawn, Body body) {
    auto forked = fork_into(spawn);
    if (forked && forked->pid_ == 0) leave(body());
    return forked;
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] int pidfd() const { return pidfd_.get(); }
  [[nodiscard]] bool running() const { return pid_ > 0; }
  // The wait status; ETIMEDOUT, or EINTR when interrupted().
  [[nodiscard]] Result<int> wait(std::chrono::milliseconds at_most);
  void signal(int number) const;
  void kill();  // SIGKILL and reap; nothing when not running

 private:
  [[nodiscard]] static Result<Child> fork_into(const Spawn& spawn);  // pid() 0 in the child
  [[noreturn]] static void leave(int status);
  pid_t pid_ = -1;
  Fd pidfd_;
};

// "exit 3", "signal 9".
[[nodiscard]] std::string wait_text(int status);

// Runs a program to its end and gives its standard output; the wait status in `status`.
[[nodiscard]] Result<std::string> run_for_output(const std::vector<std::string>& argv, int& status,
                                                 std::chrono::milliseconds at_most);
// The same; where its outputs go is settled here.
[[nodiscard]] Result<std::string> run_for_output(Spawn spawn, int& status, std::chrono::milliseconds at_most);

// Endless loops.
struct Hogs {
  std::vector<int> cpus;
  bool split = false;              // each in a session of its own
  std::chrono::seconds at_most{};  // none runs longer
  int nice = 0;
};
// `per_cpu` on each CPU, each on its own CPU.
[[nodiscard]] Result<std::vector<Child>> start_hogs(int per_cpu, const Hogs& hogs);
// `count` of them in all, which the scheduler may move between the CPUs.
[[nodiscard]] Result<std::vector<Child>> start_free_hogs(int count, const Hogs& hogs);

// Kills all, then reaps them: among themselves they die faster when none still runs.
void end_all(std::vector<Child>& children);

// A directory that goes away with everything in it.
class TempDir {
 public:
  [[nodiscard]] static Result<TempDir> create();
  TempDir(TempDir&& other) noexcept;
  TempDir& operator=(TempDir&&) = delete;
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir();
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  TempDir() = default;
  std::string path_;
};

}  // namespace swapd::bench
