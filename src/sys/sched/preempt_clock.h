// Has the threads of a CPU change more often than the kernel's own tick does (4 ms with HZ=250). A real-time thread of
// swapd wakes on the CPU every few microseconds and sleeps again. Each time the kernel chooses anew among the ordinary
// threads there. They still get their fair shares, in shorter turns (kernel documentation,
// scheduler/sched-eevdf). Each time costs two switches and a timer's interrupt: some 3 us on a machine, 14 us measured
// in a virtual one.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "base/result.h"
#include "base/time.h"

namespace swapd::sys {

class PreemptClock {
 public:
  PreemptClock() = default;
  ~PreemptClock() { set({}); }
  PreemptClock(const PreemptClock&) = delete;
  PreemptClock& operator=(const PreemptClock&) = delete;

  // By CPU: how often; those that are not named are let alone. What cannot be had is left out: trouble() says why,
  // until the next call.
  void set(const std::map<int, Duration>& wanted);
  [[nodiscard]] const std::string& trouble() const { return trouble_; }
  // CPU time that its threads have used, the ended ones too.
  [[nodiscard]] Duration cpu_time() const;

 private:
  struct Beat {
    std::atomic<Duration::rep> every{0};
    std::atomic<bool> stops{false};
    std::atomic<pid_t> tid{0};
    std::thread thread;
  };
  void end(Beat& beat);
  static void run(Beat& beat);
  std::map<int, std::unique_ptr<Beat>> beats_;
  Duration ended_{};  // CPU time of those that are over
  std::string trouble_;
};

}  // namespace swapd::sys
