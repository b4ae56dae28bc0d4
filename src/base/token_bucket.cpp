#include "base/token_bucket.h"

#include <algorithm>

namespace swapd {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::uint64_t second = 1'000'000'000;
// More than this is not counted at once: at the highest rate it fills every bucket.
constexpr Duration longest = std::chrono::hours(24) * 365;
constexpr Tokens max_cost = Tokens{1} << 60;

TokenBucket::Rules in_range(TokenBucket::Rules rules) {
  rules.rate = std::clamp(rules.rate, Tokens{0}, TokenBucket::max_rate);
  rules.burst = std::clamp(rules.burst, Tokens{1}, TokenBucket::max_burst);
  return rules;
}

std::int64_t difference(std::uint64_t a, std::uint64_t b) { return static_cast<std::int64_t>(a - b); }

}  // namespace

TokenBucket::TokenBucket(Rules rules, Time now)
    : rules_(in_range(rules)), generated_(static_cast<std::uint64_t>(rules_.burst)), filled_(now) {}

// Adds what has come since it was filled last. A clock that goes back brings nothing.
TokenBucket::Grown TokenBucket::grown(Time now) const {
  if (now <= filled_) return {0, remainder_};
  const auto passed = static_cast<std::uint64_t>(std::min<Duration>(now - filled_, longest).count());
  const Wide parts = static_cast<Wide>(rules_.rate) * passed + remainder_;
  constexpr Wide max_parts = Wide{1} << 62;
  return {static_cast<std::uint64_t>(std::min(parts / second, max_parts)), static_cast<std::uint64_t>(parts % second)};
}

void TokenBucket::fill(Time now) {
  const Grown more = grown(now);
  // As far as there is room: the sum could pass over the end of the number.
  const auto room = static_cast<std::uint64_t>(std::max(rules_.burst - difference(generated_, taken_), Tokens{0}));
  generated_ += std::min(more.tokens, room);
  remainder_ = more.tokens > room ? 0 : more.remainder;
  filled_ = std::max(filled_, now);
}

void TokenBucket::cap() {
  const std::int64_t held = difference(generated_, taken_);
  if (held > rules_.burst) generated_ -= static_cast<std::uint64_t>(held - rules_.burst);
}

TokenBucket::Ticket TokenBucket::reserve(Tokens cost, Time now) {
  fill(now);
  const Ticket ticket = taken_;
  taken_ += static_cast<std::uint64_t>(std::clamp(cost, Tokens{1}, max_cost));
  return ticket;
}

Time TokenBucket::due(Ticket ticket, Time now) const {
  const Grown more = grown(now);
  const std::int64_t missing = difference(ticket, generated_) + 1;  // as of filled_
  if (missing <= 0 || static_cast<std::uint64_t>(missing) <= more.tokens) return now;
  if (rules_.rate == 0) return Time::max();
  const auto rate = static_cast<Wide>(rules_.rate);
  const Wide parts = static_cast<Wide>(missing) * second - remainder_;
  const Wide wait = (parts + rate - 1) / rate;
  if (wait > static_cast<Wide>(longest.count())) return filled_ + longest;
  return std::max(now, filled_ + Duration(static_cast<Duration::rep>(wait)));
}

// Those who wait had to wait for what this call was thought to take. What it did not is generated anew, so that all of
// them come earlier; what it took besides has not been.
void TokenBucket::settle(Tokens cost, Tokens moved, Time now) {
  fill(now);
  cost = std::clamp(cost, Tokens{1}, max_cost);
  moved = std::clamp(moved, Tokens{0}, max_cost);
  generated_ += static_cast<std::uint64_t>(cost - moved);
  cap();
}

Tokens TokenBucket::owe(Tokens taken, Tokens max_owed, Time now) {
  fill(now);
  const Tokens wanted = std::clamp(taken, Tokens{0}, max_cost);
  const Tokens room = std::max(difference(generated_, taken_) + max_owed, Tokens{0});
  taken_ += static_cast<std::uint64_t>(std::min(wanted, room));
  return wanted - std::min(wanted, room);
}

void TokenBucket::change(Rules rules, Time now) {
  fill(now);
  rules_ = in_range(rules);
  cap();
}

void TokenBucket::cap_debt(Tokens max_owed, Time now) {
  fill(now);
  if (difference(generated_, taken_) < -max_owed) generated_ = taken_ - static_cast<std::uint64_t>(max_owed);
}

bool TokenBucket::take(Time now, Tokens tokens) {
  fill(now);
  if (difference(generated_, taken_) < tokens) return false;
  taken_ += static_cast<std::uint64_t>(tokens);
  return true;
}

Tokens TokenBucket::count(Time now) const {
  TokenBucket copy = *this;
  copy.fill(now);
  return difference(copy.generated_, copy.taken_);
}

}  // namespace swapd
