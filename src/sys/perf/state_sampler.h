// Samples of a running thread, without stopping it: its registers and the top of its stack, once for each so much of
// its CPU time. perf, with software clocks only; no privilege beyond that for timing a thread (sys/perf/perf.h).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/time.h"
#include "sys/perf/perf_ring.h"

namespace swapd::sys {

struct StateSample {
  std::uint64_t state = 0;  // a hash over the registers and the top of the stack; equal ones are the same state
  bool in_user = false;     // the thread was in its own code, not in a system call or a fault
};

class StateSampler {
 public:
  static constexpr std::size_t stack_bytes = 128;

  // period: of the thread's CPU time, at least 100 µs.
  [[nodiscard]] static Result<std::unique_ptr<StateSampler>> open(pid_t tid, Duration period);
  StateSampler(const StateSampler&) = delete;
  StateSampler& operator=(const StateSampler&) = delete;
  ~StateSampler();
  // Appends what has come since the last call, the oldest first. What finds two pages full is lost.
  void read(std::vector<StateSample>& out);
  // From now on.
  void set_period(Duration period);

 private:
  StateSampler(Fd fd, PerfRing ring);
  Fd fd_;
  PerfRing ring_;
};

}  // namespace swapd::sys
