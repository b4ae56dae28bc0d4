// When a thread blocks, on what, and when it goes on: learnt after the fact, without touching its calls
// (docs/design.md, Observers). perf's context-switch records say when to look, /proc/TID/syscall says at what.
//
// While it runs, only its falling asleep wakes us (a filtered tracepoint): to be told of each preemption would be a
// loop, because to be told preempts it. While it sleeps, its next turn on a CPU does (switch records). Where
// tracepoints are not to be had, switch records tell of both.
//
// A thread that sleeps too often for a wake-up at each time is polled for a while instead, these events closed: a
// thread that waits less than a poll period at a time gains nothing from a donation that a lingering one does not give.
// (Whom it wakes is recorded on, because that keeps help alive, wake_records.h.) Where swapd is over its budget of CPU
// time, its patience says what is too often, and how long a poll period is. Without perf all are polled.
//
// All of that costs the thread some microseconds each time that it sleeps, and swapd as much or more. Where that is
// more than swapd may use, only a part of the threads is heard of at a time (hear()): the others have neither records
// nor polls, and count as running.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/fd.h"
#include "observe/observer.h"
#include "observe/seccomp/busy_sleeper.h"
#include "observe/seccomp/hearing_turns.h"
#include "observe/wait_state.h"
#include "sys/perf/perf.h"
#include "sys/procfs/procfs.h"

namespace swapd::observe {

class ThreadWatch {
 public:
  struct Settings {
    Duration poll_period = std::chrono::milliseconds(1);
    bool perf = true;         // false: poll all
    bool tracepoints = true;  // false: switch records alone
  };
  // trapped: does the filter notify of this call? Such a call may be held by our own unanswered notification.
  ThreadWatch(const sys::Procfs& procfs, Resolver& resolver, Settings settings, Observer::Hooks hooks,
              std::function<bool(std::int32_t)> trapped);

  // Threads watched from now on are heard of through this loop; without one all are polled.
  void listen(sys::EventLoop& loop) { loop_ = &loop; }
  [[nodiscard]] std::optional<Time> deadline() const;
  void add(const Member& member);
  void remove(ThreadId thread);
  // Observer::be_patient().
  void set_patience(ThreadId thread, Duration patience);
  // The part of the threads that is heard of from the next drain() on, in turn.
  void hear(double part) { hearing_.turns.set_part(part); }
  [[nodiscard]] bool hears(ThreadId thread) const;
  // Threads of which that has changed since the last call.
  [[nodiscard]] std::vector<ThreadId> take_turned();
  void drain(Time now, std::vector<Event>& out);
  void report_new(Time now, std::vector<Event>& out);
  void look(ThreadId thread, Time now, std::vector<Event>& out);
  // A call of it was answered, which came at `time`: until then it was held, and now it has gone on.
  void answered(ThreadId thread, Time time);
  void resolve_again(ThreadId thread);
  void answer(const WaitAnswer& answer, std::vector<Event>& out);
  [[nodiscard]] Costs costs() const;

 private:
  struct Watched {
    WaitState wait;
    std::unique_ptr<sys::SwitchWatch> perf;   // none: always polled, or not heard of
    std::unique_ptr<sys::TraceWatch> blocks;  // none: `perf` is always on
    // Registrations of `perf` and `blocks` in the loop.
    sys::EventLoop::Registration hears_turns, hears_blocks;
    Fd call;              // its /proc/TID/syscall
    Time answered{};      // when its last trapped call came
    bool polled = false;  // now
    bool fresh = false;   // not looked at yet
    bool heard = false;
    Duration patience{};
    BusySleeper busy;
    Time next_poll{}, poll_until{};
  };

  void take_turns(Time now, std::vector<Event>& out);
  void plan_turns(Time now);
  void open(Watched& w);
  void begin_hearing(Watched& w);
  void end_hearing(Watched& w, Time now, std::vector<Event>& out);
  void read_records(Watched& w, Time now, std::vector<Event>& out);
  static void tell_runs(Watched& w, Time now, std::vector<Event>& out);
  void look(Watched& w, Time now, bool ran_meanwhile, std::vector<Event>& out);
  void rest(Watched& w, Time now);
  void end_rest(Watched& w, Time now, std::vector<Event>& out);
  void close(Watched& w);
  void poll(Watched& w, Time now, std::vector<Event>& out);
  [[nodiscard]] Duration poll_period(const Watched& w) const;
  [[nodiscard]] sys::EventLoop::Registration hear_of(Watched& w, int descriptor);
  void ready(Watched& w, bool hung_up);
  static void hear_of_turns(const Watched& w, bool on);

  const sys::Procfs& procfs_;
  Settings settings_;
  Observer::Hooks hooks_;
  WaitTeller teller_;
  std::function<bool(std::int32_t)> trapped_;
  sys::EventLoop* loop_ = nullptr;
  std::unordered_map<ThreadId, std::unique_ptr<Watched>> watched_;
  std::vector<ThreadId> ready_, being_read_;
  std::size_t polled_ = 0;
  Time next_poll_{};  // of all
  std::vector<Watched*> fresh_;
  struct {
    HearingTurns turns;
    std::size_t threads = 0;                          // that are heard of
    std::vector<std::pair<ThreadId, bool>> changing;  // threads to hear of, or no more; taken from the back
    std::vector<ThreadId> changed;                    // since take_turned()
    std::vector<ThreadId> untold;                     // added while there was no room: they count as running
  } hearing_;
  struct {
    std::uint64_t wakeups = 0, polls = 0;
  } counts_;
};

}  // namespace swapd::observe
