// Scheduling attributes as sched_setattr(2) has them, their order, and what one thread donates to another.
#pragma once

#include <cstdint>
#include <string_view>

namespace swapd {

enum class SchedPolicy : std::uint8_t { other, batch, idle, fifo, rr, deadline };

struct SchedAttr {
  SchedPolicy policy = SchedPolicy::other;
  std::int8_t nice = 0;          // -20…19; other and batch
  std::uint8_t rt_priority = 0;  // 1…99; fifo and rr
  bool reset_on_fork = false;
  std::uint64_t runtime_ns = 0;   // deadline; for other and batch the slice (since 6.12), 0 is the default
  std::uint64_t deadline_ns = 0;  // deadline only
  std::uint64_t period_ns = 0;    // deadline only

  bool operator==(const SchedAttr&) const = default;
  [[nodiscard]] bool realtime() const {
    return policy == SchedPolicy::fifo || policy == SchedPolicy::rr || policy == SchedPolicy::deadline;
  }
};

// A total order of importance: deadline 200, fifo and rr 100 + priority, other and batch 20 - nice
// (1…40), idle 0. Equal ranks compete as equals.
[[nodiscard]] int rank(const SchedAttr& attr);

struct LendingRules {
  std::uint8_t rt_ceiling = 90;  // no donation above this real-time priority
  bool realtime_allowed = true;  // false: a real-time requester donates nice -20 instead
  bool strict = false;           // a requester with a nice value below 0 donates FIFO 1
};

// Attributes that a requester with these attributes gives a provider (docs/design.md, Donation): FIFO/RR p gives FIFO
// max(p-1, 1), at most the ceiling; deadline gives FIFO at the ceiling; nice n gives nice n (FIFO 1 where strict and n
// < 0). The result has reset_on_fork.
[[nodiscard]] SchedAttr lent_by(const SchedAttr& donor, const LendingRules& rules);

// "other", "batch", "idle", "fifo", "rr", "deadline": the words of the JSON contract.
[[nodiscard]] std::string_view name(SchedPolicy policy);

}  // namespace swapd
