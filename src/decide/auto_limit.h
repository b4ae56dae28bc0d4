// Finds and follows the highest limit for some programs' I/O that leaves others what they need (papers/004, future
// work: automatic limits). Pure: once a period it hears how the protected ones fared.
//
// How much is left for them at which limit is not known, and changes. All that is known is an order: a limit under
// which they had what they need, and one under which they had not. Between the two it halves the distance (of the
// logarithm) until they are within a twentieth, and then holds the lower one. Every now and then it tries a twentieth
// more; each time in vain makes the next try later. Where what was enough is no more, it begins again from half of it.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "base/time.h"
#include "decide/bucket.h"

namespace swapd::decide {

// How the protected ones fared in a period.
enum class Need : std::uint8_t {
  idle,    // they asked for nothing
  met,     // they had what they need
  missed,  // they waited for more
};

// What they need: a rate, or not to wait for longer than a share of their time; or both.
struct NeedRules {
  std::optional<Tokens> rate;  // bytes a second
  std::optional<double> wait;  // 0…1, of the one that waits longest
};

// Judges by the last second, so that single large calls weigh no more than they should.
class NeedJudge {
 public:
  explicit NeedJudge(NeedRules rules) : rules_(rules) {}
  // moved: bytes in the period; waited: the share of it in which they waited for I/O.
  [[nodiscard]] Need judge(Tokens moved, double waited, Duration period);

 private:
  struct Period {
    Tokens moved = 0;
    double waited = 0;
    Duration length{};
  };
  NeedRules rules_;
  std::deque<Period> last_;
};

class AutoLimit {
 public:
  static constexpr Duration period = std::chrono::milliseconds(250);
  enum class State : std::uint8_t {
    off,      // no limit: nobody needs one
    seeking,  // between one that is too high and one that may be too low
    holding,  // the highest that is enough
    probing,  // whether a little more is enough by now
  };

  // The limit is never below `least`.
  explicit AutoLimit(Tokens least) : least_(least) {}

  // A period has passed, in which the others moved so much a second.
  void observe(Need need, Tokens others);
  // Bytes a second; nothing: none.
  [[nodiscard]] std::optional<Tokens> limit() const { return limit_; }
  [[nodiscard]] State state() const { return state_; }
  // It is as low as it may be, and not low enough.
  [[nodiscard]] bool in_vain() const { return in_vain_; }

 private:
  void begin(Tokens others);
  void seek(Need need, Tokens others);
  void hold(Need need, Tokens others);
  void probe(Need need);
  void go_to(State state, Tokens limit);
  void begin_again();

  Tokens least_;
  State state_ = State::off;
  std::optional<Tokens> limit_;
  std::optional<Tokens> last_;  // what was enough when they were last active
  Tokens low_ = 0;              // was enough; 0: not known
  Tokens high_ = 0;             // was too much; 0: not known
  int rest_ = 0;                // periods that tell of the limit before
  int met_ = 0, missed_ = 0;    // in a row, since the limit changed
  int idle_ = 0;
  int patience_ = 0;  // periods to hold before the next try
  double step_ = 0;   // of the next try
  bool in_vain_ = false;
};

}  // namespace swapd::decide
