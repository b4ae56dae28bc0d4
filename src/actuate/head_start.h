// A newborn thread with a boost by nice gets the CPU at once.
//
// EEVDF owes a newborn nothing yet, and leaves the thread that runs on its CPU its slice. A nice value that comes a
// moment after birth is worth nothing until that slice and those of the longest starved are over. With SCHED_FIFO 1 for
// that moment the newborn is where a birth with the nice value would have put it, and what it then uses it is charged
// for. Source: kernel/sched/fair.c, place_entity() and protect_slice().
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/sched_attr.h"
#include "base/thread_id.h"
#include "base/time.h"

namespace swapd::actuate {

// Its attributes meanwhile: FIFO 1 with reset-on-fork.
[[nodiscard]] SchedAttr head_start();
// Whether it may have one: the boost is a nice value below 0, and the thread is ordinary.
[[nodiscard]] bool takes_head_start(const SchedAttr& own, const SchedAttr& set);
// Long enough for another CPU to take the thread up.
inline constexpr Duration head_start_time = std::chrono::microseconds(50);
// start_time: as in /proc/TID/stat. True for the first 10 to 20 ms of its life.
[[nodiscard]] bool newborn(std::uint64_t start_time);

// Threads that have a head start now, and those that have had one (the last 64): a thread gets one once.
class HeadStarts {
 public:
  static constexpr std::size_t max_remembered = 64;

  void begin(ThreadId thread) {
    had_[next_] = thread;
    next_ = (next_ + 1) % had_.size();
    running_.push_back(thread);
  }
  [[nodiscard]] bool has_had(ThreadId thread) const { return std::ranges::find(had_, thread) != had_.end(); }
  [[nodiscard]] bool any() const { return !running_.empty(); }
  // Those that have one now. They end with this.
  [[nodiscard]] std::vector<ThreadId> end() { return std::exchange(running_, {}); }

 private:
  std::vector<ThreadId> running_;
  std::array<ThreadId, max_remembered> had_{};
  std::size_t next_ = 0;
};

}  // namespace swapd::actuate
