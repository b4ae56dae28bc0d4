// Finds and follows the highest limit for some programs' I/O that leaves others what they need ([TAP08 §6], automatic
// limits). Pure: once a period it hears how the protected ones fared.
//
// How much is left for them at which limit is not known, and changes. The first guess is what the disk moved in all,
// less what they moved alone. After that all that is known is an order: a limit under which they had what they need,
// and one under which they had not. Between the two it halves the distance (of the logarithm) until they are within a
// twentieth, and then holds the lower one. Every now and then it tries a little more, more gently and for longer where
// that was too much of late; each time in vain makes the next try later. Where what was enough is no more, it goes a
// little lower, and where that is of no use it begins again. What has piled up in queues
// meanwhile hides what a lower limit does: so that goes first. And it piles up before anything is missed: whoever reads
// ahead then waits for more and more of his time, while the limit stays as it is, which tells that it is too high. A
// need that is missed while the others do next to nothing is not their doing; and where not even the least limit helps,
// none is set for a while, and for longer each time.
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

// Do the values of late lie above those before them?
class Trend {
 public:
  void restart() { values_.clear(); }
  void add(double value);
  [[nodiscard]] bool tells() const { return values_.size() >= recent + fewest_before; }
  [[nodiscard]] bool rises(double by) const;  // at the least, and by more than they scatter
  [[nodiscard]] double late() const;          // the mean of the last ones

 private:
  [[nodiscard]] std::size_t before() const { return values_.size() > recent ? values_.size() - recent : 0; }
  [[nodiscard]] double mean(std::size_t first, std::size_t end) const;
  static constexpr std::size_t recent = 4, fewest_before = 4, most = 44;
  std::deque<double> values_;
};

class AutoLimit {
 public:
  static constexpr Duration period = std::chrono::milliseconds(250);
  enum class State : std::uint8_t {
    off,         // no limit: nobody needs one
    recovering,  // far below, until what has piled up is gone and they have what they need again
    seeking,     // between one that is too high and one that may be too low
    holding,     // the highest that is enough
    probing,     // whether a little more is enough by now
  };
  struct Period {
    Need need = Need::idle;
    Tokens protected_moved = 0;  // a second, as the others
    Tokens others_calls = 0;     // what the limit counts; nothing while there is none
    Tokens others_disk = 0;      // what the disk moved for them, which may be more or less: it is read ahead
    double waited = 0;           // 0…1: the part of it that the protected one that waits longest waited for I/O
  };

  // The limit is never below `least`.
  explicit AutoLimit(Tokens least) : least_(least) {}

  void observe(const Period& one);
  // Bytes a second; nothing: none.
  [[nodiscard]] std::optional<Tokens> limit() const { return limit_; }
  [[nodiscard]] State state() const { return state_; }
  // It is, or was of late, as low as it may be, and not low enough.
  [[nodiscard]] bool in_vain() const { return in_vain_; }

 private:
  void leave();
  [[nodiscard]] bool calm() const;
  void unlimited(const Period& one);
  void recover(const Period& one);
  void seek(const Period& one);
  void hold(const Period& one);
  void probe(const Period& one);
  void go_to(State state, Tokens limit);
  // First down to a part of it.
  void recover_to(State state, Tokens target, double dip);
  [[nodiscard]] bool binds(const Period& one) const;
  [[nodiscard]] bool is_enough(const Period& one) const;
  [[nodiscard]] bool is_bold() const;
  [[nodiscard]] bool is_near_too_much() const;
  [[nodiscard]] bool heeds_strain(const Period& one);
  [[nodiscard]] Tokens eased(Tokens limit) const;
  [[nodiscard]] bool is_calm_again() const;
  void found_enough(const Period& one);
  void hold_again();
  [[nodiscard]] Tokens raised();

  Tokens least_;
  State state_ = State::off;
  std::optional<Tokens> limit_;
  std::optional<Tokens> last_;  // what was enough when they were last active
  double alone_ = 0;            // what they moved while nobody was limited and they missed nothing
  double all_ = 0;              // what the disk moves, all together, of late
  Tokens low_ = 0;              // was enough; 0: not known
  Tokens high_ = 0;             // was too much; 0: not known
  Tokens enough_ = 0;           // the highest that was, or is thought to be, since something was last missed
  Tokens target_ = 0;           // after recovering
  State then_ = State::seeking;
  bool gently_ = false;  // it goes only a little down meanwhile
  int rest_ = 0;         // periods that tell of the limit before
  // How much speaks for the limit and against it, in periods since it changed. Each takes from the other.
  double met_ = 0, missed_ = 0;
  Trend waits_;                 // since it changed
  std::optional<double> calm_;  // how much they waited where it was enough
  int idle_ = 0;
  int still_ = 1'000;  // periods in which the others did next to nothing
  int vain_ = 0;       // periods at the least
  int quiet_ = 0;      // periods to leave it
  int next_quiet_ = 0;
  int lapses_ = 0;    // of what was held, since more was enough
  int patience_ = 0;  // periods to hold before the next try
  double step_ = 0;   // of the next try
  int raises_ = 0;    // tries since it was last held
  double held_ = 0;   // met periods of holding before they became idle
  bool in_vain_ = false;
};

}  // namespace swapd::decide
