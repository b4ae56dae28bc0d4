// Notes what has been charged to a thread between two of its calls, so that it is paid once: by its gate at the next
// call, or before that by whatever looks at threads between their calls (mapped = "freeze"). Pure.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <unordered_map>

#include "base/io_counters.h"
#include "decide/shaping/caller.h"

namespace swapd::decide {

// The calls of a thread that have come to its gate: how many, what the kernel had counted at the last one, and what
// that one was charged of disks before it moved anything.
struct GateEntry {
  std::uint64_t count = 0;
  IoCounters counted;
  Tokens reads = 0, writes = 0;
  const void* gate = nullptr;
  [[nodiscard]] IoCounters charged() const;  // by the end of that call
};

class GateEntries {
 public:
  // A call has come to the gate.
  void note(pid_t tid, const IoCounters& counted, const void* gate);
  // That call was charged this in advance.
  void note_costs(pid_t tid, const WantedCall& want);
  [[nodiscard]] GateEntry find(pid_t tid) const;  // count 0: none has come

  // So much was charged without a call, and not yet seen by the gate.
  void add_paid(pid_t tid, std::uint64_t read, std::uint64_t written);
  // Takes that off what the gate has seen. anew: what the gate counts begins here, so that nothing is left of it.
  void take_paid(pid_t tid, IoCounters& moved, bool anew);

  // The gate knows the thread no more. Another gate's entry, of a thread that has the id now, stays.
  void forget(pid_t tid, const void* gate);
  // Forgets what was charged without a call, unless a gate will settle it yet.
  void forget_paid(pid_t tid);

 private:
  struct Paid {
    std::uint64_t read = 0, written = 0;
  };
  std::unordered_map<pid_t, GateEntry> entered_;  // of classes whose members pay at once
  std::unordered_map<pid_t, Paid> paid_;
};

}  // namespace swapd::decide
