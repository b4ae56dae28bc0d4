// A child process under a filter of the test's own, and its listener. The child waits, with the filter in, until it is
// let go.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/fd.h"
#include "sys/seccomp/seccomp.h"

namespace swapd::test {

// The calls that history = "calls" traps, as far as these tests make any of them.
[[nodiscard]] std::vector<sys::TrapRule> call_rules();

class Supervised {
 public:
  // `body` runs in the child; what it returns is the exit status.
  Supervised(std::span<const sys::TrapRule> rules, std::function<int()> body);
  ~Supervised();  // kills and reaps what is left
  Supervised(const Supervised&) = delete;
  Supervised& operator=(const Supervised&) = delete;

  [[nodiscard]] bool ready() const { return listener_.valid(); }
  [[nodiscard]] int listener() const { return listener_.get(); }
  [[nodiscard]] Fd take_listener() { return std::move(listener_); }
  [[nodiscard]] pid_t pid() const { return pid_; }
  void go();
  // The exit status; 128 + the signal that killed it.
  int wait();

 private:
  struct Shared;
  Shared* shared_;
  pid_t pid_ = -1;
  Fd listener_;
  bool reaped_ = false;
};

// Looks at the condition every millisecond, for at most ten seconds.
[[nodiscard]] bool eventually(const std::function<bool()>& condition);

// The state letter of /proc/TID/stat; 0: gone.
[[nodiscard]] char state_of(pid_t tid);

}  // namespace swapd::test
