// perf events, as far as swapd uses them (perf_event_open(2)): when a thread leaves and gets a CPU, who wakes whom, who signals
// whom, and how much CPU a thread has used. All of it works without BPF; each is probed, none is needed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/time.h"

namespace swapd::sys {

// Context switches of one thread. The descriptor polls readable at each record (wake = true) or never.
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
  // The records since the last call, the oldest first, at most `most` of the newest.
  std::size_t read(SwitchRecord* out, std::size_t most);
  void enable(bool on);

 private:
  SwitchWatch(Fd fd, void* pages);
  Fd fd_;
  void* pages_;
};

// CPU time of one thread, and a poll wake-up after each period of it.
class CpuTimer {
 public:
  [[nodiscard]] static Result<std::unique_ptr<CpuTimer>> open(pid_t tid);
  CpuTimer(const CpuTimer&) = delete;
  CpuTimer& operator=(const CpuTimer&) = delete;
  ~CpuTimer();
  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] Duration used() const;    // since open
  void arm(Duration period);              // readable once the thread has used this much more
  void disarm();
  // True once for each expiry.
  [[nodiscard]] bool expired();

 private:
  CpuTimer(Fd fd, void* pages);
  Fd fd_;
  void* pages_;
  Duration armed_at_{};
  Duration period_{};
};

// A tracepoint on every CPU, records read in batches. Ids come from a tracefs, mounted privately where none is.
struct TraceRecord {
  Time time;
  pid_t by = 0;      // the thread in whose context it was hit
  pid_t target = 0;  // the woken thread, the receiver of the signal
  std::int32_t detail = 0;  // the signal number
  bool group = false;       // the signal went to the process, not to one thread
};

class TraceWatch {
 public:
  enum class Point : std::uint8_t { sched_waking, signal_generate };
  // tid -1: hits in any context, on all CPUs; else only those made by this thread.
  [[nodiscard]] static Result<std::unique_ptr<TraceWatch>> open(Point point, pid_t tid);
  TraceWatch(const TraceWatch&) = delete;
  TraceWatch& operator=(const TraceWatch&) = delete;
  ~TraceWatch();
  [[nodiscard]] std::vector<int> fds() const;
  // A filter on the targets ("pid == 7 || pid == 9"); empty: all.
  [[nodiscard]] Status filter_targets(const std::vector<pid_t>& targets);
  std::size_t read(TraceRecord* out, std::size_t most);

 private:
  struct Impl;
  explicit TraceWatch(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace swapd::sys
