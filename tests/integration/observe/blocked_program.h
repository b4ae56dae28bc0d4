// Starts one of the block_* programs (tests/programs/block.h) or a shell script, and asks the resolver about it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "observe/resolve/resolver.h"
#include "sys/netlink/sock_diag.h"
#include "sys/procfs/procfs.h"

namespace swapd::observe {

// A child process with its standard input and output; told to end by the end of its input, and reaped.
class Child {
 public:
  explicit Child(std::vector<std::string> command);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();
  [[nodiscard]] pid_t pid() const { return pid_; }
  // A line of its output, without the newline; empty at the end.
  [[nodiscard]] std::string line();

 private:
  pid_t pid_ = -1;
  Fd input_;
  Fd output_;
};

// Asks until the answer is true, for five seconds.
template <typename Condition>
[[nodiscard]] bool eventually(const Condition& condition);

// "unix-stream" as a name that GoogleTest takes.
[[nodiscard]] std::string test_name(std::string scenario);

class ResolverTest : public testing::Test {
 protected:
  // A waiter and a provider, as one scenario of a block_* program has them.
  struct Story {
    std::unique_ptr<Child> program;
    pid_t waiter = -1;
    pid_t provider = -1;
    CallSite site;
    std::vector<pid_t> members;
  };
  [[nodiscard]] Story start(const std::string& program, const std::string& scenario);
  // Waits until the thread sleeps in a system call (one of `calls` if given), and gives it.
  [[nodiscard]] CallSite blocked(pid_t tid, const std::set<int>& calls = {}) const;

  // The tids that a scan names for the resources, managed ones only.
  [[nodiscard]] std::set<pid_t> providers(const Story& story, const std::vector<Resource>& resources);
  // Full resolution gives resources of this kind only, and the scan exactly the provider, as `evidence`.
  void expect_provider(const Story& story, ResourceKind kind, Evidence evidence = Evidence::holder);
  // quick() gives the same as full(), and is complete.
  void expect_quick(const Story& story);

  sys::Procfs procfs_;
  sys::SockDiag diag_;
  Resolver resolver_{procfs_, diag_};
};

}  // namespace swapd::observe

#include <time.h>

#include <chrono>

template <typename Condition>
bool swapd::observe::eventually(const Condition& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    const timespec pause{0, 1'000'000};
    ::nanosleep(&pause, nullptr);
  }
  return true;
}
