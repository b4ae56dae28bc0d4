// The CPU time of threads: timers that deciders ask for, and clocks that charges read. Runs on the engine thread.
//
// CPU time comes from the observer where that counts it, else from perf (one descriptor for each requester, thread and
// use, kept while there is room). Of more pairs than there is room for, those that come last are not counted: their
// timers end by the time that has passed (Timer::wall_uncounted). Quanta ring where perf can; everything else is looked
// at when the rest of its period could have been used, because to set a clock of perf interrupts the CPU that the
// thread was on.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "decide/decider.h"
#include "observe/observer.h"
#include "sys/perf/perf.h"
#include "sys/process/event_loop.h"

namespace swapd::daemon {

// How many parts of the engine need a thread's switches timed exactly; the observer is told of the first and the last.
class ExactTiming {
 public:
  explicit ExactTiming(observe::Observer& observer) : observer_(observer) {}
  void add(ThreadId thread);
  void remove(ThreadId thread);
  void forget(ThreadId thread) { users_.erase(thread); }
  [[nodiscard]] bool idle() const { return users_.empty(); }

 private:
  observe::Observer& observer_;
  HashMap<ThreadId, int> users_;
};

class CpuClocks {
 public:
  // Told when the quantum of a thread begins and ends, so that charges know what it has used in between.
  struct Hooks {
    std::function<void(ThreadId thread, Time)> quantum_begins;
    std::function<void(ThreadId thread, Time)> quantum_ends;
    std::function<void(const decide::TimerFired&)> rang;  // a perf clock did
  };
  CpuClocks(observe::Observer& observer, ExactTiming& exact, sys::EventLoop& loop, Hooks hooks);

  // The complete set of timers of one decider from now on.
  void apply(std::size_t decider, std::span<const decide::Timer> wanted, Time now);
  // Reads the clocks that are due, and appends the timers that fire.
  void run(Time now, std::vector<decide::TimerFired>& out);
  // Timers whose wall time is over, which only ticks tell.
  void tick(Time now, std::vector<decide::TimerFired>& out);
  [[nodiscard]] std::optional<Time> next() const { return next_; }
  [[nodiscard]] bool idle() const;
  void forget(ThreadId thread);

  // CPU time since some moment before, which is another one for another clock; none: it cannot be had.
  struct Reading {
    Duration used{};
    std::uint64_t clock = 0;  // 0: the observer's
  };
  [[nodiscard]] std::optional<Reading> cpu_time(ThreadId thread, Time now) const;
  [[nodiscard]] bool has_clock(ThreadId thread) const;
  // Opens one of perf where there is room.
  bool open_clock(ThreadId requester, ThreadId thread, Time now);

  static constexpr Duration min_look = std::chrono::microseconds(50);

 private:
  using Kind = decide::Timer::Kind;
  struct Pooled {
    std::unique_ptr<sys::CpuTimer> perf;
    std::uint64_t key = 0;
    mutable Time last_used{};                   // reading it is a use
    mutable bool used = true;                   // since drop_unused() looked last
    int on = 0;                                 // clocks that run by it
    sys::EventLoop::Registration registration;  // ends before the descriptor does
  };
  using PoolKey = std::tuple<ThreadId, ThreadId, Kind>;  // requester, thread
  struct Clock {
    decide::Timer timer;
    bool on = false;
    bool pooled = false;  // by a descriptor of perf, which stays meanwhile
    bool wanted = true;
    Time wall_end{};
    Time armed{};
    Duration start{}, used{};
    Time due{};
  };
  using Key = std::tuple<std::size_t, Kind, ThreadId>;  // decider, requester

  // Its descriptor is readable; hung_up: and will stay so, because its thread has ended.
  void ready(std::uint64_t key, bool hung_up, Time now);
  void arm(Clock& clock, Time now);
  void disarm(Clock& clock);
  void fire(const Key& key, Clock& clock, bool gone, Time now, std::vector<decide::TimerFired>& out);
  [[nodiscard]] Pooled* pooled(const decide::Timer& timer);
  [[nodiscard]] const Pooled* pooled(const decide::Timer& timer) const;
  // Null: there is no room.
  Pooled* open(ThreadId requester, ThreadId thread, Kind kind, Time now);
  [[nodiscard]] bool make_room(Time now);
  void drop_unused(Time now);
  [[nodiscard]] bool counted(const decide::Timer& timer) const;
  [[nodiscard]] bool rings(const decide::Timer& timer) const;
  [[nodiscard]] std::optional<Duration> used_so_far(const decide::Timer& timer, Time now) const;
  [[nodiscard]] bool looked_at(const Clock& clock) const;
  void find_next();

  static constexpr std::size_t max_pooled = 128;                        // past this the idle ones are dropped …
  static constexpr Duration idle_for = std::chrono::milliseconds(100);  // … that were not used for so long;
  static constexpr Duration kept = std::chrono::seconds(2);             // past this to twice this, in any case
  observe::Observer& observer_;
  ExactTiming& exact_;
  sys::EventLoop& loop_;
  Hooks hooks_;
  Map<Key, Clock> clocks_;
  std::map<PoolKey, Pooled> pool_;
  std::uint64_t next_key_ = 1;
  Time full_until_{};
  Time next_drop_{};
  std::optional<Time> next_;
};

}  // namespace swapd::daemon
