// The limits of a class: what its members may move, by device [TAP08 §2.1]. Pure values.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>

#include "base/token_bucket.h"

namespace swapd::decide {

using Tokens = swapd::Tokens;

// number: of a disk MAJOR << 32 | MINOR; of a network link its index, with its network namespace's number above; 0: a
// device that is not known more exactly.
struct Device {
  enum class Kind : std::uint8_t { disk, network } kind = Kind::disk;
  std::uint64_t number = 0;
  auto operator<=>(const Device&) const = default;  // NOLINT(modernize-use-nullptr): of a comparison that it makes
};

enum class IoDirection : std::uint8_t { read, write };

// The limit of one pair of buckets; nothing: none.
struct Limit {
  std::optional<Tokens> bytes, operations;  // a second
  std::optional<Tokens> burst;              // bytes; not said: what `bytes` brings in 50 ms, at least 4 KiB
  [[nodiscard]] bool limits() const { return bytes || operations; }
  bool operator==(const Limit&) const = default;
};
inline constexpr Tokens min_burst = 4 << 10;

// How large calls and debts share a bucket with others, in its tokens.
struct Turns {
  Tokens share = 1;   // that a large call takes at a turn: what 10 ms bring
  Tokens ahead = 0;   // a call may move that much before it is paid: what 100 ms bring, at least 4 KiB
  Tokens others = 0;  // of what one thread has moved unforeseen the class owes no more: what 500 ms bring
};
[[nodiscard]] Turns turns_of(const TokenBucket::Rules& rules);

struct DeviceLimits {
  Limit both, read, write;
  [[nodiscard]] bool limits() const { return both.limits() || read.limits() || write.limits(); }
  [[nodiscard]] bool counts_operations() const { return both.operations || read.operations || write.operations; }
  bool operator==(const DeviceLimits&) const = default;
};

enum class ShapeMode : std::uint8_t {
  logical,  // what calls move
  device,   // what the disk moves: what comes from the page cache is free (the paper's RESOURCE mode)
};

struct ClassLimits {
  ShapeMode mode = ShapeMode::logical;
  bool freezes = false;          // a process pays at once for pages of mapped files
  bool favoured_wait = false;    // a favoured provider is delayed as well while an important requester waits for it
  DeviceLimits disks, networks;  // each device that is not named
  std::map<Device, DeviceLimits> devices;
  [[nodiscard]] bool limits() const;
  [[nodiscard]] bool limits_networks() const;
  [[nodiscard]] bool counts_operations() const;  // of disks
  [[nodiscard]] const DeviceLimits& of(const Device& device) const;
  // The same with the disks' limit of reading and writing together no higher than this, nor its burst above the usual:
  // queues shall drain, and a large burst would fill them.
  [[nodiscard]] ClassLimits with_disks_below(Tokens bytes) const;
  bool operator==(const ClassLimits&) const = default;
};

}  // namespace swapd::decide
