// Automatic fairness: moves E and C of the predicate (fairness.h) until a job has its share of a CPU. The thesis tuned
// both by hand for each experiment and says that looking at the shares every one or two seconds would do
// [DCS97 §4.2.1, §5.1.2]. Pure.
//
// Each window gives the fairness F: the share that the job had, as a part of the share that is its due. E moves by
// g (1 - F), C by a part of the run queue's length: E finds the order of magnitude, C, the integral, what remains. A
// window that would not have come out otherwise with other terms moves nothing: if no call was refused, more
// permission does not help a job that has too little, and if none was granted, less does not slow one that has too
// much (anti-windup; the other half of it is that both values are clamped where they are kept).
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"
#include "decide/coscheduling/fairness.h"

namespace swapd::decide::coscheduling {

// One window of a job on a CPU.
struct FairnessWindow {
  Duration used{};     // CPU time of the job
  Duration elapsed{};  // the window's length, or the part of it in which the job competed
  double share = 1;    // the job's due: its weight by the weights of all that compete, 0 to 1
  RunQueue queue;      // means of the window
  std::uint32_t granted = 0;
  std::uint32_t refused = 0;  // by the predicate
  // F = (used / elapsed) / share [DCS97 (5.1)]; nothing if the window is empty.
  [[nodiscard]] std::optional<double> fairness() const;
};

struct ControllerTuning {
  Duration window = std::chrono::seconds(2);  // for the caller: call update() so often
  double gain = 4;                            // g: steps of E for an F that is wrong by 1
  double integral_gain = 0.25;                // steps of C, in lengths of the run queue, for an F that is wrong by 1
  double min_exponent = -6;
  double max_exponent = 3;
  double dead_band = 0.02;  // an F so near to 1 is right
};

// The terms of one job on one CPU.
class FairnessController {
 public:
  explicit FairnessController(const ControllerTuning& tuning = {}, const CallTerms& begin = {})
      : tuning_(tuning), terms_(begin) {}

  void update(const FairnessWindow& window);
  [[nodiscard]] const CallTerms& terms() const { return terms_; }
  // F of the last window that was not empty.
  [[nodiscard]] std::optional<double> fairness() const { return fairness_; }

  template <typename Self, typename Archive>
  static void state(Self& self, Archive& archive) {
    archive(self.terms_, self.fairness_);
  }

 private:
  ControllerTuning tuning_;
  CallTerms terms_;
  std::optional<double> fairness_;
};

}  // namespace swapd::decide::coscheduling
