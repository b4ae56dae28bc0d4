// Shapes I/O: classes with limits, who is in them, and the filter that each shaped listener's receiver asks [TAP08].
//
// At its entry a call is looked at: which device, how many bytes at most. What the thread's last call really moved is
// settled first, from the kernel's counters; then the new one takes its place in its class's buckets, and is held if
// they do not let it go on. Everything here may fail without harm: a call that cannot be seen into goes on.
//
// The ledger decides (decide/shaping/ledger.h); this owns it with what does the I/O.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "actuate/delays.h"
#include "base/guard_memory.h"
#include "base/missing_piece.h"
#include "base/time.h"
#include "observe/seccomp/receiver.h"
#include "shaping/shaping_parts.h"
#include "sys/process/pi_mutex.h"

namespace swapd::daemon {

class MmapThrottler;

class Shaper {
 public:
  struct Options {
    Duration slice = std::chrono::milliseconds(100);
    bool dry_run = false;             // counts, and holds no call
    std::span<FrozenGroup> frozen{};  // the guard's memory, for frozen processes
    std::string state_dir;            // where their groups are written down; empty: nowhere
    std::string cgroups = "/sys/fs/cgroup";
  };
  // memory: the guard's, for delayed calls.
  Shaper(const sys::Procfs& procfs, const Clock& clock, std::span<DelayedCall> memory, Options options);
  ~Shaper();
  Shaper(const Shaper&) = delete;
  Shaper& operator=(const Shaper&) = delete;

  // --- classes; any thread ---
  // inherits_own: children get a class of their own that is like their parent's.
  void set_class(const std::string& name, const decide::ClassLimits& limits, bool inherits_own = false);
  void remove_class(const std::string& name);
  // Besides what it has: a limit of its disks, reading and writing together. Nothing: none.
  void set_automatic(const std::string& name, std::optional<decide::Tokens> bytes);
  [[nodiscard]] std::vector<decide::Shaping::Account> accounts(const std::string& name) const;

  // --- members; the engine ---
  void join(pid_t tgid, const std::string& class_name);
  // A child of that member: into its class, or one of its own.
  void born(pid_t tgid, pid_t parent);
  void leave(pid_t tgid);
  // It is managed no more, and not limited any more, though it is still under its filter.
  void release(pid_t tgid, std::uint64_t start_time);
  // An important thread waits for it: it is not delayed meanwhile, unless its class says so. The engine.
  void favour(pid_t tid, bool favoured);
  // Held, and would go on if it were favoured: it can provide, though it sleeps. Any thread; cheap while no thread is
  // held.
  [[nodiscard]] bool would_run(pid_t tid) const;
  [[nodiscard]] std::vector<std::pair<pid_t, Time>> would_run() const;  // since when

  // Tells whether the calls of a process come to a gate. Asked by a thread that may wait for the answer. Before classes
  // that freeze have members.
  void ask_of_gates(std::function<bool(pid_t)> has_gate);
  // For the receiver of a listener whose programs may be shaped. slot: the listener's, in the guard's memory.
  [[nodiscard]] std::unique_ptr<observe::CallFilter> admission(int listener, std::uint32_t slot);

  [[nodiscard]] std::vector<MissingPiece> missing() const { return counters_.missing(); }
  [[nodiscard]] std::size_t delayed_now() const { return delays_.held(); }
  [[nodiscard]] std::uint64_t delayed_total() const;
  [[nodiscard]] bool holds(pid_t tid) const;
  // The threads that are held at the moment, and since when.
  using Delay = decide::HeldThreads::Delay;
  [[nodiscard]] std::unordered_map<pid_t, Delay> held_threads() const;
  using Debt = decide::Ledger::Debt;
  [[nodiscard]] std::vector<Debt> debts(const std::string& name) const;
  [[nodiscard]] std::string device_name(const decide::Device& device) const;
  [[nodiscard]] const sys::BlockDevices& disks() const { return disks_; }
  // swapd ends: what is delayed is the guard's from now on.
  void leave();

 private:
  void look_at_pages_now() const;

  const Clock& clock_;
  Options options_;
  sys::BlockDevices disks_;
  SharedLedger ledger_;
  KernelCounters counters_;
  ShapingParts parts_;
  actuate::Delays delays_;      // its thread ends before all that
  mutable sys::PiMutex mutex_;  // has_gate_, pages_; no other lock is taken under it
  std::function<bool(pid_t)> has_gate_;
  std::unique_ptr<MmapThrottler> pages_;  // last; once a class asks for it
};

}  // namespace swapd::daemon
