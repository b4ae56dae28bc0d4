// A token bucket in which callers wait without a queue [TAP08 §2.2–2.4]. Pure; all arithmetic is exact.
//
// It fills by `rate` tokens a second, up to `burst`. A token is a byte, or an operation.
//
// The paper keeps the instant at which the last of the waiting callers goes on (next_update), and adds to it. Here the
// place in the line is kept in tokens instead: every caller takes the tokens of its call at once, and its ticket is how
// many had been taken before it. The call goes on as soon as more than that have been generated. That is first come
// first served, as in the paper, and a ticket means the same after the rate has changed, so that a change holds at once
// for waiting callers, too.
//
// A call may take more than there are: the bucket goes negative, and the next caller waits. What the call really moved
// is settled afterwards.
//
// A caller that does not wait but is refused (a rate limiter) uses take() and full() alone.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace swapd {

using Tokens = std::int64_t;

class TokenBucket {
 public:
  struct Rules {
    Tokens rate = 0;   // a second, 1 to max_rate; 0: nothing goes
    Tokens burst = 1;  // what it holds at most, 1 to max_burst
    bool operator==(const Rules&) const = default;
  };
  static constexpr Tokens max_rate = Tokens{1} << 50;
  static constexpr Tokens max_burst = Tokens{1} << 50;
  using Ticket = std::uint64_t;  // of this bucket; compared modulo 2^64

  // Full at first. Rules out of their range are brought into it.
  TokenBucket(Rules rules, Time now);
  TokenBucket(Tokens rate, Tokens burst, Time now) : TokenBucket(Rules{.rate = rate, .burst = burst}, now) {}

  // A call that will take about so many (at least one): its place in the line.
  Ticket reserve(Tokens cost, Time now);
  // When it may go on: `now` where it may already, Time::max() where nothing is generated.
  [[nodiscard]] Time due(Ticket ticket, Time now) const;
  // The call took `cost` when it reserved, and has moved `moved` (0 where it was not made, then nothing is kept).
  void settle(Tokens cost, Tokens moved, Time now);
  // The place at the end of the line.
  [[nodiscard]] Ticket last() const { return taken_; }
  // So many were taken unforeseen: as far as the bucket then owes no more than `max_owed`. The answer: how many it has
  // not taken.
  [[nodiscard]] Tokens owe(Tokens taken, Tokens max_owed, Time now);
  // The tokens that it holds stay, as far as they fit.
  void change(Rules rules, Time now);
  // Its debt is at most this from now on.
  void cap_debt(Tokens max_owed, Time now);

  // Takes as many if they are there; else none.
  [[nodiscard]] bool take(Time now, Tokens tokens = 1);
  [[nodiscard]] bool full(Time now) const { return count(now) >= rules_.burst; }

  [[nodiscard]] const Rules& rules() const { return rules_; }
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

  Rules rules_;
  std::uint64_t generated_;      // in all, with what was given back
  std::uint64_t taken_ = 0;      // in all
  std::uint64_t remainder_ = 0;  // of a token, in 1e-9; below 1e9
  Time filled_;
};

}  // namespace swapd
