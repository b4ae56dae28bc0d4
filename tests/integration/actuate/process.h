// Real processes for the actuator's tests: each bounded in time, and killed and reaped by its owner.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <functional>
#include <string>

#include "actuate/actuator.h"
#include "base/fd.h"
#include "base/thread_id.h"
#include "base/time.h"

namespace swapd::actuate {

// A child that sleeps, or spins on CPU 0, until it is killed; 30 s at most. It runs when the constructor returns.
class Process {
 public:
  struct How {
    bool spin = false;
    bool own_session = false;
    SchedAttr attr;
  };
  explicit Process(const How& how);
  // Runs `body` in the child instead, which ends with it. The body gets a descriptor to report on.
  Process(const How& how, const std::function<void(int report)>& body);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] ThreadId id() const { return id_; }
  [[nodiscard]] Duration cpu() const;  // used so far
  // What the body wrote, waited for; empty after 10 s.
  [[nodiscard]] std::string report() const;
  void kill();  // and reap

 private:
  void start(const How& how, const std::function<void(int report)>& body);
  pid_t pid_ = -1;
  ThreadId id_;
  Fd report_;
};

// A cpu cgroup of v1, removed at the end; its members must have been reaped. Not valid where there is none to make.
class CpuGroupV1 {
 public:
  explicit CpuGroupV1(const std::string& name);
  ~CpuGroupV1();
  CpuGroupV1(const CpuGroupV1&) = delete;
  CpuGroupV1& operator=(const CpuGroupV1&) = delete;
  [[nodiscard]] bool valid() const { return !dir_.empty(); }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string read(const std::string& file) const;
  [[nodiscard]] bool write(const std::string& file, const std::string& text) const;

 private:
  std::string dir_, path_;
};

// How much more CPU `a` gets than `b`: while they use `time` together, after 100 ms in which what the scheduler owed to
// either is paid; 20 s at most.
[[nodiscard]] double ratio(const Process& a, const Process& b, Duration time = std::chrono::milliseconds(300));

[[nodiscard]] inline SchedAttr nice_of(int nice) {
  SchedAttr attr;
  attr.nice = static_cast<std::int8_t>(nice);
  return attr;
}
[[nodiscard]] inline SchedAttr realtime(SchedPolicy policy, int priority) {
  SchedAttr attr;
  attr.policy = policy;
  attr.rt_priority = static_cast<std::uint8_t>(priority);
  return attr;
}
[[nodiscard]] inline SchedAttr lent(SchedAttr attr) {
  attr.reset_on_fork = true;
  return attr;
}
[[nodiscard]] inline Boost boost(const Process& process, const SchedAttr& attr) {
  return {process.id(), {1, 1}, {ResourceKind::pipe, {1}}, lent(attr)};
}

// Needs root and cleans up its state directory.
class LinuxTest : public testing::Test {
 protected:
  void SetUp() override;
  ~LinuxTest() override;
  [[nodiscard]] Actuator::Options options() const {
    Actuator::Options options;
    options.state_dir = dir_;
    return options;
  }
  std::string dir_;
  SteadyClock clock_;
};

}  // namespace swapd::actuate
