// The kinds of waits of a watched thread that come too often to tell of each (docs/design.md, Observers). Pure.
//
// A kind of wait that has come more often than once in the thread's patience is kept silent: the kernel's program
// counts such waits in the slot, and the observer looks there at its own pace. A rare wait of another kind is told at
// once still. A kind is told again when the patience has become less than half of the time between two of its waits,
// and all are when they come less than half as often.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/time.h"
#include "sys/bpf/bpf_tracer.h"

namespace swapd::observe {

class WaitRate {
 public:
  using Kind = sys::BpfTracer::WaitKind;
  static constexpr std::uint32_t min_waits = 16;                          // fewer are no rate …
  static constexpr std::uint32_t fewest_waits = 3;                        // … or so few, the longer the patience is
  static constexpr Duration min_window = std::chrono::milliseconds(50);   // of a patient thread
  static constexpr Duration max_window = std::chrono::milliseconds(200);  // of one that is not
  static constexpr std::size_t max_counted = 4;                           // kinds, at one time

  // 0: never patient. True: fewer kinds come often now (none: each wait is to be told again).
  bool set_patience(Duration patience);
  [[nodiscard]] Duration patience() const { return patience_; }
  // Some waits come often: these kinds.
  [[nodiscard]] bool patient() const { return !often_.empty(); }
  [[nodiscard]] std::span<const Kind> often() const { return often_; }
  [[nodiscard]] bool often(const Kind& kind) const { return std::ranges::find(often_, kind) != often_.end(); }

  // A wait is told of. True: its kind comes often from now on.
  [[nodiscard]] bool told(const Kind& kind, Time now);
  // A look at a patient thread, which has begun so many waits that come often. True: all are to be told again.
  [[nodiscard]] bool counted(std::uint32_t waits, Time now);

 private:
  struct Count {
    Kind kind;
    Time begun{};  // of the window
    std::uint32_t waits = 0;
  };
  [[nodiscard]] std::uint32_t waits_for_a_rate() const;

  Duration patience_{};
  std::vector<Kind> often_;
  std::vector<Duration> apart_;  // … the time between two waits of each
  std::vector<Count> counts_;    // of kinds that are told
  bool counting_ = false;        // how many waits there were when the window began is known
  Time begun_{};
  std::uint32_t waits_ = 0;
};

}  // namespace swapd::observe
