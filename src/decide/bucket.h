// A token bucket in which callers wait without a queue [TAP08 §2.2–2.4]. Pure.
//
// The paper keeps the instant at which the last of those who wait goes on (next_update), and adds to it. Here the place
// in the line is kept in tokens instead: every caller takes the tokens of its call at once, and its ticket is how many
// had been taken before it. It goes on as soon as more than that have been generated. That is first come first served,
// as in the paper, and a ticket means the same after the rate has changed, so that a change holds at once for those who
// wait, too.
//
// A call may take more than there are: the bucket goes negative, and the next caller waits. What a call really moved is
// settled afterwards. Tokens are bytes, or operations; all arithmetic is exact.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace swapd::decide {

using Tokens = std::int64_t;

struct BucketRules {
  Tokens rate = 0;   // a second, 1 to max_rate; 0: nothing goes
  Tokens burst = 1;  // what it holds at most, 1 to max_burst
  bool operator==(const BucketRules&) const = default;
};
inline constexpr Tokens max_rate = Tokens{1} << 50;
inline constexpr Tokens max_burst = Tokens{1} << 50;

class Bucket {
 public:
  using Ticket = std::uint64_t;  // of this bucket; compared modulo 2^64

  // Full at first. Rules out of their range are brought into it.
  Bucket(BucketRules rules, Time now);

  // A call that will take about so many (at least one): its place in the line.
  Ticket enter(Tokens cost, Time now);
  // When it may go on: `now` where it may already, Time::max() where nothing is generated.
  [[nodiscard]] Time due(Ticket ticket, Time now) const;
  // The call took `cost` when it entered, and has moved `moved` (0 where it was not made, then nothing is kept).
  void settle(Tokens cost, Tokens moved, Time now);
  // The place at the end of the line.
  [[nodiscard]] Ticket last() const { return taken_; }
  // Something has taken so many unforeseen: as far as the bucket then owes no more than `max_owed`. The answer: how
  // many it has not taken.
  [[nodiscard]] Tokens owe(Tokens taken, Tokens max_owed, Time now);
  // What it holds stays, as far as it fits.
  void change(BucketRules rules, Time now);
  // Of what it owes, no more than this is left.
  void forgive(Tokens max_owed, Time now);

  [[nodiscard]] const BucketRules& rules() const { return rules_; }
  // Below 0: how many are owed.
  [[nodiscard]] Tokens count(Time now) const;

 private:
  void fill(Time now);
  void cap();
  struct Grown {
    std::uint64_t tokens = 0;
    std::uint64_t remainder = 0;
  };
  [[nodiscard]] Grown grown(Time now) const;

  BucketRules rules_;
  std::uint64_t generated_;      // in all, with what was given back
  std::uint64_t taken_ = 0;      // in all
  std::uint64_t remainder_ = 0;  // of a token, in 1e-9; below 1e9
  Time filled_;
};

}  // namespace swapd::decide
