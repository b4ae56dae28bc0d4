#include "decide/shaping/bucket_pool.h"

#include <algorithm>

namespace swapd::decide {
namespace {

using Rules = TokenBucket::Rules;

Tokens burst_of(const Limit& limit) {
  constexpr Tokens in_a_second = 20;  // of 50 ms
  return limit.burst.value_or(std::max(*limit.bytes / in_a_second, min_burst));
}

// Operations come one by one: what 50 ms bring, at least one.
Tokens operations_burst(Tokens rate) { return std::max(rate / 20, Tokens{1}); }

}  // namespace

void BucketPool::fit(BucketPair& pair, const Limit& limit, Time now) {
  const auto bytes = limit.bytes ? std::optional(Rules{*limit.bytes, burst_of(limit)}) : std::nullopt;
  const auto operations =
      limit.operations ? std::optional(Rules{*limit.operations, operations_burst(*limit.operations)}) : std::nullopt;
  fit(pair.bytes, bytes, now);
  fit(pair.operations, operations, now);
}

void BucketPool::fit(std::optional<std::uint32_t>& number, std::optional<Rules> rules, Time now) {
  if (number && rules) {
    if (at(*number).rules() != *rules) at(*number).change(*rules, now);
  } else if (number) {
    slots_[*number].bucket.reset();
    ++slots_[*number].version;
    free_.push_back(*number);
    number.reset();
  } else if (rules) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(slots_.size()));
      slots_.emplace_back();
    }
    number = free_.back();
    free_.pop_back();
    slots_[*number].bucket.emplace(*rules, now);
  }
}

const TokenBucket* BucketPool::find(const Reservation::Place& place) const {
  const Slot& slot = slots_[place.bucket];
  return slot.version == place.version && slot.bucket ? &*slot.bucket : nullptr;
}

TokenBucket* BucketPool::find(const Reservation::Place& place) {
  Slot& slot = slots_[place.bucket];
  return slot.version == place.version && slot.bucket ? &*slot.bucket : nullptr;
}

}  // namespace swapd::decide
