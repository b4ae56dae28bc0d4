// Keeps the engine off the CPUs of boosted threads that share them by nice: each time the engine wakes there it
// preempts them, and EEVDF then picks anew and may well give the rest of their turn to another thread.
#pragma once

#include <sched.h>

#include <span>

#include "base/time.h"

namespace swapd::daemon {

// `allowed` without `busy`; where nothing would be left, without the first of them; where that is all there is,
// `allowed`.
[[nodiscard]] cpu_set_t keep_off(const cpu_set_t& allowed, std::span<const int> busy);

// Says when to move, and not too often: the workload may be moving too.
class EngineAffinity {
 public:
  explicit EngineAffinity(const cpu_set_t& allowed) : allowed_(allowed) {}
  // It has moved lately, and will not now.
  [[nodiscard]] bool rests(Time now) const { return moved_ != Time{} && now - moved_ < rest; }
  // These are all CPUs that it may use: more of them change no answer of move().
  [[nodiscard]] bool has_no_other(std::span<const int> busy) const;
  // own: the CPU that the caller is on. busy: where those who matter now were last, the favoured ones first. True: set
  // `cpus` as the affinity.
  [[nodiscard]] bool move(int own, std::span<const int> busy, Time now, cpu_set_t& cpus);

 private:
  static constexpr Duration rest = std::chrono::milliseconds(100);
  cpu_set_t allowed_;
  Time moved_{};
};

}  // namespace swapd::daemon
