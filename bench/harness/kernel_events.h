// A tracepoint of the kernel, read with perf (perf_event_open(2)): the witness of what swapd itself says it did.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "sys/perf/perf_ring.h"

namespace swapd::bench {

struct KernelEvent {
  Time time;
  pid_t tid = 0;           // in whose context it was hit
  std::int64_t value = 0;  // of the field that was asked for
};

class KernelEvents {
 public:
  // `event` as "syscalls/sys_enter_read", `field` one of its integers, `filter` in the kernel's own words (empty:
  // none). tid -1: hits of anybody, on all CPUs.
  [[nodiscard]] static Result<KernelEvents> open(const std::string& event, const std::string& field,
                                                 const std::string& filter, pid_t tid = -1);
  // Appends what has come since the last call; not in order between CPUs.
  void read(std::vector<KernelEvent>& out);
  [[nodiscard]] std::uint64_t lost() const { return lost_; }

 private:
  struct Part {
    Fd fd;
    sys::PerfRing ring;
  };
  std::vector<Part> parts_;
  std::uint32_t offset_ = 0, size_ = 0;
  std::uint64_t lost_ = 0;
};

}  // namespace swapd::bench
