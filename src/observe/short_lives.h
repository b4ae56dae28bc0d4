// Children whose whole life is in one batch of records, and whose parent does not wait any more: nobody can be helped
// through them, and to look them up, now that they are gone, is the greater part of what a short child costs.
#pragma once

#include <bitset>
#include <span>

#include "sys/bpf_tracer.h"

namespace swapd::observe {

inline constexpr std::size_t most_records = 64;  // in a batch

// Bit i: records[i] is of such a child, and tells nothing to anybody. A child that has forked itself is not one: its
// own children are found through it.
[[nodiscard]] std::bitset<most_records> short_lives(std::span<const sys::BpfRecord> records);

}  // namespace swapd::observe
