// Children whose whole life is in one batch of records, and whose parent does not wait any more: no boost can help
// through them, and to look them up, now that they are gone, is the greater part of what a short child costs.
#pragma once

#include <sys/types.h>

#include <bitset>
#include <functional>
#include <span>

#include "sys/bpf/bpf_tracer.h"

namespace swapd::observe {

inline constexpr std::size_t max_records = 64;  // in a batch

// Bit i: records[i] is of such a child, and no consumer needs it. A child that has forked itself is not one: its own
// children are found through it; nor is one that is `known` already, by a look that came before the records.
[[nodiscard]] std::bitset<max_records> short_lives(std::span<const sys::BpfRecord> records,
                                                   const std::function<bool(pid_t)>& known);

}  // namespace swapd::observe
