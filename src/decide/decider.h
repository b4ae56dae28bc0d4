// The seam between deciders and the engine: a decider reads the model, keeps its own state, and says what it wants as
// values; the engine's decision loop carries it out (docs/adding-a-decider.md). Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/event.h"
#include "base/recycled.h"
#include "base/sched_attr.h"
#include "base/thread_id.h"
#include "base/time.h"
#include "base/words.h"
#include "decide/progress.h"

namespace swapd::model {
class Model;
}

namespace swapd::decide {

// --- what a decider wants

// Why: for `why`, events and the journal.
struct Cause {
  std::string_view by;    // the decider's name; of static storage
  ThreadId on_behalf_of;  // the requester; none: the decider's own reasons
  Resource through;       // … and what it waits for
  bool operator==(const Cause&) const = default;
};

// Whose CPU budget a boost uses: that of the requester in the cause, and that of its user.
struct Payer {
  std::uint32_t user = 0;  // 0: root, or there is no other user: no quota
  ClassId requester_class = 0;
  ClassId provider_class = 0;
  bool operator==(const Payer&) const = default;
};

// The thread runs with these attributes.
struct RunAs {
  ThreadId thread;
  SchedAttr attr;
  Cause cause;
  Payer payer;
  std::optional<SchedAttr> second_best;  // where a real-time `attr` would do harm or is refused; none: nothing then
  bool doubted = false;                  // it has not helped so far: `attr` is less than was asked for
  bool withheld = false;                 // … and so nothing is given for the present
  bool lowers = false;                   // `attr` is less than the thread's own, and meant to be
  bool lowers_group = false;             // its session shall take next to nothing from other sessions (autogroup)
  bool slice_only = false;               // of `attr` the slice alone: the rest stays as the thread has it
  bool stands = false;                   // it is no help for one wait: the thread may not be waited for just now
  bool quiet = false;                    // it comes and goes many times a second: no event tells of it
  bool operator==(const RunAs&) const = default;
};

// Once: the boosted thread goes behind the others of its priority, as by sched_yield(2).
struct GiveWay {
  ThreadId thread;
  ThreadId on_behalf_of;  // only while it runs for this requester
};

// The class may do this much I/O on all disks together, besides what its policy says.
struct LimitIo {
  std::string class_name;
  std::optional<std::int64_t> bytes_a_second;  // none: no limit
  Cause cause;
};

// The process stands still, and what it has of memory is swapped out. Not renewed, it comes back: its pages first.
struct PutAway {
  pid_t tgid = 0;
  std::uint64_t job = 0;  // ProcessMemory::job
  bool operator==(const PutAway&) const = default;
};

// Threads of this CPU take turns at least so often, whatever the kernel's tick.
using ShortTurns = std::map<int, Duration>;

using Demand = std::variant<RunAs, GiveWay, LimitIo, PutAway>;

// A wish for what is to be observed of a thread. The default wants nothing.
struct Interest {
  enum class Watch : std::uint8_t { none, provider, requester };
  enum class Wakes : std::uint8_t { untold, told };
  ThreadId thread;
  pid_t tgid = 0;
  Watch watch = Watch::none;    // its waits are told; of a requester also whom it wakes last before one
  bool urgent = false;          // what it does is told at once, not with the next batch
  Wakes wakes = Wakes::untold;  // whom it wakes
  ThreadId expected;            // this thread ends its usual wait: such a wait need not be told for 20 ms
  Duration patience{};     // waits that come more often than once in this time are told only where they last longer,
                           // or where a thread that ends them lacks a CPU; 0: every wait is told
  bool new_child = false;  // it has just forked: a wait for that child need not be told either
  bool operator==(const Interest&) const = default;
};

// Asks the observer now; what it tells comes as events before the next decide().
struct Look {
  enum class At : std::uint8_t {
    state,       // is what was last told of this watched thread still true?
    unreported,  // tell of a wait that has gone on untold since before `since`
    awaited,     // resolve anew what the thread waits for (the answer comes later)
    run_time,    // how much CPU time it has used (RunTime, in this turn)
  };
  ThreadId thread;
  At at = At::state;
  Time since{};
};

// Asks the worker who could provide these resources; the answer comes as Holders events.
struct Question {
  ThreadId waiter;
  std::vector<Resource> resources;
  bool again = false;  // of a wait that has been asked about before
};

// Fires once `cpu_of` has used `period` of CPU time, or at `wall` from its begin, whichever comes first. Where the
// thread's CPU time cannot be had, `wall_uncounted` alone counts.
struct Timer {
  enum class Kind : std::uint8_t { quantum, linger } kind = Kind::quantum;
  ThreadId requester;  // with the kind: the timer's identity in its decider
  ThreadId cpu_of;
  Duration period{};
  Duration wall{};
  Duration wall_uncounted{};
  std::uint64_t serial = 0;  // another one: the timer begins anew
};

// A boost whose benefit is measured: CpuUsed, Delivered, … and Judged come of it.
struct Metered {
  ThreadId thread;         // it runs …
  ThreadId on_behalf_of;   // … for this requester
  bool counts = true;      // it has a boost
  bool suspected = false;  // it was seen to spin before: sample it at once
  bool given_up = false;   // its verdict is in
};

class LastingDemands;

// Everything that a decider wants. Demands, timers and metered boosts are complete sets: what is not renewed ends.
// Interests are those that have changed, because there may be ten thousand. Buffers are reused.
struct Plan {
  bool complete = true;        // false: carry this out, tell what comes of it, and ask again in the same turn
  bool keeps_demands = false;  // demands, timers and metered boosts stay as they were in the last plan
  std::vector<Demand> demands;
  const LastingDemands* lasting = nullptr;  // stand behind `demands`; the decider's own, which changes them in decide()
  std::vector<Timer> timers;
  std::vector<Metered> metered;
  std::vector<Interest> interests;
  std::vector<Look> looks;
  std::vector<Question> questions;
  Vector<Event> feedback;        // for the model
  std::vector<ThreadId> called;  // to be told of their next message each (MessageCalled); complete, as demands are
  ShortTurns short_turns;        // complete, too
  std::optional<Time> next;      // decide again at the latest then
  bool punctual = false;         // … and not a millisecond later because swapd keeps to its budget
  bool idle = true;              // nothing is in flight: ticks may come late
  bool needs_calls = false;      // a trapped call that is still to come may name a provider: receivers tell at once
  bool may_batch = false;        // help is on its way along a whole chain: records may gather for a moment
};

inline void clear(Plan& plan) {
  plan.complete = plan.idle = true;
  plan.keeps_demands = plan.needs_calls = plan.may_batch = plan.punctual = false;
  plan.demands.clear();
  plan.lasting = nullptr;
  plan.timers.clear();
  plan.metered.clear();
  plan.called.clear();
  plan.short_turns.clear();
  plan.interests.clear();
  plan.looks.clear();
  plan.questions.clear();
  plan.feedback.clear();
  plan.next.reset();
}

// --- what a decider learns, besides the model

struct TimerFired {
  Time time;
  std::uint32_t decider = 0;  // which one's timer it is
  Timer::Kind kind = Timer::Kind::quantum;
  ThreadId requester;
  std::uint64_t serial = 0;
  Duration wall_left{};     // to its wall
  bool unreported = false;  // the requester waits again, untold, for the thread that is expected to end its wait
  bool gone = false;        // the measured thread has ended
};
// A metered thread has used CPU time for this requester.
struct CpuUsed {
  Time time;
  ThreadId thread;
  ThreadId on_behalf_of;
  Duration cpu{};
};
// The wait of a requester with metered boosts is over. by: if it is known; an invalid one: a thread that is not
// managed.
struct WaitEnded {
  Time time;
  ThreadId requester;
  std::optional<ThreadId> by;
};
// A metered thread has woken another thread, or has blocked.
struct Delivered {
  Time time;
  ThreadId thread;
  bool by_blocking = false;
};
struct Judged {
  Time time;
  ThreadId thread;
  SpinJudge::Verdict verdict = SpinJudge::Verdict::unknown;
};
struct Forked {
  Time time;
  ThreadId parent;
};
// CPU time that a boosted thread has used, on the budgets of its requester (of this class) or of a user; not both.
struct BudgetUsed {
  Time time;
  ThreadId requester;  // none: the user's
  ClassId requester_class = 0;
  std::uint32_t user = 0;
  Duration cpu{};
};
// The class is to have an automatic limit, of `least` bytes a second or more, so that the class that it protects has
// this rate, or waits for I/O for no more than this share of its time; or it is not (`on`).
struct AutoLimitAsked {
  Time time;
  std::string class_name;
  bool on = true;
  std::int64_t least = 0;
  std::optional<std::int64_t> rate;  // bytes a second
  std::optional<double> wait;        // 0…1
};
// How the protected programs, and those of the class with an automatic limit, fared in a period.
struct ClassFared {
  Time time;
  std::string class_name;
  Duration period{};
  std::int64_t by_calls = 0, by_disk = 0;          // bytes moved by the protected programs
  double waited = 0;                               // 0…1, by the protected thread that waited longest
  std::int64_t others_calls = 0, others_disk = 0;  // bytes moved by the class's own programs
};
// swapd's own CPU time nears its budget, or is well below it: waits are to be looked at after so long
// (ObservationBudget).
struct PatienceChanged {
  Time time;
  Duration patience{};
};
// A busy thread's use of its CPU in a window (daemon/engine/job_watch.h). Those of one window have the same time.
struct ThreadProfiled {
  Time time;
  ThreadId thread;
  std::uint64_t job = 0;              // the same for all threads that share memory or a launcher
  bool shares_memory = false;         // … which are in several processes
  bool fits = true;                   // all of them can have CPUs at once: of those that they may use there are enough
  std::uint64_t room = 0;             // the same for jobs that cannot all have CPUs at once; 0: not known
  Duration window{}, cpu{};           // CPU time in the window
  double spinning = 0, yielding = 0;  // 0…1: of the times that it was seen, in a loop that waits; in sched_yield(2)
  bool share_known = true;            // the next two are
  double inner = 1;                   // 0…1: what it was due of the CPU time of its group, by its nice value
  double upper = 1;                   // 0…1: what its groups were due of the CPU
  double group_use = 1;               // 0…1: of its CPU, that the threads of its group had together
  double group_others = 1;            // in CPUs: that its group's threads which are not of its job had, on all CPUs
  std::uint32_t weight = 0;  // by its nice value; 0: no sample has met it, and this and the next two are not known
  std::uint64_t group = 0;   // the same for threads of one group on one CPU
  std::int32_t cpu_number = 0;
  std::uint64_t blocks = 0;  // voluntary context switches in the window
  bool rivals = true;        // some other ordinary thread that counts wanted its CPU all the time, as far as is known
  double demand = 1;         // 0…1: of the time lately, that it had or wanted a CPU
  template <typename Self, typename Archive>
  static void state(Self& self, Archive& archive) {
    archive(self.time, self.thread, self.job, self.shares_memory, self.fits, self.room, self.window, self.cpu,
            self.spinning, self.yielding, self.share_known, self.inner, self.upper, self.group_use, self.group_others,
            self.weight, self.group, self.cpu_number, self.blocks, self.rivals, self.demand);
  }
};
// The answer to Look::At::run_time: CPU time that the thread has used in all, and whether it can run.
struct RunTime {
  Time time;
  ThreadId thread;
  Duration cpu{};
  bool runnable = false;
};
// A message has come for a thread that Plan::called names, or the thread has been woken. Once for each plan that does.
struct MessageCalled {
  Time time;
  ThreadId thread;
  bool waits = false;          // it came before, and has not been read: its sender may have no CPU any more
  std::uint32_t messages = 0;  // that came between this naming and the one before
};
// The memory of the machine, or of a control group that has a limit, in a window.
struct MemoryFared {
  Time time;
  std::string group;  // of the memory controller; empty: the machine
  Duration window{};
  std::uint64_t refaults = 0;     // anonymous pages that came back not long after they had been swapped out
  std::uint64_t in = 0, out = 0;  // pages swapped
  Duration page_cost{};           // about what it takes to bring one back
  std::int64_t room = 0;          // bytes that can be had without swapping
  std::int64_t swap_room = 0;     // bytes that can be swapped out still
};
// The memory of a managed process. Those of one round come before its windows, and have their time.
struct ProcessMemory {
  Time time;
  pid_t tgid = 0;
  std::uint64_t job = 0;                   // the same for those that are put away together
  std::string group;                       // of the memory controller
  bool needed = false;                     // it must stay: others could not go on without it
  std::int64_t resident = 0, swapped = 0;  // bytes that can be swapped out, and that are
  template <typename Self, typename Archive>
  static void state(Self& self, Archive& archive) {
    archive(self.time, self.tgid, self.job, self.group, self.needed, self.resident, self.swapped);
  }
};
// Something came to, or became of, a process that PutAway names.
struct MemoryEvent {
  enum class What : std::uint8_t {
    input,    // something has come for it that it waits for
    refused,  // it cannot be put away
    asked,    // a person wants it back
  };
  Time time;
  pid_t tgid = 0;
  What what = What::input;
};
inline constexpr auto memory_event_words = words<MemoryEvent::What>({{"input", MemoryEvent::What::input},
                                                                     {"refused", MemoryEvent::What::refused},
                                                                     {"asked", MemoryEvent::What::asked}});
using Input =
    std::variant<TimerFired, CpuUsed, WaitEnded, Delivered, Judged, Forked, BudgetUsed, AutoLimitAsked, ClassFared,
                 PatienceChanged, ThreadProfiled, RunTime, MessageCalled, MemoryFared, ProcessMemory, MemoryEvent>;

// Circumstances of one call of decide().
struct Turn {
  Time now;
  bool first = true;      // of the calls that a turn takes until its plan is complete
  bool tick = false;      // some milliseconds have passed since the last one with it
  bool may_ask = false;   // the worker has nothing else to do: questions that can wait are welcome
  bool must_ask = false;  // it has, but has rested from such questions: those that are overdue
  bool operator==(const Turn&) const = default;
};

class StateWriter;
class StateReader;

class Decider {
 public:
  Decider() = default;
  Decider(const Decider&) = delete;
  Decider& operator=(const Decider&) = delete;
  virtual ~Decider() = default;

  [[nodiscard]] virtual std::string_view name() const = 0;
  // False: the event is to be dropped, the model never learns of it.
  [[nodiscard]] virtual bool admits(const Event& /*event*/, const model::Model& /*model*/) const { return true; }
  // The model is about to learn of it.
  virtual void before(const Event& /*event*/, const model::Model& /*model*/) {}
  // The model has learnt of it.
  virtual void after(const Event& /*event*/, const model::Model& /*model*/) {}
  virtual void on(const Input& /*input*/) {}
  // The thread has left the managed set: nothing may name it from now on.
  virtual void forget(ThreadId /*thread*/) {}
  // plan: cleared.
  virtual void decide(const model::Model& model, const Turn& turn, Plan& plan) = 0;
  // All that its answers depend on, for recordings.
  virtual void save(StateWriter& /*out*/) const {}
  virtual void restore(StateReader& /*in*/) {}
};

}  // namespace swapd::decide
