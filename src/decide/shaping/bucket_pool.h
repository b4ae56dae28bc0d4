// The buckets of all classes, by number. A place in the line of a bucket that is no more is a place in no other one:
// each bucket that takes an earlier one's number has another version.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "decide/shaping/limits.h"
#include "decide/shaping/reservation.h"

namespace swapd::decide {

// The numbers of one Limit's buckets; nothing: it does not limit that.
struct BucketPair {
  std::optional<std::uint32_t> bytes, operations;
};

class BucketPool {
 public:
  // Makes, changes or takes away the buckets of the pair, so that they are as the limit says.
  void fit(BucketPair& pair, const Limit& limit, Time now);
  // Null: it is no more.
  [[nodiscard]] const TokenBucket* find(const Reservation::Place& place) const;
  [[nodiscard]] TokenBucket* find(const Reservation::Place& place);
  // One that a BucketPair names.
  [[nodiscard]] TokenBucket& at(std::uint32_t number) { return *slots_[number].bucket; }
  [[nodiscard]] const TokenBucket& at(std::uint32_t number) const { return *slots_[number].bucket; }
  [[nodiscard]] std::uint32_t version(std::uint32_t number) const { return slots_[number].version; }

 private:
  struct Slot {
    std::optional<TokenBucket> bucket;
    std::uint32_t version = 0;
  };
  void fit(std::optional<std::uint32_t>& number, std::optional<TokenBucket::Rules> rules, Time now);

  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
};

}  // namespace swapd::decide
