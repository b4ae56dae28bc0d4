// Do the protected programs have the I/O that they need? Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "base/time.h"
#include "decide/shaping/limits.h"

namespace swapd::decide {

// How the protected programs fared in a period.
enum class Need : std::uint8_t {
  idle,    // they asked for nothing
  met,     // they had what they need
  missed,  // they waited for more
};

// The protected programs need a rate, or not to wait for longer than a share of their time; or both.
struct NeedRules {
  std::optional<Tokens> rate;  // bytes a second
  std::optional<double> wait;  // 0…1, of the thread that waits longest
};

// Judges by the last second, so that single large calls weigh no more than they should.
class NeedJudge {
 public:
  struct Tuning {
    Duration window = std::chrono::seconds(1);  // that a judgement covers
    double idle_below = 0.02;                   // share of the time: less of waiting, and no bytes, is idle
    double needs_more_from = 0.25;              // share of the time: a thread that waits for less has no use for more
    double rate_tolerance = 0.97;               // share of the needed rate: as much is enough
  };
  explicit NeedJudge(NeedRules rules) : rules_(rules) {}
  struct Seen {
    Tokens by_calls = 0;  // bytes in the period
    Tokens by_disk = 0;   // the same as the disk moved them: sooner, or without a call (a mapped file)
    double waited = 0;    // the share of it in which they waited for I/O
  };
  [[nodiscard]] Need judge(const Seen& seen, Duration period);

 private:
  struct Period {
    Seen seen;
    Duration length{};
  };
  NeedRules rules_;
  std::deque<Period> last_;
};

}  // namespace swapd::decide
