// perf events, as far as swapd uses them (perf_event_open(2)): when a thread leaves and gets a CPU, who wakes whom, who
// signals whom, and how much CPU a thread has used. All of it works without BPF; each is probed, none is needed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/time.h"
#include "sys/perf/perf_ring.h"

namespace swapd::sys {

// Context switches of one thread. The descriptor polls readable once for each record.
struct SwitchRecord {
  Time time;
  bool out = false;        // left the CPU; else got it
  bool preempted = false;  // out, but still runnable
};

class SwitchWatch {
 public:
  [[nodiscard]] static Result<std::unique_ptr<SwitchWatch>> open(pid_t tid);
  SwitchWatch(const SwitchWatch&) = delete;
  SwitchWatch& operator=(const SwitchWatch&) = delete;
  ~SwitchWatch();
  [[nodiscard]] int fd() const { return fd_.get(); }
  // The records since the last call, the oldest first, at most `most` of the newest. One page of them is kept (256);
  // further ones are lost until the next read().
  std::size_t read(SwitchRecord* out, std::size_t most);
  // It opens enabled, and not paused. Both silence it. To disable it interrupts the CPU that the thread used last, also
  // while it sleeps, which pays for a rest; to pause it is a flag in memory, and costs half a microsecond more a
  // switch.
  void enable(bool on);
  void pause(bool on);

 private:
  SwitchWatch(Fd fd, PerfRing ring);
  Fd fd_;
  PerfRing ring_;
};

// CPU time of one thread, and a poll wake-up after each period of it. It counts from open to the end, armed or not;
// every 2^60 ns (36 years) is what "disarmed" is to the kernel.
class CpuTimer {
 public:
  [[nodiscard]] static Result<std::unique_ptr<CpuTimer>> open(pid_t tid);
  CpuTimer(const CpuTimer&) = delete;
  CpuTimer& operator=(const CpuTimer&) = delete;
  ~CpuTimer();
  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] Duration used() const;  // since open
  // Readable once the thread has used this much more (at least 10 µs), and again after each such period. Earlier
  // expiries are forgotten.
  void arm(Duration period);
  void disarm();
  // True once for each expiry.
  [[nodiscard]] bool expired();

 private:
  CpuTimer(Fd fd, PerfRing ring);
  void restart(std::uint64_t period);
  Fd fd_;
  PerfRing ring_;
};

// A tracepoint on every CPU, records read in batches. Ids come from a tracefs, mounted privately where none is.
// `by` is an id of our own pid namespace, `target` one of the initial namespace: the kernel writes it into the record
// as it is.
struct TraceRecord {
  Time time;
  pid_t by = 0;             // the thread in whose context it was hit
  pid_t target = 0;         // the woken thread, the receiver of the signal
  std::int32_t detail = 0;  // the signal number
  bool group = false;       // the signal went to the process, not to one thread
  // Hit while an interrupt was served: `by` is the thread that was running. (A soft interrupt may still be the doing of
  // `by`: loopback traffic is delivered in one, in the sender's context.)
  bool hard_interrupt = false;
  bool soft_interrupt = false;
};

class TraceWatch {
 public:
  // sched_block: sched_switch, where the thread that leaves the CPU sleeps; a preempted one gives no record. Its target
  // is the thread itself.
  enum class Point : std::uint8_t { sched_waking, signal_generate, sched_block };
  // tid -1: hits in any context, on all CPUs; else only those made by this thread (0: the caller). A signal that was
  // ignored or was pending already gives no record.
  // at_once: the descriptors poll readable at each record.
  [[nodiscard]] static Result<std::unique_ptr<TraceWatch>> open(Point point, pid_t tid, bool at_once = false);
  TraceWatch(const TraceWatch&) = delete;
  TraceWatch& operator=(const TraceWatch&) = delete;
  ~TraceWatch();
  // Without at_once they poll readable when a ring is half full: waking a reader costs more than the record (12 against
  // 1 µs).
  [[nodiscard]] std::vector<int> fds() const;
  void enable(bool on);  // it opens enabled
  // The oldest first within a batch.
  std::size_t read(TraceRecord* out, std::size_t most);

 private:
  struct Impl;
  explicit TraceWatch(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace swapd::sys
