// Pages of mapped files, which are read and written without a call: where a class says so (`mapped = "freeze"`), a
// process that has moved more of them than its class may is frozen until that is paid.
//
// Two hundred times a second (a thousand, when a process is new or goes on after a freeze) each thread's counters are
// looked at. What they have grown by between two looks while no call was going on that had come to its gate is its
// pages; the rest is left to the gate, which settles it at the next call. In device mode what the disk has moved beyond
// what the last call was charged counts as well, as soon as that one is over: `du` reads no file at all. A process
// without a gate (its program had started before its class was shaped) is not limited here either.
//
// The cgroup freezer stops the process, in a group of its own below the one that it is in. (What it moves while it is
// put there is owed.) A signal, a debugger, the boost of an important thread and
// other limits end the freeze at the next look; the guard ends it if swapd does not look any more.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/fd.h"
#include "base/time.h"
#include "observe/io/io_target.h"
#include "shaping/freezer_groups.h"
#include "shaping/shaping_parts.h"
#include "sys/procfs/io_counters.h"

namespace swapd::daemon {

class MmapThrottler {
 public:
  struct Options {
    std::span<FrozenGroup> memory;  // where the guard finds who is frozen
    std::string state_dir;          // empty: nothing is written down
    std::string cgroups;
    std::function<bool(pid_t)> has_gate;  // a process's calls come to a gate; may wait for the answer
  };
  MmapThrottler(const ShapingParts& parts, Options options);
  ~MmapThrottler();  // every process goes on, in the group where it was
  MmapThrottler(const MmapThrottler&) = delete;
  MmapThrottler& operator=(const MmapThrottler&) = delete;

  // A frozen process is waited for. Any thread; waits for none.
  void look_now() const;

 private:
  struct Thread {
    sys::ThreadIo io;
    sys::IoCounters counted;    // up to here
    std::uint64_t entered = 0;  // calls that had come to its gate by then
    bool outside = false;       // none of them is going on
    std::uint64_t faults = 0;   // major ones
  };
  struct Process {
    decide::ClassViewPtr view;
    bool has_gate = false;
    Time gate_sought{};
    int gate_seeks = 0;
    std::optional<sys::IoCounters> counted;  // of all its threads
    Time charged{};                          // when that was looked at
    std::unordered_map<pid_t, Thread> threads;
    decide::Device disk;  // that its pages are on
    decide::Device tree;  // and the directories and inodes that it looks at
    Time met{}, disk_sought{};
    std::vector<pid_t> frozen;  // its threads, while it is
    std::uint64_t signals = 0;  // that waited for it when that began
    Time next_look{}, last_moved{}, last_frozen{};
    Time alert_until{};  // looks are closer until then
    Time frozen_since{}, listed{};
    bool owes = false;  // since it went on
    decide::PagePayer payer;
    Time stay_away{};  // cannot be frozen: not before that
  };
  struct Interruptions {
    std::uint64_t signals = 0;  // that wait for it
    bool any = false;           // something else than those that had waited when it was frozen
  };

  void run(const std::stop_token& stop);
  void round();
  void look(pid_t tgid, Process& process);
  void look_closely_at(Process& process, Duration duration);
  void look_at_frozen(pid_t tgid, Process& process);
  [[nodiscard]] bool has_gate(pid_t tgid, Process& process);
  [[nodiscard]] decide::Ledger::Owed owed(Process& process, Time now) const;
  [[nodiscard]] bool charge(pid_t tgid, Process& process, Time now);
  [[nodiscard]] bool charge(pid_t tgid, Process& process, Thread& thread, pid_t tid, double share, Time now);
  [[nodiscard]] decide::Tokens max_paged(Thread& thread, pid_t tid) const;
  void seek_disks(pid_t tgid, Process& process, Time now);
  [[nodiscard]] Interruptions interruptions(const Process& process, const std::vector<pid_t>& threads) const;
  [[nodiscard]] bool goes_on(const Process& process, const std::vector<pid_t>& threads) const;
  void freeze(pid_t tgid, Process& process);
  void give_up(pid_t tgid, Process& process, const Error& error);
  void thaw(pid_t tgid, Process& process);
  void list_frozen(pid_t tgid, Process& process, Time now);
  void forget_thread(pid_t tid) const;
  void write_off(Process& process) const;
  void end(pid_t tgid, Process& process);

  const ShapingParts& parts_;
  std::function<bool(pid_t)> ask_of_gate_;
  FreezerGroups groups_;
  observe::IoTargets targets_;
  Time alert_until_{};            // of some process
  std::uint64_t generation_ = 0;  // of members_
  std::unordered_map<pid_t, decide::ClassViewPtr> members_;
  std::unordered_map<pid_t, Process> processes_;
  bool warned_ = false;
  Fd wake_;              // an eventfd
  std::jthread thread_;  // last
};

}  // namespace swapd::daemon
