// From a system call and its arguments to resources ([SWAP04 §3.2], [SWAP03 §3.2]; docs/design.md, Resources).
//
// The slow calls, marked [worker], may come from any thread: they take turns. Those marked [engine] never wait for
// them.
//
// Two callers. The engine: quick(), one descriptor (two for sendfile and splice), no scan, no allocation beyond the
// small vector. The worker: full(), which reads poll sets, epoll sets (nested), sembufs and peers, and scan(), which
// finds who could provide. Descriptor identities are checked on each use: close, dup, SCM_RIGHTS and fork are not
// trapped. Sets of descriptors are the exception: what was found in one is believed for a moment (wait_set_cache.h).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/event.h"
#include "base/missing_piece.h"
#include "base/resource.h"
#include "sys/procfs/procfs.h"

namespace swapd::sys {
class SockDiag;
}

namespace swapd::observe {

// A thread blocked in a call, or entering one.
struct CallSite {
  pid_t tid = 0;
  pid_t tgid = 0;
  std::int32_t nr = -1;
  std::array<std::uint64_t, 6> args{};
  std::uint64_t process_start = 0;  // start time of the process, where the caller knows it: to be spared a look
};

// The resources that a blocked thread waits for.
struct Wait {
  std::vector<Resource> awaited;  // empty: no provider can be named (timer, disk)
  bool complete = false;          // false: the worker must look (poll sets, an unknown peer)
  // The futex's owner, the mutex's holder and the like, where the call itself names it.
  std::vector<pid_t> owners;
  // A wait in a set that was not looked at, or for a socket whose peer could not be asked for now: the worker must look
  // then if it still lasts. Max: no need.
  Time believed_until = Time::max();
};

// A call as a provider's act: which resources the caller becomes a provider of by making it, and which it gives away.
struct Access {
  std::vector<Resource> accessed;
  std::vector<Resource> released;
  bool complete = false;  // false: the worker must look
  bool of_files = false;  // it reads or changes files
};

// Do two calls name the same resources, whatever is in their buffers? Then one access() serves both, at one moment.
[[nodiscard]] bool same_access(const CallSite& a, const CallSite& b);

// Threads that could provide a resource, found by looking.
struct Found {
  Resource resource;
  Evidence evidence = Evidence::holder;
  std::vector<ThreadId> threads;     // at most three a process: running, queued, main
  std::vector<ThreadId> unenrolled;  // the same, of processes outside `members`: for `why`, never boosted
  // Managed threads that want a CPU and are connected to one of those, if it is a message bus. A guess, for observers
  // that were not told whom the bus has woken.
  std::vector<ThreadId> behind;
};

class Resolver {
 public:
  // clock: ages what is remembered; null: the steady clock.
  Resolver(const sys::Procfs& procfs, sys::SockDiag& diag, const Clock* clock = nullptr);
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  // [engine] What does a thread blocked in this call wait for? Peers come from the cache; unknown ones give complete =
  // false. An incomplete answer may hold what the same wait awaited last time: a guess to act on until the worker
  // answers.
  [[nodiscard]] Wait quick(const CallSite& site);
  // [worker] The same, with whatever it takes. Fills the cache that quick() reads (thread-safe).
  [[nodiscard]] Wait full(const CallSite& site);
  // [engine] For history = "calls", and for calls without a descriptor (SysV) always.
  [[nodiscard]] Access access(const CallSite& site);
  // [worker] The same for what access() left incomplete: addresses, lock ranges, receivers in another pid namespace.
  // The call has gone on meanwhile, so that its memory may have changed: the answer is history, not proof.
  [[nodiscard]] Access full_access(const CallSite& site);
  // [worker] Who could provide these? `waiter` is left out. `members`: tgids of the managed processes. `asked`: by what
  // was true then, or later; of many questions that were asked before the first is answered, the others are cheap.
  [[nodiscard]] std::vector<Found> scan(pid_t waiter, std::span<const Resource> resources,
                                        std::span<const pid_t> members, Time asked = Time::max());
  // [engine] A wait in a set was ended by what it was not thought to wait for.
  void doubt(const CallSite& site);
  // [engine] A wait for a resource of kind `kernel` has ended: is it worth a look at once the next time?
  void ended(const Resource& kernel, Duration lasted);
  // Whether the thread sleeps for short again and again, as one does that tries something in between.
  [[nodiscard]] bool polls(pid_t tid) const;
  // [engine] Forget what is remembered of a process (exit, exec).
  void forget(pid_t tgid);
  // [any thread] What the kernel was asked for and does not give.
  [[nodiscard]] std::vector<MissingPiece> missing() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace swapd::observe
