// A real swapd for a test, the programs run under it, and what swapctl says of them. Everything started is ended by
// pid.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace swapd::test {

struct Output {
  int status = -1;  // exit status, or 128 + signal
  std::string out, err;
};

// Runs a program to its end; the time is bounded.
Output run(const std::vector<std::string>& argv, std::chrono::seconds limit = std::chrono::seconds(30));
// Some tests of this very program again, as the first process of a pid namespace with a /proc of its own.
Output run_in_pid_namespace(const std::string& filter, std::chrono::seconds limit);
// Polls a condition with a deadline; no fixed sleep decides anything.
bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds limit = std::chrono::seconds(10));

class Session {
 public:
  // extra: more options of swapd; config: the text of its policy file. Without a [donation] of its own nobody rests at
  // the ceiling: one look then tells what is lent.
  // before: words before swapd's own command line, of a program that starts it (setpriv …).
  explicit Session(std::vector<std::string> extra = {}, const std::string& config = "",
                   std::vector<std::string> before = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // After swapd was killed: another with the same options.
  void start_again();
  // "": it runs. Else why it could not be started.
  [[nodiscard]] const std::string& failure() const { return failure_; }
  [[nodiscard]] const std::string& dir() const { return dir_; }
  [[nodiscard]] std::string path(const std::string& name) const { return dir_ + "/" + name; }
  [[nodiscard]] std::string pair() const;
  [[nodiscard]] pid_t pid() const { return pid_; }  // of the process in the terminal
  [[nodiscard]] pid_t daemon_pid();                 // as status says

  Output ctl(std::vector<std::string> arguments) const;
  [[nodiscard]] nlohmann::json json(std::vector<std::string> arguments) const;  // adds --json
  // Starts `swapctl run OPTIONS -- COMMAND` and gives its pid once the command runs in place of swapctl; ended by the
  // destructor where it has not ended.
  pid_t start(std::vector<std::string> options, std::vector<std::string> command);
  // The same without swapctl.
  pid_t start_plain(std::vector<std::string> argv);
  int wait(pid_t pid, std::chrono::seconds limit = std::chrono::seconds(30));  // exit status; -1: too late
  void kill(pid_t pid, int signal);
  // SIGINT to the process in the terminal, and its exit status.
  int stop(int signal);
  // Creates a file that `pair server` waits for.
  void raise(const std::string& flag) const;
  void lower(const std::string& flag) const;

 private:
  void start_daemon();

  std::string dir_, failure_;
  std::vector<std::string> command_;
  pid_t pid_ = -1;
  std::vector<pid_t> children_;
};

// What the kernel says of a thread.
struct KernelAttr {
  std::string policy;
  int nice = 0, rt_priority = 0;
  std::uint64_t slice_ns = 0;  // 0: the kernel's own
};
KernelAttr kernel_attr(pid_t tid);
pid_t only_child(pid_t pid);  // -1: it has none, or several
std::size_t thread_count(pid_t pid);
// Not while the program that starts it (chrt, swapctl) or the loader, which reads libraries, is what is seen of it.
bool blocked_in(pid_t tid, int call);
// A line of /proc/PID/status; empty: there is none.
std::string status_field(pid_t pid, const std::string& key);
std::string status_field(const std::string& directory, const std::string& key);  // /proc/PID, or of a thread
// By descriptor, as swapctl names them.
std::vector<std::string> sockets_of(pid_t pid);

}  // namespace swapd::test
