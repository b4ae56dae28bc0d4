#include "observe/seccomp/busy_sleeper.h"

#include <algorithm>

namespace swapd::observe {

void BusySleeper::begin(Time now) {
  start_ = now;
  sleeps_ = 0;
}

bool BusySleeper::sleeps_too_often(unsigned sleeps, Time now, Duration patience, Duration poll_period) {
  if (now - start_ > (patience <= poll_period ? window : max_sleeps * patience)) begin(now);
  sleeps_ += sleeps;
  return sleeps_ > max_sleeps;
}

Duration BusySleeper::rest(Time now, Duration patience) {
  if (now - rested_ > 2 * rest_) rests_ = 0;
  Duration least = first_rest;
  for (unsigned i = 0; i < rests_ && least < max_rest; ++i) least *= 2;
  ++rests_;
  rest_ = std::max<Duration>(std::min(least, max_rest), polls_a_rest * patience);
  rested_ = now + rest_;
  return rest_;
}

}  // namespace swapd::observe
