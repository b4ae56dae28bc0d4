// Shapes I/O: classes with limits, who is in them, and the gate that each shaped listener's receiver asks ([TAP08];
// docs/design.md, Shaping).
//
// At its entry a call is looked at: which device, how many bytes at most. What the thread's last call really moved is
// settled first, from the kernel's counters; then the new one takes its place in its class's buckets, and is held where
// they do not let it go on. Everything here may fail without harm: a call that cannot be seen into goes on.
//
// Receivers' threads, the delaying thread, the engine and the control thread meet at one lock, held for arithmetic
// alone.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "actuate/delays.h"
#include "base/guard_memory.h"
#include "base/missing_piece.h"
#include "base/time.h"
#include "decide/shaping.h"
#include "observe/seccomp/receiver.h"
#include "sys/procfs/block_devices.h"
#include "sys/bpf/exit_io.h"
#include "sys/bpf/net_io.h"
#include "sys/process/pi_mutex.h"
#include "sys/procfs/procfs.h"

namespace swapd::daemon {

class MmapThrottler;
class IoAdmission;

// By a major fault, and around it: read_ahead_kb of sysfs, where nobody has changed it.
inline constexpr decide::Tokens read_by_fault = 128 << 10;

class Shaper {
 public:
  struct Options {
    Duration slice = std::chrono::milliseconds(100);
    bool dry_run = false;             // counts, and holds nobody
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
  // Held, and would go on if it were favoured: it can provide, though it sleeps. Any thread; cheap while nobody is
  // held.
  [[nodiscard]] bool would_run(pid_t tid) const;
  [[nodiscard]] std::vector<std::pair<pid_t, Time>> would_run() const;  // since when

  // Tells whether the calls of a process come to a gate. Asked by a thread that may wait for the answer.
  void ask_of_gates(std::function<bool(pid_t)> has_gate);
  // For the receiver of a listener whose programs may be shaped.
  [[nodiscard]] std::unique_ptr<observe::Gate> gate(int listener, std::uint32_t slot);

  [[nodiscard]] std::vector<MissingPiece> missing() const;
  [[nodiscard]] std::size_t delayed_now() const { return delays_.held(); }
  [[nodiscard]] std::uint64_t delayed_total() const;
  [[nodiscard]] bool holds(pid_t tid) const;
  // Who is held at the moment, and since when?
  struct Delay {
    Time since;
    decide::Tokens share = 0;  // it waits for so many bytes before it moves any; 0: for its turn
    decide::Tokens debt = 0;   // it has moved so many before, and pays for them
  };
  [[nodiscard]] std::unordered_map<pid_t, Delay> held_threads() const;
  // Threads of the class that owe something, which its other members do not pay, by device; and processes that pay at
  // once.
  struct Debt {
    pid_t tid = 0;  // of a process its id
    decide::Device device;
    decide::Tokens bytes = 0;
  };
  [[nodiscard]] std::vector<Debt> debts(const std::string& name) const;
  [[nodiscard]] std::string device_name(const decide::Device& device) const;
  [[nodiscard]] const sys::BlockDevices& disks() const { return disks_; }
  // swapd ends: what is delayed is the guard's from now on.
  void leave();

 private:
  friend class MmapThrottler;
  friend class IoAdmission;
  class HeldCall;
  // A class as a gate sees it. It is not changed: another one takes its place.
  struct View {
    std::string name;
    std::string of;  // the class whose limits they are
    decide::Shaping::ClassIndex index = 0;
    decide::ClassLimits limits;
    bool limited = false;
    bool inherits_own = false;
    std::optional<decide::Shaping::ClassIndex> like;  // of a class that one process has for itself: whose limits
    std::shared_ptr<sys::NetIo> traffic;              // null: nobody need count it
    std::shared_ptr<sys::LastIo> ends;                // null: they cannot be seen
  };
  using ViewPtr = std::shared_ptr<const View>;
  // Null: no member, nor one that was released.
  [[nodiscard]] ViewPtr view(pid_t tgid) const;
  [[nodiscard]] ViewPtr view_of_class(const std::string& name) const;  // null: no such class
  void apply(const std::string& name);
  // Without the lock: what could be opened counts from now on; else it is said what is lost, and done instead.
  template <typename Counter>
  void take(Result<std::unique_ptr<Counter>> opened, std::shared_ptr<Counter>& counter, const char* lost,
            const char* instead);
  void want_ends();  // without the lock
  void set_one(View view);
  void drop_own(pid_t tgid);
  // Members that pay at once for what they move without calls, as of `generation`, which is brought up to date; nothing
  // where it is.
  [[nodiscard]] std::optional<std::unordered_map<pid_t, ViewPtr>> paying_at_once(std::uint64_t& generation) const;
  // The calls of a thread that have come to its gate: how many, what the kernel had counted at the last one, and what
  // that one was charged of disks before it moved anything.
  struct Entries {
    std::uint64_t count = 0;
    sys::IoCounters counted;
    decide::Tokens reads = 0, writes = 0;
    [[nodiscard]] sys::IoCounters charged() const {  // by the end of that one
      sys::IoCounters out = counted;
      out.read_bytes += static_cast<std::uint64_t>(reads);
      out.written_bytes += static_cast<std::uint64_t>(writes);
      return out;
    }
    const IoAdmission* gate = nullptr;
  };
  [[nodiscard]] Entries entries(pid_t tid) const;
  [[nodiscard]] Entries entries_of(pid_t tid) const;  // with the lock
  void count_held() { held_now_.store(held_.size() + frozen_.size(), std::memory_order_relaxed); }

  const sys::Procfs& procfs_;
  const Clock& clock_;
  Options options_;
  sys::BlockDevices disks_;
  mutable sys::PiMutex mutex_;  // all that follows, but for delays_
  std::vector<MissingPiece> missing_;
  decide::Shaping shaping_;
  struct Said {
    decide::ClassLimits limits;
    bool inherits_own = false;
    std::optional<decide::Tokens> automatic;
  };
  std::map<std::string, Said> said_;
  std::unordered_map<decide::Shaping::ClassIndex, ViewPtr> views_;
  ViewPtr unlimited_ = std::make_shared<const View>();
  std::unordered_map<pid_t, decide::Shaping::ClassIndex> members_;  // by tgid
  static constexpr std::size_t max_released = 10'000;
  std::unordered_map<pid_t, std::uint64_t> released_;  // start times
  std::unordered_set<pid_t> favoured_;
  struct Hold {
    const HeldCall* call = nullptr;
    Time since;
    bool favoured_wait = false;
    std::shared_ptr<const decide::Debts> debts;  // of a frozen process
  };
  std::unordered_map<pid_t, Hold> held_;
  std::unordered_map<pid_t, Hold> frozen_;  // threads
  struct Paid {
    decide::Tokens read = 0, written = 0;
  };
  std::unordered_map<pid_t, std::shared_ptr<decide::Debts>> debts_;                // of threads that owe something
  std::unordered_map<pid_t, std::shared_ptr<const decide::Debts>> process_debts_;  // of processes that pay at once
  std::unordered_map<pid_t, Paid> paid_;        // what was charged between calls, and not yet seen by the gate
  std::unordered_map<pid_t, Entries> entered_;  // of classes whose members pay at once
  std::uint64_t generation_ = 1;                // of members_ and views_
  std::function<bool(pid_t)> has_gate_;
  std::atomic<std::size_t> held_now_{0};
  std::uint64_t delayed_total_ = 0;
  std::shared_ptr<sys::NetIo> traffic_;  // once a class limits a network; null: it cannot be had
  std::shared_ptr<sys::LastIo> ends_;    // once a class has limits; null: it cannot be had
  bool traffic_tried_ = false;
  std::once_flag ends_wanted_;
  actuate::Delays delays_;             // its thread ends before all that
  std::unique_ptr<MmapThrottler> pages_;  // last; once a class asks for it
};

}  // namespace swapd::daemon
