// Whether a thread sleeps too often for a record of each time, and for how long it is polled instead. Pure.
#pragma once

#include "base/time.h"

namespace swapd::observe {

class BusySleeper {
 public:
  static constexpr unsigned max_sleeps = 15;                         // in one window
  static constexpr Duration window = std::chrono::milliseconds(10);  // … or so many times its patience
  static constexpr Duration first_rest = std::chrono::milliseconds(100);
  static constexpr Duration max_rest = std::chrono::milliseconds(3200);
  static constexpr int polls_a_rest = 32;  // at least

  // It is heard of from now on.
  void begin(Time now);
  // So many sleeps of it were heard of. Whether that is too often: more than max_sleeps come sooner than once in each
  // `patience`, and in each poll period.
  [[nodiscard]] bool sleeps_too_often(unsigned sleeps, Time now, Duration patience, Duration poll_period);
  // How long it rests from now on. Each rest is twice as long as the one before, unless the thread was calm for twice
  // as long as that meanwhile: to open its events anew costs us some 100 µs each time, and the thread a record a sleep
  // until it rests again.
  [[nodiscard]] Duration rest(Time now, Duration patience);
  // Its rests so far are forgotten.
  void forget() { rests_ = 0; }

 private:
  Time start_{};
  unsigned sleeps_ = 0;  // in this window
  unsigned rests_ = 0;   // one after another
  Time rested_{};        // until then
  Duration rest_{};      // for so long
};

}  // namespace swapd::observe
