// The seam between the kernel and the model: a source of events (docs/design.md, Observers).
//
// An observer is owned and called by the engine thread alone. It looks only at threads it was told to watch; every
// other managed thread costs nothing but its own trapped calls.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/event.h"
#include "observe/resolve/resolver.h"
#include "sys/netlink/proc_events.h"
#include "sys/process/event_loop.h"

namespace swapd::observe {

// A question that needs more than the engine thread may do: the worker answers with Resolver::full(). The generation
// is the watched thread's wait; an answer to an older one is dropped.
struct WaitQuestion {
  ThreadId thread;
  CallSite site;
  std::uint64_t generation = 0;
};
struct WaitAnswer {
  WaitQuestion question;
  Wait wait;
};

// The same for a trapped call whose resource takes more to tell: Resolver::full_access().
struct AccessQuestion {
  ThreadId thread;
  Time time;
  CallSite site;
};
struct AccessAnswer {
  AccessQuestion question;
  Access access;
};

struct Member {
  ThreadId id;
  pid_t tgid = 0;
  std::uint64_t process_start = 0;  // start time of the process; 0: not known
};

// Costs of watching, for `status`.
struct Costs {
  std::size_t watched = 0;
  std::size_t unheard = 0;    // of them, at the moment, for the sake of swapd's budget
  std::uint64_t wakeups = 0;  // records that woke the engine
  std::uint64_t polls = 0;    // looks because a poll period had passed
  enum class Method : std::uint8_t { poll, perf, bpf } method = Method::poll;
};

class Observer {
 public:
  struct Hooks {
    // The member that has this tid. Empty: not managed. Called for tids of notifications and trace records.
    std::function<std::optional<Member>(pid_t)> identify;
    std::function<void(WaitQuestion)> ask;
    std::function<void(AccessQuestion)> ask_access;
    // Only from an observer that follows_children(), while it drains.
    std::function<void(const sys::ProcEvent&)> lifecycle;
    // Whether a consumer wants to hear of children too that are dead already. Empty: none does.
    std::function<bool()> every_life;
    // So many events were lost: what is believed of the managed set may be wrong.
    std::function<void(std::uint64_t)> lost;
    // From an observer that follows the scheduler only when it must: it could not, or (Done) can again. Empty: the
    // caller does not want to know.
    std::function<void(const Status&)> following = {};
  };

  Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  virtual ~Observer() = default;

  // Whether forks, execs and exits of managed threads come through Hooks::lifecycle. Else another source must tell.
  [[nodiscard]] virtual bool follows_children() const { return false; }
  // The thread is in the managed set from now on (again: nothing), or is let go although it lives.
  [[nodiscard]] virtual Status manage(const Member& /*member*/) { return Done{}; }
  virtual void release(ThreadId /*thread*/) {}
  // Whether a descendant of a managed process is in the set by its birth, or was there before.
  [[nodiscard]] virtual bool inherits(pid_t /*tid*/) const { return true; }
  // Puts the descriptors that are there for as long as the observer is into the owner's loop, which outlives it. Call
  // once, before drain(). An error: nothing would be observed. All of an observer's events can wait
  // (EventLoop::Urgency).
  [[nodiscard]] virtual Status listen(sys::EventLoop& loop) = 0;
  // When drain() must run at the latest, descriptor or not.
  [[nodiscard]] virtual std::optional<Time> deadline() const = 0;
  // Appends what has happened since the last call. Never blocks.
  virtual void drain(Time now, std::vector<Event>& out) = 0;
  // The owner rests for a moment and then drains: meanwhile nothing need wake it.
  virtual void nap(bool /*on*/) {}
  // The present state of threads that were watched since the last call, and no more than that; drain() begins with it.
  virtual void report_new(Time now, std::vector<Event>& out) = 0;

  // From now on the thread's waits are reported, and its present state with the next drain() or report_new(). `sender`:
  // whom it wakes last before a wait is reported too (Evidence::sent_to).
  virtual void watch(const Member& member, bool sender) = 0;
  virtual void unwatch(ThreadId thread) = 0;
  // Whether what this watched thread does is told at once, or with the next drain(). At first it is.
  virtual void set_urgent(ThreadId /*thread*/, bool /*urgent*/) {}
  // The wait that has just ended was ended by `provider`, the only one who can: the next wait of the kind need not be
  // told as long as that one runs. A default thread: every wait is told.
  virtual void expect(ThreadId /*thread*/, ThreadId /*provider*/) {}
  // Whether it waits now, untold, for the thread that it is expected to wait for; or, of one that waits often, whether
  // observed threads have ended waits of it since this was asked last, while less important threads had a CPU.
  [[nodiscard]] virtual bool waits_unreported(ThreadId /*thread*/) { return false; }
  // This watched thread's waits that come more often than once in `patience` need be told only if they last longer, or
  // if a thread that it waits for lacks a CPU. 0: each is told.
  virtual void be_patient(ThreadId /*thread*/, Duration /*patience*/) {}
  // Whether it knows how much CPU the managed threads use, so that nothing else need be attached to them.
  [[nodiscard]] virtual bool counts_cpu() const { return false; }
  // While it has a CPU as of the last tick, or exact where that was asked for. Empty: the thread is not managed.
  [[nodiscard]] virtual std::optional<Duration> cpu_time(ThreadId /*thread*/, Time /*now*/) const {
    return std::nullopt;
  }
  virtual void time_exactly(ThreadId /*thread*/, bool /*on*/) {}
  // Tells of a wait that has been going on untold since before `since`.
  virtual void look_if_unreported(ThreadId /*thread*/, Time /*since*/, std::vector<Event>& /*out*/) {}
  // Tells of the waits that go on untold now: before they are shown to people.
  virtual void look_at_unreported(Time /*now*/, std::vector<Event>& /*out*/) {}
  // Is what was last reported of this watched thread still true? A thread that was woken and has not got a CPU yet is
  // runnable, and no record says so. Appends what has changed.
  virtual void look(ThreadId thread, Time now, std::vector<Event>& out) = 0;
  // Asks anew for what the thread waits, which may change while it waits: a connection is accepted, an epoll set gets
  // another member. A change comes as another `Blocked` of the same time.
  virtual void resolve_again(ThreadId thread) = 0;
  // The thread's wakeups matter now, because it is one of several candidates.
  virtual void trace_wakes(ThreadId thread) = 0;
  virtual void untrace_wakes(ThreadId thread) = 0;
  // These threads, which are not managed, were found to hold the other end of what watched threads wait for. They may
  // pass messages on (relays.h); appends whom to. False: it was not told whom they have woken.
  virtual bool held_by(const Resource& /*resource*/, const std::vector<ThreadId>& /*strangers*/,
                       std::vector<Event>& /*out*/) {
    return false;
  }
  // Those of them that were seen to pass messages on.
  [[nodiscard]] virtual bool relays(ThreadId /*thread*/) const { return false; }
  virtual void answer(const WaitAnswer& answer, std::vector<Event>& out) = 0;
  virtual void answer(const AccessAnswer& answer, std::vector<Event>& out) = 0;
  virtual void forget(ThreadId thread) = 0;  // it has ended, or is of no interest any more
  [[nodiscard]] virtual Costs costs() const = 0;
};

}  // namespace swapd::observe
