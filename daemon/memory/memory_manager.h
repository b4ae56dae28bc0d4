// Memory: the thread that looks how it fares, and the one that puts programs away and brings them back. For the engine
// thread.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "decide/decider.h"
#include "kernel.h"
#include "memory/away_processes.h"
#include "memory/memory_watch.h"

namespace swapd::daemon {

class MemoryManager {
 public:
  struct Config {
    bool on = false;
    std::vector<std::string> needed{};  // names of programs that stay in memory
    AwayProcesses::Config away{};
  };
  // notify: there is something to take(); from those threads.
  MemoryManager(const Kernel& kernel, const Config& config, const std::function<void()>& notify);

  void start();
  // All that is away runs again.
  void stop();
  // The managed processes, sorted.
  void set_processes(std::vector<pid_t> pids);
  // Those that are to be away, and no others.
  void put_away(std::span<const pid_t> tgids);
  [[nodiscard]] std::vector<decide::Input> take();
  [[nodiscard]] bool on() const { return on_; }
  [[nodiscard]] std::vector<AwayProcesses::View> views() const { return away_.views(); }
  [[nodiscard]] std::uint64_t put_out_bytes() const { return away_.put_out_bytes(); }
  // The part of that for putting pages out and bringing them back, which the programs' own faults would take otherwise.
  [[nodiscard]] Duration paging_time() const { return away_.cpu_time(); }
  [[nodiscard]] Duration cpu_time() const { return watch_.cpu_time() + away_.cpu_time(); }  // of both threads

 private:
  const bool on_;
  MemoryWatch watch_;
  AwayProcesses away_;
  std::vector<pid_t> pids_;
  bool some_away_ = false;
};

}  // namespace swapd::daemon
