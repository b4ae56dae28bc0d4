// How often a watched thread waits, and whether that is too often to tell of each wait (docs/design.md, Observers).
// Pure.
//
// A thread that has waited more often than once in its patience becomes patient: the kernel's program keeps its waits
// in the slot, and the observer looks there at its own pace. It ceases to be when it has waited less than half as
// often.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace swapd::observe {

class WaitRate {
 public:
  static constexpr std::uint32_t min_waits = 16;                          // fewer are no rate
  static constexpr Duration min_window = std::chrono::milliseconds(50);   // of a patient thread
  static constexpr Duration max_window = std::chrono::milliseconds(200);  // of one that is not

  // 0: never patient. True: the thread is patient no longer.
  bool set_patience(Duration patience);
  [[nodiscard]] Duration patience() const { return patience_; }
  [[nodiscard]] bool patient() const { return patient_; }

  // A wait is told of. True: the thread has become patient with it.
  [[nodiscard]] bool told(Time now);
  // A look at a patient thread, which has begun so many waits in all. True: it is patient no longer.
  [[nodiscard]] bool counted(std::uint32_t waits, Time now);

 private:
  Duration patience_{};
  Time begun_{};             // of the window
  std::uint32_t waits_ = 0;  // told in it; of a patient thread, how many there had been in all when it began
  bool patient_ = false;
  bool counting_ = false;  // waits_ is known
};

}  // namespace swapd::observe
