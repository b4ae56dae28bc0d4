// Pages of mapped files, which are read and written without a call: where a class says so (`mapped = "freeze"`), a
// process that has moved more of them than its class may is frozen until that is paid (DESIGN.md section 7).
//
// Two hundred times a second each thread's counters are looked at. What they have grown by between two looks at which
// it made no call that comes to its gate is its pages; the rest is left to the gate, which settles it at the next call.
//
// It is the cgroup freezer that stops it, in a group of its own below the one that it is in. (To move it there takes
// the kernel some 50 ms once; what it moves meanwhile is owed.) A signal, a debugger, the loan of an important thread
// and other limits end the freeze at the next look; the guard ends it where swapd does not look any more. The groups
// that exist stand in STATE_DIR/frozen, for the next swapd.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/guard_memory.h"
#include "base/time.h"
#include "shaper.h"
#include "sys/freezer_group.h"
#include "sys/thread_io.h"

namespace swapd::daemon {

class PageShaper {
 public:
  // memory: where the guard finds who is frozen. state_dir: empty: nothing is written down.
  PageShaper(Shaper& shaper, std::span<FrozenGroup> memory, std::string state_dir);
  ~PageShaper();  // everybody goes on, in the group where he was
  PageShaper(const PageShaper&) = delete;
  PageShaper& operator=(const PageShaper&) = delete;

  // Somebody has come. The engine.
  void look_now();

  // The groups that a swapd before has left.
  static void clear_left(const std::string& state_dir);

 private:
  struct Thread {
    sys::ThreadIo io;
    sys::IoCounters counted;    // up to here
    std::uint64_t entered = 0;  // calls that had come to its gate by then
    bool outside = false;       // none of them is going on
  };
  struct Process {
    Shaper::ViewPtr view;
    std::optional<sys::IoCounters> counted;  // of all its threads
    std::unordered_map<pid_t, Thread> threads;
    decide::Device disk;  // that its pages are on
    Time disk_sought{};
    std::optional<sys::FreezerGroup> group;
    std::optional<std::size_t> place;  // in the guard's memory, while it is frozen
    Time frozen_since{};
    bool owes = false;  // since it went on
    pid_t tracer = 0;   // then
    decide::Passage owed[2];
    Time stay_away{};  // cannot be frozen: not before that
  };

  void run(const std::stop_token& stop);
  void look(pid_t tgid, Process& process, Time now);
  [[nodiscard]] bool charge(pid_t tgid, Process& process, Time now);
  [[nodiscard]] decide::Device disk_of(pid_t tgid, Process& process, Time now) const;
  [[nodiscard]] Time due(const Process& process, Time now) const;
  [[nodiscard]] bool goes_on(Process& process) const;
  void freeze(pid_t tgid, Process& process, Time now);
  void thaw(Process& process, Time now);
  void forget_thread(pid_t tid) const;
  void end(Process& process, Time now);
  void write_down() const;

  Shaper& shaper_;
  std::span<FrozenGroup> memory_;
  std::string state_dir_;
  std::vector<std::size_t> free_;  // places in memory_
  std::unordered_map<pid_t, Process> processes_;
  std::vector<sys::FreezerGroup> leaving_;  // groups that could not be removed yet
  bool warned_ = false;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  bool look_now_ = false;  // with the mutex
  std::jthread thread_;    // last
};

}  // namespace swapd::daemon
