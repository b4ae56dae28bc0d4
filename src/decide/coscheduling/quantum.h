// The length of the turns that the threads of a job take on a CPU where they cannot all have one at once: so short that
// little of its CPU time goes into waiting for a mate that has no CPU, and no shorter, because each turn costs
// (sys/sched/preempt_clock.h). Pure.
#pragma once

#include <algorithm>

#include "base/time.h"

namespace swapd::decide {

struct QuantumConfig {
  Duration least = std::chrono::microseconds(50);
  Duration most = std::chrono::milliseconds(1);
  Duration least_beside_others = std::chrono::microseconds(500);  // they pay for the turns, too
  double shorten = 0.10, lengthen = 0.03;                         // of the job's CPU time, that it waits in loops
  int windows = 8;                                                // between two changes
  // It waits for what no turn brings, as a program does that polls a device: nothing is gained.
  double vain = 0.995;
  int vain_windows = 48;
  Duration rest = std::chrono::seconds(10), longest_rest = std::chrono::minutes(5);
};

class Quantum {
 public:
  explicit Quantum(QuantumConfig config = {}) : config_(config) {}

  // alone: no other thread has much of its CPUs.
  void begin(bool alone) {
    length_ = least(alone);  // which is best for most of those that need turns at all
    spun_ = -1;
    windows_ = vain_ = 0;
  }
  // A window of its turns is over. spun: 0…1, of its CPU time, in loops that wait.
  void end_window(double spun, bool alone, Time now) {
    spun_ = spun_ < 0 ? spun : spun_ + weight * (spun - spun_);
    vain_ = spun_ >= config_.vain ? vain_ + 1 : 0;
    if (vain_ >= config_.vain_windows) {
      rest_ = std::clamp(2 * rest_, config_.rest, config_.longest_rest);
      rests_until_ = now + rest_;
      vain_ = 0;
    } else if (spun_ < config_.vain) {
      rest_ = {};
    }
    if (++windows_ < config_.windows) return;
    windows_ = 0;
    if (spun_ > config_.shorten) length_ /= 2;
    if (spun_ < config_.lengthen) length_ *= 2;
    length_ = std::clamp(length_, least(alone), config_.most);
  }
  [[nodiscard]] Duration length() const { return length_; }
  // It was in vain, lately.
  [[nodiscard]] bool rests(Time now) const { return now < rests_until_; }

  template <typename Self, typename Archive>
  static void state(Self& self, Archive& archive) {
    archive(self.length_, self.spun_, self.windows_, self.vain_, self.rest_, self.rests_until_);
  }

 private:
  static constexpr double weight = 0.1;  // of the last window
  [[nodiscard]] Duration least(bool alone) const { return alone ? config_.least : config_.least_beside_others; }
  QuantumConfig config_;
  Duration length_{};
  double spun_ = -1;  // of the last windows, the last ones counting most; below 0: none yet
  int windows_ = 0, vain_ = 0;
  Duration rest_{};
  Time rests_until_{};
};

}  // namespace swapd::decide
