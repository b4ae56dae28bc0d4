// The jobs that are put away so that the others have their pages: those that matter least, waiting ones first, and only
// if the set frees enough; else none [Peachey84 §4.3]. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/time.h"

namespace swapd::decide {

struct MemoryJob {
  using Id = std::uint64_t;
  Id id = 0;
  int rank = 0;               // of its best thread
  bool needed = false;        // it must stay
  bool waits = false;         // all of its threads do, for so long as is known
  Time since{};               // it has been in memory; of a waiting one since when it waits
  std::int64_t resident = 0;  // bytes that can be swapped out
  std::int64_t swapped = 0;   // bytes that are
};

// The room that so many bytes need: with some for what grows meanwhile.
[[nodiscard]] constexpr std::int64_t with_margin(std::int64_t bytes) { return bytes + bytes / 8; }

// All of them have room for what they have in swap: what comes back puts nothing out for long.
[[nodiscard]] bool all_fit(std::span<const MemoryJob> jobs, std::int64_t room);

// `jobs`: those in memory. room: bytes that can be had without swapping. swap_room: that can be swapped out still. What
// stays finds room for all that it has in swap, with a margin, once the answer's jobs have left. Smallest sets first:
// one job if one suffices. The best one of all stays, and what has next to nothing does; none leaves where those that
// stay want next to nothing. Empty: no set is enough.
[[nodiscard]] std::vector<MemoryJob::Id> choose_victims(std::span<const MemoryJob> jobs, std::int64_t room,
                                                        std::int64_t swap_room);

// In the order in which they would be put away: the first is the first to go.
[[nodiscard]] bool goes_before(const MemoryJob& one, const MemoryJob& other);

}  // namespace swapd::decide
