// The actuator's state of one boost. Internal to actuate/.
#pragma once

#include <chrono>
#include <cstdint>

#include "actuate/actuator.h"
#include "actuate/journal.h"

namespace swapd::actuate {

// How soon what the kernel refused is tried again while the donation lasts.
inline constexpr Duration refusal_period = std::chrono::seconds(1);

// How often the attributes of a thread are read while nothing changes.
inline constexpr Duration audit_period = std::chrono::milliseconds(20);

// The kernel's refusal of a real-time priority: believed for a while, then tried again.
struct RealtimeRefusal {
  Ineffective reason = Ineffective::none;  // none: there was no refusal
  Time at{};
  [[nodiscard]] bool stands(Time now) const { return reason != Ineffective::none && now - at < refusal_period; }
};

struct Entry {
  enum class State : std::uint8_t {
    left_alone,  // its own attributes are at least as good, or it would not be touched again after failing
    in_force,    // it has `set`
    suspended,   // by the ceiling or a quota: it has its own
    refused,  // it has its own; `reason` says why, or the outcome `failed` has. Where `limited` says it, not for good
  };
  Boost boost;
  SchedAttr base;  // its own
  SchedAttr lent;  // of the boost: its `attr`, or the second best
  SchedAttr set;   // while in force. A real-time one carries in `nice` what the kernel keeps for the thread meanwhile
  State state = State::left_alone;
  Ineffective reason = Ineffective::none;
  Ineffective limited = Ineffective::none;  // why no more than the second best is lent
  Ineffective told = Ineffective::none;     // a refusal that has been reported, and is not again
  RealtimeRefusal refusal;
  Journal::Slot slot = Journal::none;
  Time looked{};                   // when its attributes were last read
  int foreign_changes = 0;         // in this donation
  std::uint64_t surroundings = 0;  // the generation of rules and competitors that `reason` was found with
  std::uint64_t round = 0;
  bool starts = false;  // `set` is a head start, and the donation has not begun
  [[nodiscard]] bool in_force() const { return state == State::in_force; }
};

}  // namespace swapd::actuate
