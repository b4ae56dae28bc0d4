// A token bucket: it fills at a rate of tokens a second up to its capacity; a caller that gets its tokens may go on.
#pragma once

#include <algorithm>

#include "base/time.h"

namespace swapd {

class TokenBucket {
 public:
  // Full at first.
  TokenBucket(double tokens_a_second, double capacity, Time now)
      : rate_(tokens_a_second), capacity_(capacity), tokens_(capacity), filled_(now) {}

  // Takes as many where they are there; else none.
  [[nodiscard]] bool take(Time now, double tokens = 1) {
    tokens_ = held(now);
    filled_ = std::max(filled_, now);
    if (tokens_ < tokens) return false;
    tokens_ -= tokens;
    return true;
  }
  [[nodiscard]] bool full(Time now) const { return held(now) >= capacity_; }

 private:
  [[nodiscard]] double held(Time now) const {
    if (now <= filled_) return tokens_;
    return std::min(capacity_, tokens_ + rate_ * std::chrono::duration<double>(now - filled_).count());
  }

  double rate_;
  double capacity_;
  double tokens_;
  Time filled_;
};

}  // namespace swapd
