// Processes that stand still while their memory is in swap (decide::PutAway), and their way there and back: frozen by
// the cgroup freezer, put out step by step; brought back step by step, and thawed. A thread of its own, because each
// step waits for the disk. The guard thaws whatever this thread looks at no more.
//
// A process comes back once those that leave for it are out (for two seconds at most): the kernel's OOM killer may act
// in a full group whose pages come and go at once, though there is swap enough.
//
// A process with a terminal in whose foreground it is comes back as soon as a key is typed there: that is told
// (take()), and the decider lets it go.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/time.h"
#include "base/words.h"
#include "decide/decider.h"
#include "kernel.h"
#include "memory/terminal_input.h"
#include "shaping/freezer_groups.h"
#include "sys/memory/process_pages.h"
#include "sys/process/pi_mutex.h"

namespace swapd::daemon {

class AwayProcesses {
 public:
  struct Config {
    std::span<FrozenGroup> memory{};           // of the guard
    std::string state_dir{};                   // empty: nothing is written down
    Duration stale = std::chrono::seconds(3);  // then the guard thaws a process at which this thread has not looked
    bool dry_run = false;
  };
  // notify: there is something to take(); from the thread.
  AwayProcesses(const Kernel& kernel, Config config, std::function<void()> notify);
  ~AwayProcesses();
  AwayProcesses(const AwayProcesses&) = delete;
  AwayProcesses& operator=(const AwayProcesses&) = delete;

  void start();
  // All run again, their pages left to come as they are used.
  void stop();
  // Those that are to be away, and no others.
  void set(std::vector<pid_t> wanted);
  [[nodiscard]] std::vector<decide::MemoryEvent> take();

  enum class Phase : std::uint8_t { enters, leaves, away, returns };
  struct View {
    pid_t tgid = 0;
    Phase phase = Phase::enters;
    Time since{};
    std::int64_t put_out = 0;  // bytes, while it was away
  };
  [[nodiscard]] std::vector<View> views() const;
  [[nodiscard]] std::uint64_t put_out_bytes() const { return put_out_bytes_; }  // of all, so far
  [[nodiscard]] Duration cpu_time() const;                                      // of its thread

 private:
  struct Process {
    Phase phase = Phase::enters;
    Time since{};
    std::int64_t resident = 0;  // bytes, before
    std::int64_t put_out = 0;
    std::optional<sys::ProcessPages> pages;
    std::optional<Time> recalled;  // it is to come back since then
  };
  void run();
  [[nodiscard]] bool work();  // one step of each; true: there is more to do
  void begin_new(const std::vector<pid_t>& wanted, Time now);
  [[nodiscard]] bool step(pid_t tgid, Process& process, Time now);
  [[nodiscard]] bool enter(pid_t tgid, Process& process, Time now);
  void freeze(pid_t tgid, Process& process, Time now);
  [[nodiscard]] bool put_out(pid_t tgid, Process& process);
  [[nodiscard]] bool waits_for_room(Process& process, Time now);
  [[nodiscard]] bool bring_back(pid_t tgid, Process& process);
  [[nodiscard]] bool is_wanted(pid_t tgid) const;
  void vouch(Time now);
  void refuse(pid_t tgid, Time now);
  void let_go(pid_t tgid, Time now);
  void tell(decide::MemoryEvent event);
  void publish();

  Kernel kernel_;
  const Config config_;
  std::function<void()> notify_;
  Fd changed_;  // an eventfd
  mutable sys::PiMutex mutex_;
  struct Shared {
    std::vector<pid_t> wanted;
    std::vector<decide::MemoryEvent> events;
    std::vector<View> views;
    pid_t tid = 0;
    bool stops = false;
  } shared_;  // under the mutex
  std::atomic<std::uint64_t> put_out_bytes_{0};
  // State of the thread.
  std::map<pid_t, Process> processes_;
  std::set<pid_t> refused_;  // until they are not wanted any more
  std::optional<FreezerGroups> groups_;
  TerminalInput terminals_;
  std::thread thread_;
};

inline constexpr auto phase_words = words<AwayProcesses::Phase>({{"enters", AwayProcesses::Phase::enters},
                                                                 {"leaves", AwayProcesses::Phase::leaves},
                                                                 {"away", AwayProcesses::Phase::away},
                                                                 {"returns", AwayProcesses::Phase::returns}});

}  // namespace swapd::daemon
