// Programs that are to be enrolled because of a rule: first come, first served, eight at a time, because each stops its
// process for some milliseconds where a filter is installed. And how long to wait before all programs are looked
// through again. Pure.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "base/time.h"
#include "policy/policy.h"

namespace swapd::daemon {

struct WantedProgram {
  pid_t pid = 0;
  std::uint64_t start_time = 0;
  const policy::NamedRule* rule = nullptr;
  std::optional<std::string> cmdline;  // as it was started
};

class EnrollQueue {
 public:
  static constexpr std::size_t max_under_way = 8;
  static constexpr std::size_t max_waiting = 10'000;

  // False: there are too many, and this one is dropped.
  [[nodiscard]] bool push(WantedProgram wanted) {
    if (waiting_.size() == max_waiting) return false;
    waiting_.push_back(std::move(wanted));
    return true;
  }
  // Calls take(wanted) for each that may begin; what it begins, it says with begin(). An enrolment may be over at once:
  // called from `take`, drain() does nothing, and the outer one goes on.
  template <typename Take>
  void drain(Take take) {
    if (std::exchange(draining_, true)) return;
    while (!waiting_.empty() && under_way_ < max_under_way) {
      const WantedProgram next = std::move(waiting_.front());
      waiting_.pop_front();
      take(next);
    }
    draining_ = false;
  }
  void begin() { ++under_way_; }
  void end() { --under_way_; }

 private:
  std::deque<WantedProgram> waiting_;
  std::size_t under_way_ = 0;
  bool draining_ = false;
};

// The longer a storm of lost events lasts, the longer the pause between two looks through all programs.
class LookBackoff {
 public:
  static constexpr Duration min_pause = std::chrono::seconds(1), max_pause = std::chrono::seconds(64);

  // Events were lost, or could not be kept: how long to wait for the next look.
  [[nodiscard]] Duration next_pause(Time now) {
    const bool rested = now - looked_ > 2 * pause_;
    pause_ = rested ? min_pause : std::min(2 * pause_, max_pause);
    return pause_;
  }
  void looked(Time now) { looked_ = now; }

 private:
  Duration pause_{};
  Time looked_{};
};

}  // namespace swapd::daemon
