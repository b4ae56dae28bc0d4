// A call's places in the buckets of its class, and what its thread owes. Pure values.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "decide/shaping/limits.h"

namespace swapd::decide {

// One part of a call: what it moves to or from one device.
struct Transfer {
  Device device;
  IoDirection direction = IoDirection::read;
  Tokens cost = 1;  // bytes that it is thought to move
};

// Empty: nothing limits the call.
struct Reservation {
  struct Place {
    std::uint32_t bucket = 0, version = 0;
    TokenBucket::Ticket ticket = 0;
    Tokens cost = 1;  // taken
    Tokens rest = 0;  // to be taken, turn by turn
    bool operations = false;
    bool after = false;  // goes on when its own tokens have come, too
    std::uint8_t transfer = 0;
    [[nodiscard]] bool is_in_bucket_of(const Place& other) const {
      return bucket == other.bucket && version == other.version;
    }
  };
  static constexpr std::size_t max_transfers = 4;
  static constexpr std::size_t max_places = max_transfers * 4;
  std::array<Place, max_places> places{};
  std::uint8_t count = 0;
  std::uint8_t transfers = 0;
  std::array<std::uint32_t, max_transfers> accounts{}, versions{};  // of each transfer, for what has come of it
  std::array<IoDirection, max_transfers> directions{};
  [[nodiscard]] bool empty() const { return transfers == 0; }
  [[nodiscard]] Tokens rest() const;  // the largest of its places'
  // Adds what an earlier call took, so that both are settled together. False: the other one has other places.
  [[nodiscard]] bool join(const Reservation& earlier);
  // Both have one transfer, on the same device of the same class, in the same direction.
  [[nodiscard]] bool is_alike(const Reservation& other) const {
    return accounts[0] == other.accounts[0] && versions[0] == other.versions[0] && directions[0] == other.directions[0];
  }
};

// The debts of one thread.
class Debts {
 public:
  struct Debt {
    Reservation reservation;
    bool pages = false;  // of mapped files: paid before any call; else before a call that moves something
  };
  void add(const Reservation& debt, bool pages);
  [[nodiscard]] bool empty() const { return all_.empty(); }
  [[nodiscard]] Tokens rest() const;  // of the largest, what its class has not taken
  void clear() { all_.clear(); }
  [[nodiscard]] std::vector<Debt>& all() { return all_; }
  [[nodiscard]] const std::vector<Debt>& all() const { return all_; }

 private:
  std::vector<Debt> all_;
};

}  // namespace swapd::decide
