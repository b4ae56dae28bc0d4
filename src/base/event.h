// The typed events that every observer produces and that the model consumes (docs/design.md, Observers).
//
// They are all the model ever learns: a recorded stream of them, replayed, gives the same decisions.
// Times are CLOCK_MONOTONIC. Thread ids are those of swapd's own pid namespace.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "base/class_id.h"
#include "base/recycled.h"
#include "base/resource.h"
#include "base/sched_attr.h"
#include "base/thread_id.h"
#include "base/time.h"
#include "base/weight.h"
#include "base/words.h"

namespace swapd {

// Why a thread is believed to be a provider, the best first: the cold-start order of docs/design.md, Model.
enum class Evidence : std::uint8_t {
  woke,      // it has provided this resource: the waker of an earlier wait
  accessed,  // it made a call on the resource (the paper's history)
  sent_to,   // the thread that the requester's own last send woke
  kin,       // it has ended such waits of other processes of the requester's family
  relayed,   // a message bus, or the like, has passed the requester's message on to it
  owner,     // it holds the lock, or its tid stands in the futex word
  holder,    // its process holds a descriptor of the other end
  child,     // it is the child (or a thread of it) that the parent waits for
  guess,     // it could, and it wants a CPU: nothing tells that it does. Gets a nice value at most
};
inline constexpr auto evidence_words = words<Evidence>({{"woke", Evidence::woke},
                                                        {"accessed", Evidence::accessed},
                                                        {"sent-to", Evidence::sent_to},
                                                        {"kin", Evidence::kin},
                                                        {"relayed", Evidence::relayed},
                                                        {"owner", Evidence::owner},
                                                        {"holder", Evidence::holder},
                                                        {"child", Evidence::child},
                                                        {"guess", Evidence::guess}});
[[nodiscard]] constexpr std::string_view name(Evidence evidence) { return evidence_words.of(evidence); }

// The thread is in the managed set, with these attributes of its own. A second one updates them.
struct Enrolled {
  Time time;
  ThreadId thread;
  pid_t tgid = 0;
  std::uint32_t uid = 0;
  SchedAttr base;
  ClassId class_id = 0;
  Weight weight = usual_weight;  // of its CPU group, if the policy asks for it; else usual
};
// The thread made a call by which it may provide the resource [SWAP04 §3.1].
struct Accessed {
  Time time;
  ThreadId thread;
  Resource resource;
  Evidence evidence = Evidence::accessed;
};
// The thread made the call that gives the resource away for good: it will not provide it again.
struct Released {
  Time time;
  ThreadId thread;
  Resource resource;
};
// The thread sleeps in system call `call` until one of `awaited` is provided. Empty: no provider can be named (a timer,
// disk, a page fault); call -1: not in a system call. A repeated Blocked with the same awaited resources is the same
// wait.
struct Blocked {
  Time time;
  ThreadId thread;
  std::int32_t call = -1;
  std::vector<Resource> awaited;
};
// The wait is over. `by` is the waker where it is known; `through` is the resource that its call was on, where it is
// known. Credit: `by` is a provider of an awaited resource, and `through`, where known, was awaited. `unrelated`: known
// to be a signal, a timeout or an interrupt, so no thread gains credit. `stranger`: a thread that is not managed (any
// more) ended it by a call that is no signal. Not recorded.
struct Woken {
  Time time;
  ThreadId thread;
  std::optional<ThreadId> by;
  std::optional<Resource> through;
  bool unrelated = false;
  bool stranger = false;
};
// The threads that could provide the resource now, as a scan found them; they replace the providers of evidence owner,
// or of a weaker one, that an earlier scan gave. generation: as asked for, a stale one is dropped by the caller.
struct Holders {
  Time time;
  Resource resource;
  Evidence evidence = Evidence::holder;
  std::vector<ThreadId> threads;
};
// The leaf that was favoured for `requester` has used one quantum T of its own CPU time since it was favoured (or since
// the last of these) and the requester still waits. `path`: the way to it that was favoured, direct provider … leaf.
struct QuantumUsed {
  Time time;
  ThreadId requester;
  Vector<ThreadId> path;
};
struct Execed {
  Time time;
  ThreadId thread;
};
struct Exited {
  Time time;
  ThreadId thread;
};

// The thread has begun many waits of which few were told, while less important threads had CPUs. `by` ended the last,
// and as far as is known so many of them. The model does not learn from it.
struct Conversed {
  Time time;
  ThreadId thread;
  ThreadId by;
  std::uint32_t waits = 0;
};

// The thread counts as one with these attributes where it waits, and not with its own. None: with its own again.
struct Ranked {
  Time time;
  ThreadId thread;
  std::optional<SchedAttr> counts_as;
};

using Event =
    std::variant<Enrolled, Accessed, Released, Blocked, Woken, Holders, QuantumUsed, Execed, Exited, Conversed, Ranked>;

}  // namespace swapd
