// How memory fares, for the decider of it: the machine's and that of the control groups with a limit that managed
// processes are in, window by window, and what each managed process has. A thread of its own, because to read of many
// processes takes milliseconds; at rest it reads one small file a second.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/time.h"
#include "decide/decider.h"
#include "kernel.h"
#include "sys/memory/memory_stat.h"
#include "sys/process/pi_mutex.h"

namespace swapd::daemon {

class MemoryWatch {
 public:
  struct Config {
    Duration rest = std::chrono::seconds(1);            // between two looks while no page comes back from swap
    Duration window = std::chrono::milliseconds(1000);  // else
    Duration stays = std::chrono::seconds(10);          // so long after the last one
    std::vector<std::string> needed{};                  // names of programs that must stay
  };
  // notify: there is something to take(); from the thread.
  MemoryWatch(const Kernel& kernel, Config config, std::function<void()> notify);
  ~MemoryWatch();
  MemoryWatch(const MemoryWatch&) = delete;
  MemoryWatch& operator=(const MemoryWatch&) = delete;

  void start();
  void stop();
  // pids: the managed processes. away: some of them are put away, and memory must be known all the time.
  void set(std::vector<pid_t> pids, bool away);
  // The processes of a round come before its windows.
  [[nodiscard]] std::vector<decide::Input> take();
  [[nodiscard]] Duration cpu_time() const;  // of its thread

 private:
  void run();
  [[nodiscard]] bool wait(Duration time);  // false: it is to end
  void look(Time now);
  void look_at_processes(Time now, std::map<std::string, sys::MemoryState>& groups, const sys::MemoryState& machine,
                         std::vector<decide::Input>& out) const;
  [[nodiscard]] bool is_needed(pid_t tgid, const std::vector<pid_t>& sessions) const;

  Kernel kernel_;
  const Config config_;
  std::function<void()> notify_;
  Fd changed_;  // an eventfd
  mutable sys::PiMutex mutex_;
  struct Shared {
    std::vector<pid_t> pids;
    std::vector<decide::Input> told;
    pid_t tid = 0;
    bool away = false, stops = false;
  } shared_;  // under the mutex
  // State of the thread.
  sys::MemoryStat stat_;
  struct Before {
    sys::MemoryCounters counters;
    Time at{};
  };
  std::map<std::string, Before> before_;  // by group; the machine's has no name
  Time moved_ = never;                    // pages came back last
  std::thread thread_;
};

}  // namespace swapd::daemon
