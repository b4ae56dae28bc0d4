// The memory that swapd shares with its guard, which answers what swapd leaves open (docs/design.md, Guard).
// Written by swapd; the guard frees places whose call or process it has let go on. A change here is one of the contract
// between a guard and its swapd only: both are of one version.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace swapd {

// State of a listener's notifications. Written by its receiver.
struct alignas(64) ListenerSlot {
  std::atomic<std::uint64_t> open_id;  // received and not answered; 0: none
  std::atomic<std::uint64_t> last_id;  // the last one answered, or delayed; 0: none yet
};

// A call that is held until its time (actuate/delays.h).
struct DelayedCall {
  std::atomic<std::uint64_t> id;    // of the notification; 0: the place is free
  std::atomic<std::int64_t> due;    // CLOCK_MONOTONIC, ns
  std::atomic<std::uint32_t> slot;  // its listener's
};

// A process that swapd has frozen (daemon/shaping/freezer_groups.h).
struct FrozenGroup {
  std::atomic<std::int64_t> until;  // CLOCK_MONOTONIC, ns: swapd looks at it before that; 0: the place is free
  std::array<char, 8> thaw;         // what written
  std::array<char, 496> file;       // to this ends it; each ended by a 0
};

inline constexpr std::size_t max_listeners = 4096;
inline constexpr std::size_t max_delayed = 8192;
inline constexpr std::size_t max_frozen = 128;  // for their limits of I/O
inline constexpr std::size_t max_away = 512;    // so that others have memory

struct GuardMemory {
  std::array<ListenerSlot, max_listeners> slots;
  std::array<DelayedCall, max_delayed> delayed;
  std::array<FrozenGroup, max_frozen + max_away> frozen;  // those for their limits first
};

}  // namespace swapd
