// Threads that exist only here, with the kernel's rules that matter: a real-time thread keeps its nice value out of
// sight, and what is gone answers ESRCH.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "sys/sched/scheduler.h"

namespace swapd::fakes {

class FakeScheduler final : public sys::Scheduler {
 public:
  struct Thread {
    SchedAttr attr;
    int nice = 0;
    cpu_set_t cpus{};
    bool privileged = true;  // may take any attributes by itself
    int set_error = 0;       // errno of every set()
    int realtime_error = 0;  // errno of a set() to a real-time class
    bool rttime = false;     // it has a finite RLIMIT_RTTIME
    int io_priority = 0;     // raw
    int io_error = 0;        // errno of every set_io_priority()
  };

  Thread& add(pid_t tid, const SchedAttr& attr) {
    Thread& thread = threads[tid];
    thread.attr = attr;
    thread.nice = attr.nice;
    CPU_SET(0, &thread.cpus);
    return thread;
  }
  // As renice(1) does it: through the back door while the thread is real-time.
  void renice(pid_t tid, int nice) {
    threads.at(tid).nice = nice;
    if (!threads.at(tid).attr.realtime()) threads.at(tid).attr.nice = static_cast<std::int8_t>(nice);
  }

  Result<SchedAttr> get(pid_t tid) const override {
    ++gets;
    const auto found = threads.find(tid);
    if (found == threads.end()) return Error(ESRCH, "get");
    return found->second.attr;
  }
  Status set(pid_t tid, const SchedAttr& attr) const override {
    ++sets;
    if (before_set) before_set();
    const auto found = threads.find(tid);
    if (found == threads.end()) return Error(ESRCH, "set");
    if (found->second.set_error != 0) return Error(found->second.set_error, "set");
    if (found->second.realtime_error != 0 && attr.realtime()) return Error(found->second.realtime_error, "set");
    given.push_back(attr);
    found->second.attr = attr;
    if (attr.realtime())
      found->second.attr.nice = 0;
    else
      found->second.nice = attr.nice;
    return Done{};
  }
  Result<int> nice(pid_t tid) const override {
    const auto found = threads.find(tid);
    if (found == threads.end()) return Error(ESRCH, "nice");
    return found->second.nice;
  }
  Status set_nice(pid_t tid, int nice) const override {
    const auto found = threads.find(tid);
    if (found == threads.end()) return Error(ESRCH, "set_nice");
    found->second.nice = nice;
    if (!found->second.attr.realtime()) found->second.attr.nice = static_cast<std::int8_t>(nice);
    return Done{};
  }
  Result<int> io_priority(pid_t tid) const override {
    const auto found = threads.find(tid);
    if (found == threads.end()) return Error(ESRCH, "io_priority");
    return found->second.io_priority;
  }
  Status set_io_priority(pid_t tid, int raw) const override {
    const auto found = threads.find(tid);
    if (found == threads.end()) return Error(ESRCH, "set_io_priority");
    if (found->second.io_error != 0) return Error(found->second.io_error, "set_io_priority");
    found->second.io_priority = raw;
    return Done{};
  }
  std::uint64_t default_slice_ns() const override { return slice; }
  bool may_take(pid_t tid, const SchedAttr& /*attr*/) const override { return threads.at(tid).privileged; }
  bool limits_realtime(pid_t tid) const override {
    const auto found = threads.find(tid);
    return found != threads.end() && found->second.rttime;
  }
  Result<cpu_set_t> affinity(pid_t tid) const override {
    const auto found = threads.find(tid);
    if (found == threads.end()) return Error(ESRCH, "affinity");
    return found->second.cpus;
  }
  Status set_affinity(pid_t tid, const cpu_set_t& cpus) const override {
    threads.at(tid).cpus = cpus;
    return Done{};
  }

  mutable std::map<pid_t, Thread> threads;
  std::function<void()> before_set;
  std::uint64_t slice = 0;  // of a fair thread without one of its own
  mutable int gets = 0;
  mutable int sets = 0;
  mutable std::vector<SchedAttr> given;  // by every set() that was no error
};

}  // namespace swapd::fakes
